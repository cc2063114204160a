"""Media time: from the timestamps a demuxer gives to seconds from the first frame shown.

Containers start anywhere (1.4 s in MPEG-TS, 3 s behind an edit list), leave timestamps out, repeat them, and jump by
hours where two recordings were joined. The result never goes back, and a jump costs one ordinary frame step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Protocol, TypeVar, runtime_checkable

BACK_LIMIT_SECONDS = 1.0
"""Going back further than this is a joined recording, not a rounding slip."""
STUCK_LIMIT = 2
"""Equal timestamps in a row that are still believed."""
LOOK_AHEAD = 4
"""Frames without a timestamp held back until the next known one."""
MIN_FAULTS = 2
MAX_FAULT_RATE = 0.05
"""Share of timestamps that may go back before the other kind is preferred."""


class Timeline:
    """Maps timestamps to seconds from the first one; one instance per stream, fed in presentation order."""

    def __init__(self, *, tick: Fraction, step_seconds: float, jump_seconds: float) -> None:
        """Start before the first frame.

        Args:
            tick: Seconds per timestamp unit.
            step_seconds: Expected time from frame to frame, used until real steps are seen.
            jump_seconds: A forward gap above this is a break in the recording and is closed.
        """
        self._numerator, self._denominator = tick.numerator, tick.denominator
        self._tick = float(tick)
        self._step = step_seconds
        self._jump_seconds = jump_seconds
        self._origin: int | None = None
        self._start_pts: int | None = None
        self._last_pts: int | None = None
        self._last_seconds = -1.0
        self._resume_seconds: float | None = None
        self._num_equal = 0
        self.jumps: list[tuple[float, float]] = []
        """(seconds at which, media seconds skipped; negative where time went back)."""
        self.num_guessed = 0
        """Frames without any timestamp."""
        self.num_stuck = 0
        """Frames whose timestamp repeated that of the frame before once too often."""
        self.regularity = Regularity()

    @property
    def step_seconds(self) -> float:
        """Latest ordinary time from frame to frame."""
        return self._step

    @property
    def last_seconds(self) -> float:
        """Time of the latest frame; negative before the first."""
        return self._last_seconds

    @property
    def start_pts(self) -> int | None:
        """Timestamp of the first frame."""
        return self._start_pts

    @property
    def start_seconds(self) -> float:
        """Media time of the first frame as the container has it."""
        return 0.0 if self._start_pts is None else self._start_pts * self._numerator / self._denominator

    def span_to(self, end_pts: int | None) -> float:
        """Length from the first frame to the end of the last, as its packet declares it or else one more step."""
        if end_pts is not None and self._last_pts is not None and end_pts > self._last_pts:
            return self._last_seconds + (end_pts - self._last_pts) * self._tick
        return self._last_seconds + self._step

    def start_at(self, pts: int) -> None:
        """Count from this timestamp: the first frame of the stream, of which only a later part is read."""
        self._origin = self._start_pts = pts

    def resume_at(self, seconds: float) -> None:
        """After an outage, let the next frame be at ``seconds`` whatever its timestamp."""
        self._resume_seconds = max(seconds, self._last_seconds)

    def place(self, pts: int | None, duration: int | None = None) -> float:
        """Seconds of the next frame in presentation order; never below the one before."""
        if self._resume_seconds is not None:
            seconds, self._resume_seconds = self._resume_seconds, None
            self._rebase(pts, seconds)
        elif pts is None:
            self.num_guessed += 1
            seconds = self._guess()
        elif self._last_pts is None:
            seconds = self._first(pts)
        else:
            seconds = self._follow(pts, self._last_pts, duration)
        self._last_seconds = seconds
        if pts is not None:
            self._last_pts = pts
        return seconds

    def _first(self, pts: int) -> float:
        if self._last_seconds >= 0:  # frames without a timestamp came before
            seconds = self._guess()
            self._rebase(pts, seconds)
            self._start_pts = self._origin
            return seconds
        if self._origin is None:
            self.start_at(pts)
        return self._since_origin(pts)

    def _follow(self, pts: int, last_pts: int, duration: int | None) -> float:
        delta = (pts - last_pts) * self._tick
        if delta > self._jump_seconds or delta < -BACK_LIMIT_SECONDS:
            seconds = self._last_seconds + self._step
            self.jumps.append((seconds, delta))
            self._rebase(pts, seconds)
            return seconds
        self._num_equal = self._num_equal + 1 if delta == 0 else 0
        if self._num_equal >= STUCK_LIMIT:
            self.num_stuck += 1
            return self._guess()
        seconds = self._since_origin(pts)
        if delta > 0:
            self._step = delta
        if seconds > self._last_seconds:
            self.regularity.see(seconds - self._last_seconds, (duration or 0) * self._tick, self._tick, seconds)
        return max(seconds, self._last_seconds)

    def _since_origin(self, pts: int) -> float:
        assert self._origin is not None
        return (pts - self._origin) * self._numerator / self._denominator

    def _guess(self) -> float:
        return self._last_seconds + self._step if self._last_seconds >= 0 else 0.0

    def _rebase(self, pts: int | None, seconds: float) -> None:
        if pts is not None:
            self._origin = pts - round(seconds / self._tick)
            self._num_equal = 0


class Regularity:
    """Whether frames are missing from a stream that promises a constant rate.

    Only streams whose packets all declare one duration, and keep it in nearly all steps, promise that; gaps in them are
    lost frames, while the gaps of a variable-rate stream are its nature.
    """

    MIN_REGULAR = 24
    MAX_ODD_RATE = 0.02
    MAX_HOLE_RATE = 0.2
    MAX_HOLES_KEPT = 100
    ROUNDING_SECONDS = 0.002

    def __init__(self) -> None:
        self._duration = 0.0
        self._is_constant = True
        self._num_regular = self._num_odd = self._num_holes = self._num_missing = 0
        self._holes: list[tuple[float, float]] = []

    def see(self, step: float, duration: float, tick: float, seconds: float) -> None:
        """Note the step to the frame at ``seconds``, which declares a ``duration``; all in seconds."""
        if not self._duration:
            self._duration = duration
        slack = tick + self.ROUNDING_SECONDS  # containers round to whole units and to milliseconds
        self._is_constant &= duration > 0 and abs(duration - self._duration) <= slack
        if not self._is_constant:
            return
        num_steps = round(step / self._duration)
        if abs(step - num_steps * self._duration) > slack * max(1, num_steps):
            self._num_odd += 1
        elif num_steps <= 1:
            self._num_regular += 1
        else:
            self._num_holes += 1
            self._num_missing += num_steps - 1
            if len(self._holes) < self.MAX_HOLES_KEPT:
                self._holes.append((seconds - step, seconds))

    @property
    def num_missing(self) -> int:
        """Frames missing from a regular stream; 0 where the stream makes no such promise."""
        num_steps = self._num_regular + self._num_odd + self._num_holes
        is_regular = (
            self._is_constant
            and self._num_regular >= self.MIN_REGULAR
            and self._num_odd <= self.MAX_ODD_RATE * num_steps
            and self._num_holes <= self.MAX_HOLE_RATE * num_steps
        )
        return self._num_missing if is_regular else 0

    @property
    def holes(self) -> list[tuple[float, float]]:
        """(last second before, first second after) of the first holes."""
        return self._holes if self.num_missing else []


class TimestampChooser:
    """Presentation or decoding timestamp, whichever of the two makes sense in this stream.

    AVI has no presentation times: with B-frames those of its demuxer go back and forth while the decoding times advance
    evenly. As FFmpeg's own guess does, count which of the two misbehaves, but let a few slips of a damaged file pass.
    """

    def __init__(self) -> None:
        self._last_pts = self._last_dts = -(1 << 63)
        self._pts_faults = self._dts_faults = 0
        self._num_seen = 0

    def choose(self, pts: int | None, dts: int | None) -> int | None:
        """Timestamp of the next frame in presentation order; None if there is neither."""
        self._num_seen += 1
        if dts is not None:
            self._dts_faults += dts <= self._last_dts
            self._last_dts = dts
        if pts is None:
            return dts
        self._pts_faults += pts <= self._last_pts
        self._last_pts = pts
        is_bad = self._pts_faults >= MIN_FAULTS and self._pts_faults > self._num_seen * MAX_FAULT_RATE
        return dts if is_bad and dts is not None and self._dts_faults < self._pts_faults else pts


@runtime_checkable
class HasPts(Protocol):
    """Anything with a timestamp that may be missing."""

    pts: int | None


PtsT = TypeVar("PtsT", bound=HasPts)


def fill_missing_pts(pictures: Iterable[PtsT]) -> Iterator[PtsT]:
    """Give pictures without a timestamp one between their neighbours', while at most ``LOOK_AHEAD`` stand in a row.

    Longer runs go on without one: memory stays bounded and ``Timeline`` continues them at the frame step.
    """
    waiting: list[PtsT] = []
    last: int | None = None
    for picture in pictures:
        if picture.pts is None and last is not None and len(waiting) < LOOK_AHEAD:
            waiting.append(picture)
            continue
        if picture.pts is not None and last is not None and waiting:
            for number, held in enumerate(waiting, start=1):
                held.pts = last + (picture.pts - last) * number // (len(waiting) + 1)
        yield from waiting
        waiting.clear()
        last = picture.pts
        yield picture
    yield from waiting
