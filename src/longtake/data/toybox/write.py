"""From a script to an H.264 file, frame by frame: memory does not grow with the length of the video."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from longtake.data.toybox.render import Renderer
from longtake.data.toybox.world import Script

VIDEO_SIZE = 128
CRF = 20
KEYFRAME_SECONDS = 2


def write_video(
    script: Script, path: Path, *, size: int = VIDEO_SIZE, on_frame: Callable[[int, int], None] | None = None
) -> None:
    """Write the whole script as an mp4; ``path`` appears only once it is complete.

    Args:
        script: What to show.
        path: Where to; its folder must be there.
        size: Side of the picture in pixels, even.
        on_frame: Called after each frame with the number written so far and the number of all.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        _encode(script, unfinished, size, on_frame)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _encode(script: Script, path: Path, size: int, on_frame: Callable[[int, int], None] | None) -> None:
    import av

    renderer = Renderer(script, size)
    num_frames = round(script.seconds * script.fps)
    # without B-frames every frame's pts is its number: no edit list, no negative dts
    options = {"crf": str(CRF), "preset": "veryfast", "bf": "0", "sc_threshold": "0"}
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=script.fps, options=options)
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.gop_size = KEYFRAME_SECONDS * script.fps
        for index in range(num_frames):
            frame = av.VideoFrame.from_ndarray(renderer.frame(index / script.fps), format="rgb24")
            frame.pts = index
            frame.time_base = Fraction(1, script.fps)
            container.mux(stream.encode(frame))
            if on_frame is not None:
                on_frame(index + 1, num_frames)
        container.mux(stream.encode(None))
