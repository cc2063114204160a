"""Events across segment borders: said twice, cut in two, turned round, out of order.

A decoder that sees one segment at a time may say an event in two neighbouring segments, or end it at the border and say
the rest afterwards. ``EventTracker`` decides what leaves the stream. It is a value with pure functions; what it must
remember is in ``TrackerState``, bounded and a value too, so it is saved and forked with the model's state.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from longtake.errors import ConfigError
from longtake.types import Event

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerState:
    """What the tracker remembers of one stream."""

    recent: tuple[Event, ...] = ()
    """Events that left last, oldest first; at most ``EventTracker.history``."""
    held: tuple[Event, ...] = ()
    """Events that ended at the last border and wait for the next segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTracker:
    """Rules by which the events of a segment become the events of the stream."""

    min_overlap: float = 0.5
    """Same words and at least this share of the shorter of two spans in common: one event. In (0, 1]."""
    min_seconds: float = 0.05
    """Shortest event; one that is shorter, or ends before it starts, gets this length, its end kept."""
    hold_seconds: float = 0.0
    """An event that ends less than this before the border waits one segment for a better account or its other half; 0:
    every event leaves at once, and a second account of it is left out."""
    monotone: bool = False
    """No event starts before the end of the one before; what lies wholly inside earlier ones is left out."""
    history: int = 32
    """Events remembered, to recognise one that is said again."""

    def __post_init__(self) -> None:
        if not 0 < self.min_overlap <= 1:
            raise ConfigError(f"tracker: min_overlap is {self.min_overlap}, expected above 0 and at most 1")
        if not self.min_seconds > 0 or self.hold_seconds < 0 or self.history < 1:
            raise ConfigError(
                f"tracker: min_seconds is {self.min_seconds}, hold_seconds {self.hold_seconds} and history "
                f"{self.history}; expected above 0, at least 0 and at least 1"
            )

    def track(
        self, state: TrackerState, events: Iterable[Event], *, now_seconds: float = math.inf
    ) -> tuple[TrackerState, list[Event]]:
        """Take in what was said of one segment; give what leaves, by time of end.

        Args:
            now_seconds: Video time seen so far, the segment's end; nothing can have ended later.
        """
        pool = [(event, True) for event in state.held]
        for event in self._sound(events, now_seconds):
            if not self._known(state, event):
                pool.append(self._gather(pool, event))
        border = now_seconds - self.hold_seconds
        waiting = tuple(event for event, _ in pool if event.end_seconds > border)
        state, leaving = self._release(state, [event for event, _ in pool if event.end_seconds <= border])
        return replace(state, held=waiting), leaving

    def finish(self, state: TrackerState) -> tuple[TrackerState, list[Event]]:
        """The stream has ended: what was held leaves."""
        return self._release(replace(state, held=()), list(state.held))

    def _gather(self, pool: list[tuple[Event, bool]], event: Event) -> tuple[Event, bool]:
        """Take every other account of ``event``, and its held other half, out of ``pool``; give the whole."""
        held = False
        while True:
            gaps = [self.hold_seconds if held or old_held else None for _, old_held in pool]
            alike = [index for index, gap in enumerate(gaps) if self._same(pool[index][0], event, gap)]
            if not alike:
                return event, held
            old, old_held = pool.pop(alike[0])
            event, held = _one_of(old, event), held or old_held

    def _known(self, state: TrackerState, event: Event) -> bool:
        return any(self._same(old, event) for old in state.recent)

    def _same(self, one: Event, other: Event, gap_seconds: float | None = None) -> bool:
        """Whether two accounts are of one event; with ``gap_seconds`` also two halves no further apart than that."""
        if _words(one) != _words(other):
            return False
        apart = max(one.start_seconds, other.start_seconds) - min(one.end_seconds, other.end_seconds)
        shorter = min(one.end_seconds - one.start_seconds, other.end_seconds - other.start_seconds)
        return -apart >= self.min_overlap * shorter or (gap_seconds is not None and apart <= gap_seconds)

    def _release(self, state: TrackerState, events: list[Event]) -> tuple[TrackerState, list[Event]]:
        leaving = [event for event in events if not self._known(state, event)]
        leaving.sort(key=lambda event: (event.end_seconds, event.start_seconds, event.text))
        if self.monotone:
            leaving = self._in_line(state, leaving)
        recent = (*state.recent, *leaving)[-self.history :]
        return replace(state, recent=recent), leaving

    def _in_line(self, state: TrackerState, events: list[Event]) -> list[Event]:
        border = max((event.end_seconds for event in state.recent), default=0.0)
        line: list[Event] = []
        for event in events:
            start = max(event.start_seconds, border)
            if event.end_seconds - start < self.min_seconds:
                logger.info("left out, inside an earlier event: %s", event)
                continue
            line.append(replace(event, start_seconds=start))
            border = event.end_seconds
        return line

    def _sound(self, events: Iterable[Event], now_seconds: float) -> list[Event]:
        """Events that can be: finite times with start before end, ended by now, with words."""
        sound: list[Event] = []
        for event in events:
            if not (math.isfinite(event.start_seconds) and math.isfinite(event.end_seconds)):
                logger.warning("left out, its times are not numbers: %s", event)
                continue
            if not event.text.strip():
                logger.info("left out, it has no words: %s", event)
                continue
            end = max(min(event.end_seconds, now_seconds), self.min_seconds)
            start = max(min(event.start_seconds, end - self.min_seconds), 0.0)
            sound.append(replace(event, start_seconds=start, end_seconds=end))
        return sound


def _one_of(one: Event, other: Event) -> Event:
    """The span of both, in the words of the later-ended, which was given having seen more."""
    first = min(one, other, key=lambda event: event.start_seconds)
    last = max(one, other, key=lambda event: event.end_seconds)
    return replace(
        last,
        start_seconds=first.start_seconds,
        start_clamped=first.start_clamped,
        score=max(one.score, other.score),
    )


def _words(event: Event) -> str:
    return " ".join(event.text.casefold().split()).rstrip(" .!")
