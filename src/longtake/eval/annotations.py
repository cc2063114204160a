"""Timed sentences, and how they are read from files: references, predictions and the marks of memory words.

References come in ActivityNet's layout, ``{video: {"duration", "timestamps": [[start, end], ...], "sentences":
[...]}}``, with an optional ``"memory"`` list beside ``"sentences"`` that holds, per event, a list of ``{"kind",
"word"}`` (Toybox writes it).

Predictions come in ActivityNet's layout, ``{"results": {video: [{"sentence", "timestamp":
[start, end]}, ...]}}``, or as the JSON lines of ``longtake caption --format jsonl``. Everything is checked while it is
read: a score computed from a misread file is worse than none. Segments that end before they start are kept, because
every public protocol gives them a tIoU of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from longtake.errors import ConfigError, SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMark:
    """Words of a sentence that are right or wrong depending on what was seen before the event."""

    kind: str
    """The kind of statement: ``first_back``, ``count``, ``place`` in Toybox."""
    word: str
    """The answer, as it stands in the sentence; one of the kind's alternatives."""
    needed: bool = True
    """False where the words happen to be true without memory (an entrance that is the first)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSentence:
    """One annotated or predicted event of a video."""

    start_seconds: float
    end_seconds: float
    text: str
    memory: tuple[MemoryMark, ...] = ()
    """References only."""


@runtime_checkable
class EventLike(Protocol):
    """What ``longtake.types.Event`` offers, so that a training loop can score its events without a file."""

    @property
    def start_seconds(self) -> float: ...
    @property
    def end_seconds(self) -> float: ...
    @property
    def text(self) -> str: ...


Story: TypeAlias = tuple[TimedSentence, ...]
"""The events of one video, in file order."""
Stories: TypeAlias = Mapping[str, Story]


def read_references(path: str | Path) -> Stories:
    """Read one reference file.

    Raises:
        SourceError: the file is missing or is not JSON.
        ConfigError: it is JSON of another layout.
    """
    return references_from(read_json(Path(path)), origin=str(path))


def read_predictions(path: str | Path) -> Stories:
    """Read one prediction file: ActivityNet's layout, or if it ends in ``.jsonl`` the lines of ``caption`` or ``eval``.

    Raises as ``read_references``.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        return _predictions_from_lines(_read_text(path), origin=str(path))
    return predictions_from(read_json(path), origin=str(path))


def references_from(data: object, *, origin: str = "references") -> Stories:
    """Check and convert references that are already in memory, in ActivityNet's layout."""
    videos = _mapping(data, origin, 'references {video: {"timestamps": [[start, end], ...], "sentences": [...]}}')
    if not videos:
        raise ConfigError(f"{origin}: holds no videos, expected at least one with events to score against")
    return {video: _reference_story(entry, f"{origin}: video {video!r}") for video, entry in videos.items()}


def predictions_from(data: object, *, origin: str = "predictions") -> Stories:
    """Check and convert predictions: ActivityNet's layout, its ``results`` part alone, or events per video."""
    layout = 'predictions {"results": {video: [{"sentence": ..., "timestamp": [start, end]}, ...]}}'
    videos = _mapping(data, origin, layout)
    if "results" in videos:
        videos = _mapping(videos["results"], f'{origin}: "results"', layout)
    elif "version" in videos or any(isinstance(entry, Mapping) for entry in videos.values()):
        raise ConfigError(f"{origin}: has no 'results', expected {layout}")
    return {video: _predicted_story(entry, f"{origin}: video {video!r}") for video, entry in videos.items()}


def _reference_story(entry: object, origin: str) -> Story:
    fields = _mapping(entry, origin, '"timestamps" and "sentences"')
    times = _sequence(fields, "timestamps", origin)
    texts = _sequence(fields, "sentences", origin)
    marks = _sequence(fields, "memory", origin) if "memory" in fields else [[]] * len(texts)
    if not len(times) == len(texts) == len(marks):
        raise ConfigError(
            f"{origin}: {len(times)} timestamps, {len(texts)} sentences and {len(marks)} memory marks, "
            "expected as many of each"
        )
    if not times:
        raise ConfigError(f"{origin}: has no events, so nothing there can be scored; remove it from the references")
    return tuple(
        _timed_sentence(time, text, f"{origin}, event {number}", memory=_memory(mark, f"{origin}, event {number}"))
        for number, (time, text, mark) in enumerate(zip(times, texts, marks, strict=True))
    )


def _predicted_story(entry: object, origin: str) -> Story:
    if isinstance(entry, str | bytes | Mapping) or not isinstance(entry, Iterable):
        raise ConfigError(f"{origin}: got {_short(entry)}, expected a list of events")
    return tuple(_predicted(event, f"{origin}, event {number}") for number, event in enumerate(entry))


def _predicted(event: object, origin: str) -> TimedSentence:
    if isinstance(event, EventLike):
        return _timed_sentence((event.start_seconds, event.end_seconds), event.text, origin)
    fields = _mapping(event, origin, '{"sentence": ..., "timestamp": [start, end]}')
    for key in ("sentence", "timestamp"):
        if key not in fields:
            raise ConfigError(f'{origin}: has no "{key}", expected {{"sentence": ..., "timestamp": [start, end]}}')
    return _timed_sentence(fields["timestamp"], fields["sentence"], origin)


def _memory(marks: object, origin: str) -> tuple[MemoryMark, ...]:
    layout = 'memory marks [{"kind": ..., "word": ...}, ...]'
    if not isinstance(marks, list | tuple):
        raise ConfigError(f"{origin}: got {_short(marks)}, expected {layout}")
    found: list[MemoryMark] = []
    for mark in marks:
        fields = _mapping(mark, origin, layout)
        kind, word = fields.get("kind"), fields.get("word")
        if not isinstance(kind, str) or not isinstance(word, str) or not word.strip():
            raise ConfigError(f"{origin}: got {_short(mark)}, expected {layout}")
        found.append(MemoryMark(kind=kind, word=word, needed=bool(fields.get("needs_memory", True))))
    return tuple(found)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer beyond all floats
        return False


def _timed_sentence(time: object, text: object, origin: str, *, memory: tuple[MemoryMark, ...] = ()) -> TimedSentence:
    if not isinstance(time, Sequence) or isinstance(time, str) or len(time) != 2:
        raise ConfigError(f"{origin}: its time is {_short(time)}, expected [start, end] in seconds")
    for bound in time:
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not _is_finite(bound):
            raise ConfigError(f"{origin}: its time holds {_short(bound)}, expected a finite number of seconds")
    if not isinstance(text, str):
        raise ConfigError(f"{origin}: its sentence is {_short(text)}, expected text")
    return TimedSentence(start_seconds=float(time[0]), end_seconds=float(time[1]), text=text, memory=memory)


def _predictions_from_lines(text: str, *, origin: str) -> Stories:
    stories: dict[str, list[TimedSentence]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{origin}: line {number}"
        fields = _mapping(_parse(line, where), where, '{"video", "start", "end", "sentence"}')
        if "fingerprint" in fields:
            continue  # the head of a file that ``longtake eval`` goes on from
        if "events" in fields:
            stories.setdefault(str(fields.get("video")), []).extend(_predicted_story(fields["events"], where))
            continue
        if missing := [key for key in ("video", "start", "end", "sentence") if key not in fields]:
            raise ConfigError(f'{where}: has no "{missing[0]}", expected {{"video", "start", "end", "sentence"}}')
        event = _timed_sentence([fields["start"], fields["end"]], fields["sentence"], where)
        stories.setdefault(str(fields["video"]), []).append(event)
    return {video: tuple(events) for video, events in stories.items()}


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise SourceError(f"cannot read {path}: {reason}; expected a JSON file") from error


def read_json(path: Path) -> object:
    """The content of a JSON file. Raises SourceError if it is missing or is not JSON."""
    return _parse(_read_text(path), str(path))


def _parse(text: str, origin: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        detail = " ".join(str(error).split())
        raise SourceError(f"{origin}: is not valid JSON ({detail}); expected one JSON object") from error


def _mapping(value: object, origin: str, expected: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{origin}: got {_short(value)}, expected {expected}")
    return value


def _sequence(fields: Mapping[str, object], key: str, origin: str) -> Sequence[object]:
    value = fields.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        got = f'"{key}" is {_short(value)}' if key in fields else f'has no "{key}"'
        raise ConfigError(f"{origin}: {got}, expected a list per video: timestamps [[start, end], ...] and sentences")
    return value


def _short(value: object) -> str:
    """A value on one line, short enough for an error message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
