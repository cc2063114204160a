"""The numbers of the public dense-captioning evaluators, found under LONGTAKE_SHARED whatever they are called."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from longtake.eval import read_predictions, read_references
from longtake.eval.annotations import Stories

ROOT = Path(os.environ.get("LONGTAKE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "fixtures" / "dvc"
CASES = sorted(path.parent for path in ROOT.glob("cases/*/case.json"))
UNITS = sorted(ROOT.glob("unit/*.json"))
ABSENT = f"the dense-captioning fixtures are not at {ROOT}; set LONGTAKE_SHARED"


def units(name: str) -> list[Any]:
    """Unit files whose names begin so, or one skipped parameter where there are none."""
    found = [pytest.param(path, id=path.stem) for path in UNITS if path.stem.startswith(name)]
    return found or [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]


def cases(having: Callable[[DvcCase], bool] = lambda case: True) -> list[Any]:
    """One parameter per case that has what a test needs, or one skipped parameter where there are no fixtures."""
    found = [pytest.param(path, id=path.name) for path in CASES if having(case_at(path))]
    return found or [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]


@cache
def case_at(folder: Path) -> DvcCase:
    return DvcCase(folder)


def all_captions() -> set[str]:
    """Every sentence of every case, so that they can be tokenised in one go."""
    data = [stories for path in CASES for stories in (case_at(path).predictions, *case_at(path).references)]
    return {event.text for stories in data for story in stories.values() for event in story}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


class DvcCase:
    """One case: its inputs as longtake reads them, the official results, and which official defects it runs into."""

    def __init__(self, folder: Path) -> None:
        about = read(folder / "case.json")
        self.reference_files = [ROOT / path for path in about["references"]]
        self.references: list[Stories] = [read_references(path) for path in self.reference_files]
        self.predictions: Stories = read_predictions(folder / "pred.json")
        self.max_proposals: int = about.get("max_proposals", 1000)
        self.expected: dict[str, Any] = read(folder / "expected.json")
        self.protocols: dict[str, Any] = self.expected["protocols"]
        per_video = folder / "expected_per_video.json"
        self.per_video: dict[str, Any] | None = read(per_video) if per_video.exists() else None

    @cached_property
    def loses_lines(self) -> bool:
        """A line break other than the line feed shifts all later captions in the official tokeniser wrapper."""
        texts = [
            event.text for data in (self.predictions, *self.references) for story in data.values() for event in story
        ]
        return any(set(text) & set("\r\v\f") for text in texts)

    @property
    def has_empty_list(self) -> bool:
        """Official precision then divides by a stale number, unless it crashes."""
        return any(not story for story in self.predictions.values())

    @property
    def too_deep(self) -> bool:
        """The official matching recurses once per event."""
        return "RecursionError" in json.dumps(self.protocols["soda_repo"])

    @property
    def scenic_matches_in_order(self) -> bool:
        """scenic permutes METEOR columns past ten predictions and forgets to sort by time."""
        data = (self.predictions, *self.references)
        starts = [[event.start_seconds for event in story] for stories in data for story in stories.values()]
        few = all(len(story) <= 10 for story in self.predictions.values())
        return few and all(times == sorted(times) for times in starts)
