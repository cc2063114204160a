"""Live sources: connect again when they go away, and keep time going meanwhile."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from longtake.errors import SourceError
from longtake.types import SourceReport
from longtake.video.address import Address
from longtake.video.options import ReadOptions
from longtake.video.reader import Reader, TimedPicture

logger = logging.getLogger(__name__)

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
        self._reader: Reader | None = Reader(address, options)
        self._past: SourceReport | None = None
        self._outages: tuple[str, ...] = ()
        self._frame_at: float | None = None
        self._last_seconds = 0.0
        self._delay, self._num_tries = FIRST_DELAY_SECONDS, 0

    total_seconds: float | None = None

    def pictures(self, start_seconds: float = 0.0) -> Iterator[TimedPicture]:
        """Pictures across all connections; the first one is at ``start_seconds``, since live time cannot be sought."""
        reader = self._reader
        assert reader is not None
        if start_seconds > 0:
            reader.start_clock = lambda: start_seconds
        is_back = False
        while reader is not None:
            failure: SourceError | None = None
            try:
                for picture in reader.pictures():
                    if is_back:
                        picture = self._mark_outage(picture)
                        is_back = False
                    self._frame_at = time.monotonic()
                    self._last_seconds = picture.pts_seconds
                    self._delay, self._num_tries = FIRST_DELAY_SECONDS, 0
                    yield picture
            except SourceError as error:
                failure = error
                if self._frame_at is None:
                    raise
            reader = self._connect_again(failure)
            is_back = True

    def _mark_outage(self, picture: TimedPicture) -> TimedPicture:
        gap = picture.pts_seconds - self._last_seconds
        line = f"no frames for {gap:.1f} s after {self._last_seconds:.1f} s: the source was gone and came back"
        self._outages = (*self._outages, line)[-MAX_WARNINGS:]
        return replace(picture, outage_seconds=gap)

    def _connect_again(self, failure: SourceError | None) -> Reader | None:
        """A new connection, or None where the source had ended and is not coming back."""
        assert self._frame_at is not None
        lost_at = self._frame_at
        self.close()
        patience_seconds = self._options.max_outage_seconds
        if self._num_tries == 0 and patience_seconds:
            logger.warning("%s: no more data; trying again for up to %g s", self._address.text, patience_seconds)
        while self._num_tries == 0 or time.monotonic() < lost_at + self._options.max_outage_seconds:
            if not self._sleep(self._delay):
                return None
            self._num_tries += 1
            self._delay = min(2 * self._delay, MAX_DELAY_SECONDS)
            try:
                self._reader = Reader(self._address, self._options)
            except SourceError as error:
                logger.info("%s: not back yet: %s", self._address.text, error)
                continue
            self._reader.start_clock = lambda: self._last_seconds + time.monotonic() - lost_at
            return self._reader
        if failure is None:
            return None
        raise SourceError(
            f"{failure}; gone at {self._last_seconds:.1f} s and not back within {self._options.max_outage_seconds:g} s"
        )

    def report(self) -> SourceReport:
        """What all connections together gave."""
        now = self._reader.report() if self._reader is not None else None
        past = self._past
        if past is None or now is None:
            report = now or past
            assert report is not None
            return replace(report, warnings=tuple(dict.fromkeys((*report.warnings, *self._outages))))
        warnings = tuple(dict.fromkeys((*past.warnings, *self._outages, *now.warnings)))
        return replace(
            past,
            frames=past.frames + now.frames,
            last_pts=max(past.last_pts, now.last_pts),
            lost_frames=past.lost_frames + now.lost_frames,
            warnings=warnings[-MAX_WARNINGS:],
        )

    def close(self) -> None:
        """Free the connection; what it gave stays in the report."""
        if self._reader is not None:
            self._past = self.report()
            self._reader.close()
            self._reader = None
