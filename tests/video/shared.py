"""Where the shared cases are, and how their expectations are written."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("LONGTAKE_SHARED", ROOT.parent / "shared"))


def cases(folder: str) -> list[dict[str, Any]]:
    """Rows of a manifest; none where the folder is absent."""
    path = SHARED / folder / "manifest.json"
    if not path.is_file():
        return []
    manifest = json.loads(path.read_text(encoding="utf-8"))
    return manifest["files"] if isinstance(manifest, dict) else manifest


@dataclass(frozen=True)
class Bounds:
    """Alternatives, each a range."""

    ranges: tuple[tuple[float, float], ...]

    def __contains__(self, value: float) -> bool:
        return any(low <= value <= high for low, high in self.ranges)


def bounds(expected: float | str, *, slack: float) -> Bounds:
    """Read "250", "about 174 to 177 of 358", "118 or 119", "49 of 50", "325 (stream 0) or 390 (stream 3)".

    Args:
        expected: A number or words with numbers; what follows "of" is the total, what stands in brackets is a remark.
        slack: How far "about" reaches, as a share; other numbers are exact to a thousandth.
    """
    if isinstance(expected, (int, float)):
        return Bounds(((expected - 0.002, expected + 0.002),))
    text = re.sub(r"\bof\s+[\d,.]+", "", re.sub(r"\([^)]*\)", "", expected))
    room = slack if re.search(r"about|~|roughly", text) else 0.0
    ranges = []
    for part in re.split(r"\bor\b|/", text):
        found = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", part)]
        if found:
            low, high = min(found), max(found)
            ranges.append((low * (1 - room) - 0.002, high * (1 + room) + 0.002))
    assert ranges, f"no number in {expected!r}"
    return Bounds(tuple(ranges))


def sizes(expected: dict[str, Any]) -> list[tuple[int, int]]:
    """Sizes that the report may give: after rotation if there is one, else the first."""
    named = expected.get("size_after_rotation") or expected.get("size") or (expected.get("sizes") or [None])[0]
    if not named:
        return []
    return [(int(width), int(height)) for width, height in re.findall(r"(\d+)x(\d+)", named)]
