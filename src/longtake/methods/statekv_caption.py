"""Timed events from a model that only talks: what it says of a stretch of video, on our clock.

The stretch is known, so an event without times of its own lasts that long. Times that the model states are taken if
they lie within the stretch, else drawn to its edge, and the event says so.
"""

from __future__ import annotations

import logging
import re

from longtake.types import Answer, Event

logger = logging.getLogger(__name__)

_TIME = r"(?:(\d+):)?(\d+(?:\.\d+)?)\s*(?:s|secs?|seconds?)?\b"
_SPAN = re.compile(
    rf"^[\s\[(<*#-]*(?:(?:from|between|at)\s+)?{_TIME}\s*(?:-|–|—|to|and|until)\s*{_TIME}[\s\])>*:,.-]*(?P<text>.*)$",  # noqa: RUF001
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(nothing|none|no|n/?a)"
    r"|nothing ((else|new|more|much|really|significant|notable|was|is) )*(happen|chang|occur|took place)[^,;]*"
    r"|(there (is|are|was|were) )?no (new |significant |notable )?(change|event|activity|action|movement)s?[^,;]*",
    re.IGNORECASE,
)


def events_of(answer: Answer, start_seconds: float, end_seconds: float) -> list[Event]:
    """The events in a model's answer about a stretch of video; none if it says that nothing happened.

    Args:
        answer: Free text; each line that begins with a time span is an event of its own.
        start_seconds: Where the stretch begins.
        end_seconds: Where it ends.
    """
    if "repeats" in answer.flags:
        logger.warning(
            "left out, the model repeats itself at %.1f to %.1f s: %.60r", start_seconds, end_seconds, answer.text
        )
        return []
    events: list[Event] = []
    rest: list[str] = []
    for line in answer.text.splitlines():
        found = _SPAN.match(line)
        if found is None:
            rest.append(line.strip())
        elif _says_something(found["text"]):
            start, end = (float(found[at] or 0) * 60 + float(found[at + 1]) for at in (1, 3))
            events.append(_clamped(found["text"].strip(), start, end, start_seconds, end_seconds))
    text = " ".join(part for part in rest if part)
    if _says_something(text) and not (events and text.endswith(":")):
        events.append(Event(start_seconds=start_seconds, end_seconds=end_seconds, text=text))
    return sorted(events, key=lambda event: (event.end_seconds, event.start_seconds))


def _says_something(text: str) -> bool:
    words = text.strip(" \t.!\"'*")
    return bool(words) and _NOTHING.fullmatch(words) is None


def _clamped(text: str, start: float, end: float, first: float, last: float) -> Event:
    """The event within ``first`` to ``last``; one wholly outside, or that ends before it starts, lasts all of it."""
    low, high = max(start, first), min(end, last)
    if low >= high:
        return Event(start_seconds=first, end_seconds=last, text=text, start_clamped=True, end_clamped=True)
    return Event(start_seconds=low, end_seconds=high, text=text, start_clamped=start < first, end_clamped=end > last)
