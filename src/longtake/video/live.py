"""Live sources: connect again when they go away, and keep time going meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from longtake.errors import SourceError
from longtake.types import SourceReport
from longtake.video.address import Address
from longtake.video.options import ReadOptions
from longtake.video.reader import Reader, TimedPicture

FIRST_DELAY_SECONDS = 0.25
MAX_DELAY_SECONDS = 8.0
MAX_WARNINGS = 50
"""Kept of a stream that may never end."""


class LiveReader:
    """A reader that survives its source: an outage is waited for, reported, and visible in the times.

    The first connection is tried once, so that a wrong address is an error at once. Later the delay between tries
    doubles up to ``MAX_DELAY_SECONDS``, for ``max_outage_seconds`` in all. Then a source that had ended in good order
    is taken as ended, and one that broke off is an error.
    """

    def __init__(self, address: Address, options: ReadOptions, *, sleep: Callable[[float], bool]) -> None:
        """Connect.

        Args:
            address: The source.
            options: How to read.
            sleep: Waits; returns False where nobody wants the frames any more.

        Raises:
            SourceError: Nothing there.
        """
        self._address = address
        self._options = options
        self._sleep = sleep
        self._reader = Reader(address, options)
        self._past: SourceReport | None = None
        self._outages: tuple[str, ...] = ()
        self._frame_at: float | None = None
        self._last_seconds = 0.0
        self._delay = FIRST_DELAY_SECONDS

    total_seconds: float | None = None

    def pictures(self, start_seconds: float = 0.0) -> Iterator[TimedPicture]:
        """Pictures across all connections; the first one is at ``start_seconds``, since live time cannot be sought."""
        if start_seconds > 0:
            self._reader.start_clock = lambda: start_seconds
        is_back = False
        while True:
            failure: SourceError | None = None
            try:
                for picture in self._reader.pictures():
                    if is_back:
                        picture = self._mark_outage(picture)
                        is_back = False
                    self._frame_at = time.monotonic()
                    self._last_seconds = picture.pts_seconds
                    self._delay = FIRST_DELAY_SECONDS
                    yield picture
            except SourceError as error:
                failure = error
                if self._frame_at is None:
                    raise
            if not self._connect_again(failure):
                return
            is_back = True

    def _mark_outage(self, picture: TimedPicture) -> TimedPicture:
        gap = picture.pts_seconds - self._last_seconds
        line = f"no frames for {gap:.1f} s after {self._last_seconds:.1f} s: the source was gone and came back"
        self._outages = (*self._outages, line)[-MAX_WARNINGS:]
        return replace(picture, outage_seconds=gap)

    def _connect_again(self, failure: SourceError | None) -> bool:
        assert self._frame_at is not None
        lost_at = self._frame_at
        give_up_at = lost_at + self._options.max_outage_seconds
        self._past = self.report()
        self._reader.close()
        while self._sleep(self._delay):
            self._delay = min(2 * self._delay, MAX_DELAY_SECONDS)
            try:
                self._reader = Reader(self._address, self._options)
            except SourceError as error:
                if time.monotonic() < give_up_at:
                    continue
                if failure is None:
                    return False
                raise SourceError(
                    f"{failure}; gone at {self._last_seconds:.1f} s and not back within "
                    f"{self._options.max_outage_seconds:g} s"
                ) from error
            self._reader.start_clock = lambda: self._last_seconds + time.monotonic() - lost_at
            return True
        return False

    def report(self) -> SourceReport:
        """What all connections together gave."""
        now = self._reader.report()
        past = self._past
        if past is None:
            return now
        warnings = tuple(dict.fromkeys((*past.warnings, *self._outages, *now.warnings)))
        return replace(
            past,
            frames=past.frames + now.frames,
            last_pts=max(past.last_pts, now.last_pts),
            lost_frames=past.lost_frames + now.lost_frames,
            warnings=warnings[-MAX_WARNINGS:],
        )

    def close(self) -> None:
        """Free the connection."""
        self._reader.close()
