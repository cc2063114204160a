"""Labels as a person gives them, one by one or in a file, and how they are shown with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from longtake.errors import ConfigError

if TYPE_CHECKING:
    from longtake.types import Label

MAX_FILE_BYTES = 16_000_000
"""A longer file is no list of labels."""
MAX_LETTERS = 1000
"""Of one label."""
BAR_CELLS = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"


def read_labels(path: Path) -> tuple[str, ...]:
    """The labels in a file, one a line; empty lines and white space around labels do not count.

    Raises:
        ConfigError: It cannot be read, or cannot be a list of labels.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES} bytes; expected a text with one label a line")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no UTF-8 text; expected one label a line") from error
    except OSError as error:
        raise ConfigError(f"labels {path} cannot be read ({error.strerror or error}); check the path") from error
    return checked_labels((line.strip() for line in text.splitlines() if line.strip()), where=f"{path}: ")


def checked_labels(labels: Iterable[str], *, where: str = "") -> tuple[str, ...]:
    """The same labels. Raises ConfigError where they are fewer than two, one is empty or odd, or comes twice."""
    found = tuple(labels)
    seen: set[str] = set()
    for label in found:
        if not label.strip():
            raise ConfigError(f"{where}a label is empty; put it in words")
        if len(label) > MAX_LETTERS:
            raise ConfigError(f"{where}a label has {len(label)} characters, expected at most {MAX_LETTERS}")
        if odd := [letter for letter in label if not letter.isprintable()]:
            raise ConfigError(f"{where}label {label[:40]!r} contains {odd[0]!r}, which is not text; remove it")
        if label in seen:
            raise ConfigError(f"{where}label {label!r} is given twice; give each once")
        seen.add(label)
    if len(found) < 2:
        raise ConfigError(f"{where}got {len(found)} label{'s' * (len(found) != 1)}, expected two or more to compare")
    return found


def bar(share: float) -> str:
    """A share from 0 to 1 as a bar of ``BAR_CELLS`` cells, to an eighth of one."""
    eighths = round(max(0.0, min(1.0, share)) * BAR_CELLS * 8)
    whole, rest = divmod(eighths, 8)
    return (EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")).ljust(BAR_CELLS)


def label_lines(labels: Iterable[Label]) -> list[str]:
    """A line for each label: its probability in figures and as a bar, and its name."""
    return [f"{label.probability:.3f}  {bar(label.probability)}  {' '.join(label.name.split())}" for label in labels]
