"""Reads one source from front to back in the calling thread: pictures with their time, and a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from av.video.frame import VideoFrame

from longtake.errors import SourceError
from longtake.types import SourceReport
from longtake.video.address import Address
from longtake.video.container import Picture, VideoContainer
from longtake.video.folder import FolderContainer
from longtake.video.options import ReadOptions
from longtake.video.picture import Orientation, orientation_of
from longtake.video.refuse import check_file
from longtake.video.tally import Tally
from longtake.video.timeline import Timeline, fill_missing_pts
from longtake.video.verdict import Findings, count, lost_frames, warnings_about

SEEK_MARGIN_SECONDS = 1.0
"""Start at least this far ahead of the wanted time, so that the sampler knows the frames before."""
VETTED_PACKETS = 16
MAX_BAD_RATE = 0.5
"""With more of the first packets refused than this share, the source is unreadable."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimedPicture:
    """A decoded picture, not yet converted, with its time."""

    frame: VideoFrame
    orientation: Orientation
    pts_seconds: float
    outage_seconds: float = 0.0
    """Wall time without frames just before this one, where a live source was away."""


class Reader:
    """One pass over one source. Not thread-safe."""

    def __init__(self, address: Address, options: ReadOptions) -> None:
        """Open the source.

        Raises:
            SourceError: It cannot be opened or holds no video.
        """
        self._address = address
        self._options = options
        self.start_clock: Callable[[], float] | None = None
        """Asked for the time of the first frame, where that is not 0: a connection made again."""
        self._findings = Findings(is_partial=True)
        self._mp4 = check_file(address)
        self._container: VideoContainer | FolderContainer
        if address.kind == "folder":
            self._container = FolderContainer(address, fps=options.image_fps)
        else:
            self._container = self._open()
        self._timeline = self._new_timeline()
        self._orientation: Orientation | None = None

    def _open(self, *, ignore_edit_list: bool = False) -> VideoContainer:
        return VideoContainer(
            self._address,
            timeout_seconds=self._options.timeout_seconds,
            mp4=self._mp4,
            ignore_edit_list=ignore_edit_list,
        )

    def _new_timeline(self) -> Timeline:
        declared = self._container.declared
        return Timeline(
            tick=declared.tick or Fraction(1), step_seconds=1 / declared.fps, jump_seconds=declared.jump_seconds
        )

    def pictures(self, start_seconds: float = 0.0) -> Iterator[TimedPicture]:
        """All pictures, or at least those from the one before ``start_seconds`` on.

        Raises:
            SourceError: No picture decodes, the source stops answering, or it is damaged and ``on_damage`` is "raise".
        """
        holds = self._options.on_damage == "hold"
        before: TimedPicture | None = None
        for picture in fill_missing_pts(self._decoded(start_seconds)):
            if holds and before is not None:
                yield from self._held(before, picture)
            timed = self._time(picture)
            if holds and picture.is_damaged and before is not None:
                timed = TimedPicture(frame=before.frame, orientation=before.orientation, pts_seconds=timed.pts_seconds)
            before = timed
            yield timed

    def _decoded(self, start_seconds: float) -> Iterator[Picture]:
        pictures = self._container.pictures()
        first = next(pictures, None)
        if first is None:
            first, pictures = self._second_try()
        pictures = chain((first,), pictures)
        sought = self._sought(first, start_seconds) if start_seconds > SEEK_MARGIN_SECONDS else None
        for picture in self._vetted(pictures if sought is None else sought):
            if self._options.on_damage == "raise":
                self._refuse_damage()
            yield picture
        self._findings.is_partial = sought is not None

    def _second_try(self) -> tuple[Picture, Iterator[Picture]]:
        """Nothing decoded: an edit list that hides everything is ignored, anything else is the end."""
        tally = self._container.tally
        if tally.packets and tally.hidden_packets == tally.packets:
            self._container.close()
            self._container = self._open(ignore_edit_list=True)
            self._container.tally.notes.append("the edit list hides every frame (declared duration 0); it was ignored")
            pictures = self._container.pictures()
            first = next(pictures, None)
            if first is not None:
                return first, pictures
        raise self._nothing_decoded()

    def _sought(self, first: Picture, start_seconds: float) -> Iterator[Picture] | None:
        """Pictures from a keyframe well before the start on, or None where only reading up to it is safe."""
        container = self._container
        if not isinstance(container, VideoContainer) or not container.declared.can_seek or first.pts is None:
            return None
        pts = first.pts + math.floor((start_seconds - SEEK_MARGIN_SECONDS) / container.declared.tick)
        pictures = container.pictures_from(pts)
        picture = next(pictures, None)
        if picture is not None:
            self._timeline.start_at(first.pts)
            return chain((picture,), pictures)
        container.close()
        self._container = self._open()
        return self._container.pictures()

    def _time(self, picture: Picture) -> TimedPicture:
        if self.start_clock is not None:
            self._timeline.resume_at(self.start_clock())
            self.start_clock = None
        seconds = self._timeline.place(picture.pts, picture.duration)
        findings, orientation = self._findings, self._orientation
        if orientation is None or picture.frame.key_frame:  # between keyframes it cannot change
            orientation = self._orientation = orientation_of(picture.frame)
        if findings.frames == 0:
            findings.orientation = orientation
        findings.see(orientation.turned(picture.frame.width, picture.frame.height), seconds)
        return TimedPicture(frame=picture.frame, orientation=orientation, pts_seconds=seconds)

    def _held(self, before: TimedPicture, upcoming: Picture) -> Iterator[TimedPicture]:
        """The picture before, once for each lost one that would have been shown by now."""
        lost = self._container.tally.lost_pts
        lost.sort()
        while lost and upcoming.pts is not None and lost[0] < upcoming.pts:
            seconds = self._timeline.place(lost.pop(0))
            self._findings.held += 1
            yield TimedPicture(frame=before.frame, orientation=before.orientation, pts_seconds=seconds)

    def _refuse_damage(self) -> None:
        tally = self._container.tally
        if tally.bad_packets or tally.damaged_pictures or tally.read_error:
            raise SourceError(
                f"{self._address.text}: damaged after {max(0.0, self._timeline.last_seconds):.2f} s; "
                'read on past it with on_damage="skip" or "hold"'
            )

    def _vetted(self, pictures: Iterator[Picture]) -> Iterator[Picture]:
        """Refuse a source whose beginning is mostly refused by the decoder: what does decode is noise.

        Nothing of it is shown: while the beginning looks bad its pictures are held back.
        """
        waiting: list[Picture] = []
        for picture in pictures:
            waiting.append(picture)
            tally = self._container.tally
            looks_bad = bool(tally.bad_packets or tally.damaged_pictures)
            if tally.packets < VETTED_PACKETS and looks_bad:
                continue
            self._refuse_noise(tally)
            yield from waiting
            waiting.clear()
            if tally.packets >= VETTED_PACKETS:
                break
        self._refuse_noise(self._container.tally)
        yield from waiting
        yield from pictures

    def _refuse_noise(self, tally: Tally) -> None:
        if tally.bad_packets > MAX_BAD_RATE * tally.packets:
            raise SourceError(
                f"{self._address.text}: {tally.bad_packets} of the first {tally.packets} packets are "
                "damaged or encrypted; get a whole, unprotected copy"
            )

    def _nothing_decoded(self) -> SourceError:
        bad = self._container.tally.bad_packets
        detail = count(bad, "damaged packet") if bad else "it holds no picture"
        if not bad and self._address.kind != "file" and self._container.format_name.startswith("mov,"):
            detail = (
                "an MP4 whose index stands at its end needs a source that can be read twice; download it first, or "
                "make it with ffmpeg -movflags faststart"
            )
        return SourceError(f"{self._address.text}: no frame could be decoded ({detail})")

    @property
    def total_seconds(self) -> float | None:
        """Declared length, as advice."""
        return self._container.declared.seconds

    def report(self) -> SourceReport:
        """What was seen so far; final once ``pictures`` has ended."""
        findings, container = self._findings, self._container
        width, height = findings.size if findings.frames else container.declared.size
        return SourceReport(
            frames=findings.frames,
            first_pts=0.0,
            last_pts=max(0.0, self._timeline.last_seconds),
            start_time=self._timeline.start_seconds,
            duration=container.declared.whole_seconds or container.declared.pictures_seconds,
            width=width,
            height=height,
            rotation=findings.orientation.degrees,
            lost_frames=lost_frames(container, self._timeline, findings),
            warnings=warnings_about(container, self._timeline, findings),
        )

    def close(self) -> None:
        """Free the decoder."""
        self._container.close()
