"""The time grid: which picture stands for the moments 0, 1/fps, 2/fps, ... of a stream."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from longtake.errors import ConfigError


@runtime_checkable
class Timed(Protocol):
    """Anything with a time from the stream's first frame: a ``Frame``, or a picture not yet converted."""

    @property
    def pts_seconds(self) -> float: ...


TimedT = TypeVar("TimedT", bound=Timed)

TIE_SECONDS = 1e-9
"""Distances closer than this are a tie (they differ by float rounding only)."""
GRID_SLACK = 1e-6
"""Fraction of a grid step by which a start time may miss its grid point (rounding of stored times)."""


def first_tick(start_seconds: float, fps: float) -> int:
    """Number of the first grid point at or after ``start_seconds``."""
    return max(0, math.ceil(start_seconds * fps - GRID_SLACK))


def sample(frames: Iterable[TimedT], fps: float, start_seconds: float = 0.0) -> Iterator[TimedT]:
    """Frames on the grid k/fps, from the first grid point at or after ``start_seconds``.

    Each grid point takes the frame nearest in time, the earlier one on a tie. A frame that is still more than half a
    grid step ahead is not used: over a gap the last frame is held (yielded again, with its own time). Past the last
    frame's time only the grid point that rounds to it is given: within half a grid step and half the last frame step.

    Frames must come in order of time; one of them is kept, so the look-ahead is one frame.
    """
    if not 0 < fps < math.inf:
        raise ConfigError(f"sampling rate is {fps} fps, expected a number above 0")
    return (frame for _, frame in sample_ticks(frames, fps, first_tick(start_seconds, fps)))


def sample_ticks(frames: Iterable[TimedT], fps: float, tick: int = 0) -> Iterator[tuple[int, TimedT]]:
    """Like ``sample``, with the number of the grid point, from number ``tick`` on."""
    half_step = 0.5 / fps
    held: TimedT | None = None
    last_gap = 0.0
    for frame in frames:
        while (moment := tick / fps) <= frame.pts_seconds:
            ahead = frame.pts_seconds - moment
            if held is not None and (
                moment - held.pts_seconds <= ahead + TIE_SECONDS or ahead > half_step + TIE_SECONDS
            ):
                yield tick, held
            else:
                yield tick, frame
            tick += 1
        if held is not None:
            last_gap = frame.pts_seconds - held.pts_seconds
        held = frame
    if held is not None and tick / fps < held.pts_seconds + min(half_step, last_gap / 2):
        yield tick, held
