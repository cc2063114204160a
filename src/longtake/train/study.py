"""Studies: several recipes that differ in one thing, trained on the same material and scored on the same unseen videos.

A study is a table of a paper in kind. Its rows share all that the study's recipe says, and each says where it differs.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longtake.config import merged
from longtake.errors import ConfigError
from longtake.files import write_whole
from longtake.train.log import MetricsLog
from longtake.train.loop import TrainProgress
from longtake.train.recipe import Recipe
from longtake.train.run import VALID, build_run, recipe_from, train
from longtake.train.study_picture import picture

SCORES = {
    "cider": "CIDEr",
    "soda_d": "SODA (IoU)",
    "f1": "F1",
    "miou": "mIoU",
    "exact": "exact",
    "memory_first_back": "first/back",
    "memory_count": "counts",
}
"""Columns of a study of captions: scores by their names in ``longtake.eval.captions.caption_scores``, and heads."""


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """One run of a study."""

    name: str
    recipe: dict[str, Any] = field(default_factory=dict)
    """Where it differs from the study's recipe."""
    line: str = ""
    """In the picture, rows of one line are joined."""
    at: float = 0.0
    """Where on that line."""
    paper: dict[str, float] = field(default_factory=dict)
    """What the paper has for it, by the name of the score."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table to be: what all rows share, and the rows."""

    name: str
    title: str
    source: str
    """The paper's table that this is in kind."""
    recipe: dict[str, Any]
    rows: tuple[StudyRow, ...]
    columns: dict[str, str] = field(default_factory=lambda: dict(SCORES))
    """Names of the run's scores, and their heads."""
    along: str = ""
    """What the heads that are numbers, or the rows' ``at``, are of; the picture then has lines instead of bars."""
    costs: dict[str, str] = field(default_factory=dict)
    """Other scores that the lines are drawn over too: their names without ``_HEAD``, and what they are."""

    def __post_init__(self) -> None:
        names = [slug(row.name) for row in self.rows]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"study {self.name} has the rows {names}, expected one or more with different names")

    @property
    def numbers(self) -> dict[str, str]:
        """Heads that are numbers, with the names of their columns."""
        return {head: name for name, head in self.columns.items() if head.isdecimal()}

    @property
    def names(self) -> list[str]:
        """All scores that its table and its picture show."""
        return [*self.columns, *(f"{cost}_{head}" for cost in self.costs for head in self.numbers)]

    def recipe_of(self, row: StudyRow) -> Recipe:
        fields = merged({"name": f"{self.name}-{slug(row.name)}"} | self.recipe, row.recipe)
        return recipe_from(fields, where=f"study {self.name}, row {row.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyProgress:
    """Where a study stands, after each training step."""

    row: StudyRow
    number: int
    """Of the row, from 1."""
    run: TrainProgress


def run_study(study: Study, folder: Path) -> Iterator[StudyProgress]:
    """Train the rows that have not been trained in ``folder`` yet; a killed study goes on where it was."""
    rows = [(n, row, study.recipe_of(row), folder / study.name / slug(row.name)) for n, row in enumerate(study.rows, 1)]
    left = [(number, row, recipe, place) for number, row, recipe, place in rows if not scores_of(place, recipe)]
    for _, _, recipe, place in left:  # all are checked before the first one runs
        build_run(recipe, place, folder / "seen")
    for number, row, recipe, place in left:
        begun = (place / "checkpoint").is_dir()
        if not begun:
            (place / "metrics.jsonl").unlink(missing_ok=True)
        for progress in train(recipe, place, resume=begun, seen_folder=folder / "seen"):
            yield StudyProgress(row=row, number=number, run=progress)


def scores_of(place: Path, recipe: Recipe) -> dict[str, float]:
    """The scores at the end of a row's run; empty while it has not ended."""
    last = sum(stage.steps for stage in recipe.stages)
    ends = (row for row in MetricsLog(place / "metrics.jsonl").read() if row["step"] == last)
    for row in ends:
        found = {name.removeprefix(VALID): float(str(row[name])) for name in row if name.startswith(VALID)}
        if found:
            return found
    return {}


def table(study: Study, folder: Path) -> dict[str, dict[str, float]]:
    """Scores by row, of the rows that have been trained."""
    found = {row.name: scores_of(folder / study.name / slug(row.name), study.recipe_of(row)) for row in study.rows}
    return {
        row: {name: scores.get(name, float("nan")) for name in study.names} for row, scores in found.items() if scores
    }


def write_table(study: Study, rows: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """``STUDY.csv``, with the costs beside the columns, and ``STUDY.png`` in ``folder``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", *study.names])
    writer.writerows([row, *(f"{scores[name]:.4f}" for name in study.names)] for row, scores in rows.items())
    write_whole(folder / f"{study.name}.csv", text.getvalue())
    write_whole(folder / f"{study.name}.png", picture(study, rows))


def slug(name: str) -> str:
    """A row's name as that of its folder."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
