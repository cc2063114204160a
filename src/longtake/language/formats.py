"""Events as text, JSON lines, one JSON file, SRT or WebVTT.

Times are rounded to whole milliseconds first and everything is written from those, so ``1.9996`` is ``00:00:02,000``
and never ``,1000``, and every format tells the same time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from longtake.errors import ConfigError
from longtake.types import Event

Format: TypeAlias = Literal["text", "jsonl", "json", "srt", "vtt"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: Mapping[str, Format] = {".txt": "text", ".jsonl": "jsonl", ".json": "json", ".srt": "srt", ".vtt": "vtt"}
LINE_FORMATS: frozenset[Format] = frozenset({"text", "jsonl"})
"""Formats that can be written event by event."""
ONE_VIDEO_FORMATS: frozenset[Format] = frozenset({"srt", "vtt"})
"""Formats that have no place for a second video."""

_ARROW = "\N{RIGHTWARDS ARROW}"
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_JSON_BREAKS = re.compile(r"[\x85\u2028\u2029]")
"""JSON lets these stand as they are, but some readers take them for the end of a line."""


def format_of(path: str | Path) -> Format:
    """The format that a file's suffix names. Raises ConfigError for a suffix that names none."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        known = " ".join(SUFFIXES)
        raise ConfigError(f"{path} ends in {suffix or 'no suffix'}, expected one of {known}; or say --format")
    return SUFFIXES[suffix]


def render(results: Mapping[str, Sequence[Event]], to: Format, *, monotone: bool = False) -> str:
    """The whole file for the events of each video, in the given format.

    Args:
        monotone: No two cues of SRT or WebVTT at once: each ends no later than the next one starts.

    Raises:
        ConfigError: Several videos in a format that has room for one.
    """
    if to in ONE_VIDEO_FORMATS and len(results) > 1:
        raise ConfigError(f"{to} holds one video, got {len(results)}; write json or jsonl, or one video at a time")
    if to == "json":
        return to_json(results)
    if to in LINE_FORMATS:
        return "".join(_lines(results, to))
    events = [event for events in results.values() for event in events]
    return to_srt(events, monotone=monotone) if to == "srt" else to_vtt(events, monotone=monotone)


def text_line(event: Event) -> str:
    """``0:12.25-0:15.00  the red car jumps``, without a line break."""
    start, end = span_milliseconds(event)
    return f"{clock_text(start)}-{clock_text(max(end, start + 10))}  {one_line(event.text)}"


def json_line(event: Event, video: str) -> str:
    """One event as the JSON object of the command line, without a line break."""
    start, end = span_milliseconds(event)
    event = replace(event, start_seconds=start / 1000, end_seconds=end / 1000, text=printable(event.text))
    line = json.dumps(event.to_dict(printable(video)), ensure_ascii=False)
    return _JSON_BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def to_json(results: Mapping[str, Sequence[Event]]) -> str:
    """ActivityNet's results layout with scores, a line for each event; a video without events has an empty list."""
    videos = {printable(video): [_entry(event) for event in ordered(events)] for video, events in results.items()}
    lists = (
        f"{json.dumps(video, ensure_ascii=False)}: [{','.join(chr(10) + entry for entry in entries)}]"
        for video, entries in videos.items()
    )
    return '{"version": "VERSION 1.0", "results": {' + ",".join("\n" + one for one in lists) + "}}\n"


def to_srt(events: Iterable[Event], *, monotone: bool = False) -> str:
    """SubRip. It has no escapes: line breaks become blanks and ``-->`` an arrow, so that no cue ends inside a text."""
    cues = [(start, end, one_line(text).replace("-->", _ARROW)) for start, end, text in _cues(events, monotone)]
    return "".join(
        f"{number}\n{stamp(start, ',')} --> {stamp(end, ',')}\n{text}\n\n"
        for number, (start, end, text) in enumerate(cues, 1)
    )


def to_vtt(events: Iterable[Event], *, monotone: bool = False) -> str:
    """WebVTT; ``&``, ``<`` and ``>`` are escaped as the standard asks."""
    cues = _cues(events, monotone)
    return "WEBVTT\n\n" + "".join(
        f"{stamp(start, '.')} --> {stamp(end, '.')}\n{_vtt_text(text)}\n\n" for start, end, text in cues
    )


def span_milliseconds(event: Event) -> tuple[int, int]:
    """Start and end in whole milliseconds: start at 0 or later, end at least one after it."""
    start = max(0, round(event.start_seconds * 1000))
    return start, max(start + 1, round(event.end_seconds * 1000))


def stamp(milliseconds: int, mark: str) -> str:
    """``00:00:12,250`` with ``mark`` before the milliseconds; hours get a third digit when they need it."""
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{mark}{milliseconds:03}"


def clock_text(milliseconds: int) -> str:
    """``0:12.25``, or ``1:02:03.50`` from an hour on."""
    hundredths = (milliseconds + 5) // 10
    seconds, hundredths = divmod(hundredths, 100)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{f'{hours}:{minutes:02}' if hours else minutes}:{seconds:02}.{hundredths:02}"


def ordered(events: Iterable[Event]) -> list[Event]:
    """By start, then end, as a player wants them."""
    return sorted(events, key=span_milliseconds)


def one_line(text: str) -> str:
    """``text`` on one line: breaks, control characters and runs of blanks become one blank."""
    return _BREAKS.sub(" ", printable(text)).strip()


def printable(text: str) -> str:
    """``text`` without lone surrogates (undecodable file names have them), which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _lines(results: Mapping[str, Sequence[Event]], to: Format) -> Iterable[str]:
    for video, events in results.items():
        if to == "text" and len(results) > 1:
            yield f"# {one_line(video)}\n"
        for event in ordered(events):
            yield (text_line(event) if to == "text" else json_line(event, video)) + "\n"


def _entry(event: Event) -> str:
    start, end = span_milliseconds(event)
    fields = {
        "sentence": printable(event.text),
        "timestamp": [start / 1000, end / 1000],
        "score": round(event.score, 4),
    }
    return json.dumps(fields, ensure_ascii=False)


def _cues(events: Iterable[Event], monotone: bool) -> list[tuple[int, int, str]]:
    """Start, end and text in time order; an event without visible text has none: an empty line ends the block."""
    cues = [(*span_milliseconds(event), event.text) for event in ordered(events) if one_line(event.text)]
    if not monotone:
        return cues
    apart: list[tuple[int, int, str]] = []
    for start, end, text in cues:
        if apart:
            before_start, before_end, before_text = apart[-1]
            start = max(start, before_start + 1)
            apart[-1] = (before_start, min(before_end, start), before_text)
        apart.append((start, max(end, start + 1), text))
    return apart


def _vtt_text(text: str) -> str:
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
