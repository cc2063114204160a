"""One opened container: its video stream, its pictures in presentation order, and a tally of what was lost on the way.

Of several video streams the first that is not a cover picture is read. Packets are decoded one by one, so that a
damaged one costs its own picture and not the rest of the file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import av
from av.container import InputContainer
from av.error import EOFError as AvEOFError
from av.error import ExitError, FFmpegError
from av.packet import Packet
from av.stream import Discard, Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from longtake.errors import SourceError
from longtake.video.address import Address
from longtake.video.endings import ending_fault
from longtake.video.mp4 import Mp4Facts
from longtake.video.refuse import encrypted, explain_no_video, explain_open_failure, file_path
from longtake.video.tally import Declared, Tally
from longtake.video.timeline import TimestampChooser

DEFAULT_FPS = 25.0
"""Taken where a stream without timestamps names no rate either."""
LARGE_PIXELS = 1280 * 720
"""From this size on pictures are decoded on several cores."""
MAX_READ_ERRORS = 20
"""Consecutive failed reads after which the rest of the source is given up."""
DISCONTINUOUS_JUMP_SECONDS = 10.0
"""Largest believed gap in formats that allow time to jump (MPEG-TS and relatives)."""
CONTINUOUS_JUMP_SECONDS = 3600.0
"""Largest believed gap in all other formats."""
TS_DISCONT_FLAG = 0x0200  # AVFMT_TS_DISCONT
NO_TIMESTAMPS_FLAG = 0x0080  # AVFMT_NOTIMESTAMPS
SEEKABLE_FORMATS = ("mov,", "matroska,")
CONSTANT_RATE_FORMATS = ("matroska,", "mpegts", "mpeg", "ogg")
"""Formats with one declared rate instead of a duration for each picture."""
HIDING_CODECS = frozenset({"vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d", "libaom-av1", "mpeg4", "theora"})
"""Codecs with packets that rightly give no picture: hidden references, repeats."""


@dataclass(slots=True, kw_only=True, eq=False)
class Picture:
    """A decoded picture with the timestamp it came with."""

    frame: VideoFrame
    pts: int | None
    duration: int | None = None
    """In timestamp units, as its packet declared."""
    is_damaged: bool = False
    """The decoder says that parts of it are wrong."""


class VideoContainer:
    """An opened container with its video stream. Not thread-safe: one thread opens, reads and closes it."""

    def __init__(
        self, address: Address, *, timeout_seconds: float, mp4: Mp4Facts | None = None, ignore_edit_list: bool = False
    ) -> None:
        """Open and choose the stream.

        Raises:
            SourceError: Nothing there, not a video, or no decoder for it.
        """
        self._address = address
        self._timeout_seconds = timeout_seconds
        self._chooser = TimestampChooser()
        self.tally = Tally()
        self._container = self._open(ignore_edit_list)
        try:
            self._stream = self._choose_stream()
            own_seconds = stream_seconds(self._stream)
            whole = self._container.duration
            # Sound may outlast the pictures, so its packets are looked at where only the whole declares a duration.
            self._watches_others = own_seconds is None and bool(whole)
            self.declared = self._read_declared(own_seconds, whole / 1e6 if whole and whole > 0 else None, mp4)
            self._set_up()
        except BaseException:
            self.close()
            raise
        if mp4 is not None and mp4.num_movies > 1:
            self.tally.notes.append(f"{mp4.num_movies} movies stand one after another in the file; the first was read")

    def _open(self, ignore_edit_list: bool) -> InputContainer:
        address = self._address
        options = address.options | ({"ignore_editlist": "1"} if ignore_edit_list else {})
        try:
            return av.open(
                address.target,
                "r",
                format=address.format_name,
                options=options,
                metadata_errors="replace",
                timeout=self._timeout_seconds if address.is_network else None,
            )
        except (FFmpegError, OSError, ValueError) as error:
            raise explain_open_failure(address, error, self._timeout_seconds) from error

    def _choose_stream(self) -> VideoStream:
        for stream in self._container.streams.video:
            if not stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails):
                if stream.codec_context is None:
                    break
                return stream
        else:
            raise explain_no_video(self._address, self._container)
        raise SourceError(
            f"{self._address.text}: no decoder for its video codec; convert it to H.264 (ffmpeg -i IN OUT.mp4)"
        )

    def _read_declared(self, own_seconds: float | None, whole_seconds: float | None, mp4: Mp4Facts | None) -> Declared:
        stream, container = self._stream, self._container
        flags = int(container.format.flags)
        codec = stream.codec_context
        return Declared(
            fps=declared_fps(stream, has_no_times=bool(flags & NO_TIMESTAMPS_FLAG)),
            tick=stream.time_base or Fraction(0),
            size=(codec.width, codec.height),
            jump_seconds=DISCONTINUOUS_JUMP_SECONDS if flags & TS_DISCONT_FLAG else CONTINUOUS_JUMP_SECONDS,
            frames=stream.frames or None,
            pictures_seconds=own_seconds,
            whole_seconds=whole_seconds,
            promises_whole=len(container.streams) == 1 or self._watches_others,
            fragment_seconds=mp4.fragment_seconds if mp4 is not None else None,
            hides_pictures=codec.name in HIDING_CODECS,
            keeps_rate=container.format.name.startswith(CONSTANT_RATE_FORMATS),
            can_seek=self._address.kind == "file" and container.format.name.startswith(SEEKABLE_FORMATS),
        )

    def _set_up(self) -> None:
        for other in self._container.streams:
            if other.index != self._stream.index and not self._watches_others:
                other.discard = Discard.all
        codec = self._stream.codec_context
        if codec.width * codec.height >= LARGE_PIXELS:
            codec.thread_type = "AUTO"
            codec.thread_count = min(4, os.cpu_count() or 1)
        else:
            codec.thread_count = 1

    @property
    def format_name(self) -> str:
        """FFmpeg's name of the container's format."""
        return self._container.format.name

    def packets(self) -> Iterator[Packet]:
        """Packets of the video stream; failed reads are retried, then taken for the end."""
        errors = 0
        streams = list(self._container.streams) if self._watches_others else [self._stream]
        while True:
            try:
                for packet in self._container.demux(streams):
                    errors = 0
                    if packet.stream_index != self._stream.index:
                        self._note_other(packet)
                    elif packet.size:
                        self._refuse_encrypted(packet)
                        yield packet
                return
            except ExitError as error:
                raise SourceError(
                    f"{self._address.text}: no data for {self._timeout_seconds:g} s; "
                    "check the source or give it a longer --timeout"
                ) from error
            except AvEOFError:
                return
            except (FFmpegError, IndexError) as error:  # IndexError: PyAV, where damage makes a new stream appear
                if self._is_open_end(error):
                    return
                errors += 1
                self.tally.read_error = (getattr(error, "strerror", None) or str(error)).lower()
                if errors >= MAX_READ_ERRORS:
                    return

    def _is_open_end(self, error: Exception) -> bool:
        """FFmpeg calls the end of an HTTP answer that declared no length an input/output error."""
        return self._address.kind == "http" and self._container.size < 0 and getattr(error, "errno", None) == errno.EIO

    def _refuse_encrypted(self, packet: Packet) -> None:
        if self.tally.packets == 0 and (
            packet.has_sidedata("encryption_info") or "enc_key_id" in self._stream.metadata
        ):
            raise encrypted(self._address)

    def _note_other(self, packet: Packet) -> None:
        if packet.pts is not None and packet.time_base:
            end = float((packet.pts + (packet.duration or 0)) * packet.time_base)
            self.tally.others_end_seconds = max(self.tally.others_end_seconds, end)

    def pictures(self) -> Iterator[Picture]:
        """All pictures that decode, in presentation order."""
        for packet in self.packets():
            yield from self.decode(packet)
        yield from self.drain()
        path = file_path(self._address)
        if path is not None and len(self._container.streams) == 1 and not self.tally.read_error:
            fault = ending_fault(path, self._container.format.name, self.tally.end_byte)
            self.tally.notes += [fault] if fault else []

    def decode(self, packet: Packet) -> list[Picture]:
        """Pictures that became ready with this packet; none, and a note in the tally, where it is damaged."""
        tally = self.tally
        tally.packets += 1
        tally.hidden_packets += packet.is_discard
        if packet.pos is not None:
            tally.end_byte = max(tally.end_byte, packet.pos + packet.size)
        tally.damaged_packets += packet.is_corrupt
        pts = None if packet.is_discard else packet.pts
        if pts is not None and (tally.latest is None or pts > tally.latest[0]):
            tally.latest = (pts, packet.duration or 0)
        try:
            frames = self._stream.decode(packet)
        except FFmpegError:
            tally.bad_packets += 1
            if pts is not None:
                tally.lost_pts.append(pts)
            return []
        return [self._picture(frame) for frame in frames]

    def drain(self) -> list[Picture]:
        """Pictures still inside the decoder."""
        try:
            return [self._picture(frame) for frame in self._stream.decode(None)]
        except FFmpegError:  # also raised when it was drained before
            return []

    def _picture(self, frame: VideoFrame) -> Picture:
        self.tally.pictures += 1
        self.tally.damaged_pictures += frame.is_corrupt
        self.tally.has_fields |= frame.interlaced_frame
        pts = self._chooser.choose(frame.pts, frame.dts) if self.declared.tick else None
        return Picture(frame=frame, pts=pts, duration=frame.duration, is_damaged=frame.is_corrupt)

    def pictures_from(self, pts: int) -> Iterator[Picture]:
        """Pictures from the last keyframe at or before ``pts`` on; none where the container does not lead there.

        Pictures that are shown before the keyframe but come after it in the file are left out: those of an open group
        need frames from before the jump.
        """
        try:
            self._container.seek(pts, stream=self._stream, backward=True)
        except FFmpegError:
            return
        self._chooser = TimestampChooser()
        packets = self.packets()
        key = next(packets, None)
        if key is None or key.pts is None or not key.is_keyframe or key.pts > pts:
            return
        key_pts = key.pts
        for packet in chain((key,), packets):
            yield from (picture for picture in self.decode(packet) if not is_before(picture, key_pts))
        yield from (picture for picture in self.drain() if not is_before(picture, key_pts))

    def close(self) -> None:
        """Free the demuxer and decoder."""
        self._container.close()


def is_before(picture: Picture, pts: int) -> bool:
    """The picture is known to be shown before this timestamp."""
    return picture.pts is not None and picture.pts < pts


def declared_fps(stream: VideoStream, *, has_no_times: bool) -> float:
    """Average rate that the container declares, or a guess.

    Raw streams declare FFmpeg's default of 25; what their pictures say is the guessed rate.
    """
    rates = (stream.average_rate, stream.guessed_rate)
    for rate in reversed(rates) if has_no_times else rates:
        if rate and 0.001 < rate < 1000:
            return float(rate)
    return DEFAULT_FPS


def stream_seconds(stream: VideoStream) -> float | None:
    """Duration declared for the video stream itself."""
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    clock = stream.metadata.get("DURATION", "").rstrip("\0").split(":")  # Matroska's per-stream tag
    try:
        hours, minutes, seconds = (float(part) for part in clock)
    except ValueError:
        return None
    return hours * 3600 + minutes * 60 + seconds or None
