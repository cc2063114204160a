"""Small videos made on the spot. Every picture shows its own number in black and white blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.packet import Packet
from av.video.frame import VideoFrame

BLOCK = 16
COLUMNS, ROWS = 4, 3
WIDTH, HEIGHT = COLUMNS * BLOCK, ROWS * BLOCK
MILLISECOND = Fraction(1, 1000)
COUNTING_CODECS = ("mpeg4", "mpeg2video", "gif", "mjpeg", "png")
"""Their time base is the frame rate."""


def picture(number: int, *, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """A picture that shows ``number`` (below 4096) in twelve blocks."""
    bits = [(number >> bit) & 1 for bit in range(COLUMNS * ROWS)]
    blocks = np.array(bits, np.uint8).reshape(ROWS, COLUMNS) * 200 + 25
    rows = np.arange(height) * ROWS // height
    columns = np.arange(width) * COLUMNS // width
    return np.repeat(blocks[rows][:, columns, None], 3, axis=2)


def number_of(rgb: np.ndarray) -> int:
    """The number that a picture shows."""
    height, width = rgb.shape[:2]
    rows = (np.arange(ROWS) * 2 + 1) * height // (2 * ROWS)
    columns = (np.arange(COLUMNS) * 2 + 1) * width // (2 * COLUMNS)
    bits = rgb[rows][:, columns].mean(axis=2).reshape(-1) > 125
    return int(sum(1 << bit for bit, is_set in enumerate(bits) if is_set))


def make_video(
    path: Path,
    times_ms: Sequence[int] | None = None,
    *,
    frames: int = 50,
    fps: int = 25,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    size: tuple[int, int] = (WIDTH, HEIGHT),
    group: int = 10,
    options: dict[str, str] | None = None,
    container_format: str | None = None,
    container_options: dict[str, str] | None = None,
    sound_seconds: float = 0.0,
) -> Path:
    """Write pictures 0, 1, 2, ... at the given milliseconds, or evenly.

    Args:
        path: The suffix chooses the container.
        times_ms: Time of each picture; overrides ``frames`` and ``fps``.
        group: Frames from keyframe to keyframe.
        options: For the encoder.
        sound_seconds: Length of a silent sound track, 0 for none.
    """
    times = list(times_ms) if times_ms is not None else [round(number * 1000 / fps) for number in range(frames)]
    defaults = {"preset": "ultrafast", "bf": "0"} if codec == "libx264" else {}
    with av.open(str(path), "w", format=container_format, options=container_options or {}) as container:
        stream = container.add_stream(codec, rate=fps, options=defaults | (options or {}))
        stream.width, stream.height = size
        stream.pix_fmt = pixel_format
        stream.gop_size = group
        stream.codec_context.thread_count = 1
        if codec not in COUNTING_CODECS:
            stream.codec_context.time_base = MILLISECOND
        sound = container.add_stream("aac", rate=8000) if sound_seconds else None
        for number, time_ms in enumerate(times):
            frame = VideoFrame.from_ndarray(picture(number, width=size[0], height=size[1]), format="rgb24")
            frame = frame.reformat(format=pixel_format)
            if codec in COUNTING_CODECS:
                frame.pts, frame.time_base = number, Fraction(1, fps)
            else:
                frame.pts, frame.time_base = time_ms, MILLISECOND
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if sound is not None:
            _add_silence(container, sound, sound_seconds)
    return path


def _add_silence(container: av.container.OutputContainer, stream: av.AudioStream, seconds: float) -> None:
    size = 1024
    for start in range(0, int(seconds * 8000), size):
        frame = av.AudioFrame.from_ndarray(np.zeros((1, size), np.float32), format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 8000, start, Fraction(1, 8000)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def remux(source: Path, target: Path, *, keep: Iterable[int] | None = None, shift_ticks: int = 0) -> Path:
    """Copy the packets of a video, or only those with the given numbers, into another container."""
    kept = None if keep is None else set(keep)
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        packets: list[Packet] = [packet for packet in old.demux(video=0) if packet.dts is not None]
        for number, packet in enumerate(packets):
            if kept is None or number in kept:
                packet.stream = stream
                packet.pts += shift_ticks
                packet.dts += shift_ticks
                new.mux(packet)
    return target
