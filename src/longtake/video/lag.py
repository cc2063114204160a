"""How far a consumer is behind a live source, and which grid points to leave out because of it."""

from __future__ import annotations

import time

MAX_STRIDE = 8
"""At most every eighth grid point is taken."""


class LagClock:
    """Relates the source's time to the wall clock.

    The smallest delay ever seen between a frame's time and its arrival is taken as no lag, since a source may start
    with a burst of stored frames.
    """

    def __init__(self) -> None:
        self._wall_at_zero: float | None = None
        self._taken_seconds: float | None = None

    def arrived(self, pts_seconds: float) -> None:
        """A frame came out of the decoder."""
        wall_at_zero = time.monotonic() - pts_seconds
        if self._wall_at_zero is None or wall_at_zero < self._wall_at_zero:
            self._wall_at_zero = wall_at_zero

    def taken(self, seconds: float) -> None:
        """The consumer has everything before this time."""
        self._taken_seconds = seconds

    @property
    def lag_seconds(self) -> float:
        """Time of the source that the consumer has not seen yet."""
        if self._wall_at_zero is None:
            return 0.0
        return max(0.0, time.monotonic() - self._wall_at_zero - (self._taken_seconds or 0.0))


class StrideControl:
    """Takes every n-th grid point; n doubles while the lag is above two segments and halves below one."""

    def __init__(self, segment_seconds: float) -> None:
        """Start at every grid point."""
        self._segment_seconds = segment_seconds
        self.stride = 1

    def adapt(self, lag_seconds: float) -> None:
        """Called between segments."""
        if lag_seconds > 2 * self._segment_seconds * self.stride:
            self.stride = min(MAX_STRIDE, self.stride * 2)
        elif lag_seconds < self._segment_seconds:
            self.stride = max(1, self.stride // 2)
