"""Fields of an annotation, checked as they are taken: what is wrong is told with its place in the file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from longtake.errors import ConfigError


class Record:
    """A JSON object, or a row of a table, and where it stands."""

    def __init__(self, value: object, where: str, expected: str = "an object with named fields") -> None:
        """``where``: file and place in it, as messages begin. Raises ConfigError if ``value`` is no object."""
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: got {short(value)}, expected {expected}")
        self.fields: Mapping[str, Any] = value
        self.where = where

    def has(self, key: str) -> bool:
        return key in self.fields

    def value(self, key: str, expected: str) -> Any:
        """Any value that is there."""
        if key not in self.fields:
            there = ", ".join(map(repr, list(self.fields)[:6])) or "nothing"
            raise ConfigError(f"{self.where}: has no {key!r}, expected {expected}; it has {there}")
        return self.fields[key]

    def wrong(self, key: str, expected: str) -> ConfigError:
        """The error for a value that cannot be."""
        return ConfigError(f"{self.where}: {key} is {short(self.fields.get(key))}, expected {expected}")

    def text(self, key: str, expected: str = "text", *, empty: bool = False) -> str:
        """Text without blanks around it."""
        found = self.value(key, expected)
        if not isinstance(found, str) or not (empty or found.strip()):
            raise self.wrong(key, expected)
        return found.strip()

    def name(self, key: str) -> str:
        """An id: text, or a whole number that a writer took for one."""
        found = self.value(key, "an id")
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        return self.text(key, "an id")

    def one_of(self, key: str, known: Sequence[str]) -> str:
        """One of a few words."""
        expected = f"one of {', '.join(known)}"
        if (found := self.text(key, expected)) not in known:
            raise self.wrong(key, expected)
        return found

    def integer(self, key: str, least: int, most: int | None = None, *, digits: bool = False) -> int:
        """A whole number from ``least`` to ``most``; ``digits``: written as text, as tables have it."""
        expected = f"a whole number from {least} to {most}" if most is not None else f"a whole number, {least} or more"
        found = self.value(key, expected)
        if digits and isinstance(found, str) and re.fullmatch(r"-?[0-9]{1,9}", found.strip()):
            found = int(found)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if (
            isinstance(found, bool)
            or not isinstance(found, int)
            or found < least
            or (most is not None and found > most)
        ):
            raise self.wrong(key, expected)
        return found

    def number(self, key: str, *, above: float | None = None) -> float:
        """A finite number: 0 or more, or above ``above``."""
        expected = "a number, 0 or more" if above is None else f"a number above {above:g}"
        found = seconds(self.value(key, expected))
        if found is None or (above is not None and found <= above):
            raise self.wrong(key, expected)
        return found

    def items(self, key: str, expected: str, *, empty: bool = False) -> list[Any]:
        found = self.value(key, expected)
        if not isinstance(found, list) or not (found or empty):
            raise self.wrong(key, expected)
        return found

    def texts(self, key: str, *, least: int = 2, most: int = 26) -> tuple[str, ...]:
        """Texts without blanks around them, such as options."""
        expected = f"{least} to {most} texts" if least != most else f"{least} texts"
        found = self.items(key, expected)
        if not least <= len(found) <= most or not all(isinstance(one, str) and one.strip() for one in found):
            raise self.wrong(key, expected)
        return tuple(one.strip() for one in found)

    def records(self, key: str, expected: str, *, empty: bool = False) -> list[Record]:
        """A list of objects."""
        found = self.items(key, expected, empty=empty)
        return [Record(one, f"{self.where}, {key} {number}", expected) for number, one in enumerate(found)]


def records_of(value: object, where: str, expected: str) -> list[Record]:
    """A file that is a list of objects. Raises ConfigError if it is something else, or empty."""
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where}: got {short(value)}, expected a list of {expected}")
    return [Record(one, f"{where}, entry {number}", expected) for number, one in enumerate(value)]


def named_records(value: object, where: str, expected: str) -> dict[str, Record]:
    """A file that is an object of objects, by name. Raises as ``records_of``."""
    found = Record(value, where, f"an object with {expected} for each video").fields
    if not found:
        raise ConfigError(f"{where}: got {{}}, expected an object with {expected} for each video")
    return {name: Record(one, f"{where}, {name!r}", expected) for name, one in found.items()}


def seconds(value: object) -> float | None:
    """A finite number, 0 or more; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def span(value: object) -> tuple[float, float] | None:
    """Two times in order, which may be equal; None for anything else."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    start, end = seconds(value[0]), seconds(value[1])
    return None if start is None or end is None or end < start else (start, end)


def unique(keys: Sequence[str], where: str, what: str) -> None:
    """Raise ConfigError for a key that stands twice."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise ConfigError(f"{where}: {what} {key!r} stands twice, expected each once; download the file anew")
        seen.add(key)


def short(value: object) -> str:
    """A value on one line, short enough for a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
