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

from longtake.config import from_dict, merged
from longtake.errors import ConfigError
from longtake.files import write_whole
from longtake.train.log import MetricsLog
from longtake.train.loop import TrainProgress
from longtake.train.run import train
from longtake.train.sts_recipe import STSRecipe
from longtake.train.sts_run import model_config

SCORES = {
    "cider": "CIDEr",
    "soda_d": "SODA (IoU)",
    "f1": "F1",
    "miou": "mIoU",
    "exact": "exact",
    "memory_first_back": "first/back",
    "memory_count": "counts",
}
"""Scores of a study's table by their names in ``longtake.eval.captions.caption_scores``, and their column heads."""


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """One run of a study."""

    name: str
    recipe: dict[str, Any] = field(default_factory=dict)
    """Where it differs from the study's recipe."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table to be: what all rows share, and the rows."""

    name: str
    title: str
    source: str
    """The paper's table that this is in kind."""
    recipe: dict[str, Any]
    rows: tuple[StudyRow, ...]

    def __post_init__(self) -> None:
        names = [slug(row.name) for row in self.rows]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"study {self.name} has the rows {names}, expected one or more with different names")

    def recipe_of(self, row: StudyRow) -> STSRecipe:
        fields = merged({"name": f"{self.name}-{slug(row.name)}"} | self.recipe, row.recipe)
        return from_dict(STSRecipe, fields, where=f"study {self.name}, row {row.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyProgress:
    """Where a study stands, after each training step."""

    row: StudyRow
    number: int
    """Of the row, from 1."""
    run: TrainProgress


def run_study(study: Study, folder: Path) -> Iterator[StudyProgress]:
    """Train the rows that have not been trained in ``folder`` yet; a killed study goes on where it was."""
    recipes = [(row, study.recipe_of(row)) for row in study.rows]
    for _, recipe in recipes:  # all are checked before the first one runs
        model_config(recipe)
    for number, (row, recipe) in enumerate(recipes, 1):
        place = folder / study.name / slug(row.name)
        if scores_of(place, recipe):
            continue
        begun = (place / "checkpoint").is_dir()
        if not begun:
            (place / "metrics.jsonl").unlink(missing_ok=True)
        for progress in train(recipe, place, resume=begun, seen_folder=folder / "seen"):
            yield StudyProgress(row=row, number=number, run=progress)


def scores_of(place: Path, recipe: STSRecipe) -> dict[str, float]:
    """The scores at the end of a row's run; empty while it has not ended."""
    last = sum(stage.steps for stage in recipe.stages)
    rows = [row for row in MetricsLog(place / "metrics.jsonl").read() if row["step"] == last and "valid_f1" in row]
    return {name: float(str(rows[-1].get(f"valid_{name}", "nan"))) for name in SCORES} if rows else {}


def table(study: Study, folder: Path) -> dict[str, dict[str, float]]:
    """Scores by row, of the rows that have been trained."""
    found = {row.name: scores_of(folder / study.name / slug(row.name), study.recipe_of(row)) for row in study.rows}
    return {name: scores for name, scores in found.items() if scores}


def write_table(study: Study, rows: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """``STUDY.csv`` and ``STUDY.png`` in ``folder``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", *SCORES])
    writer.writerows([name, *(f"{scores[key]:.4f}" for key in SCORES)] for name, scores in rows.items())
    write_whole(folder / f"{study.name}.csv", text.getvalue())
    write_whole(folder / f"{study.name}.png", picture(study, rows))


def picture(study: Study, rows: Mapping[str, Mapping[str, float]]) -> bytes:
    """CIDEr on the left, what lies between 0 and 1 on the right; one group of bars per row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(11, 1.2 + 0.55 * len(rows)), sharey=True, layout="constrained", width_ratios=(1, 2)
    )
    names, places = list(rows), range(len(rows))
    left.barh(places, [rows[name]["cider"] for name in names], color="tab:gray")
    fractions = ("f1", "miou", "exact", "memory_first_back")
    for index, key in enumerate(fractions):
        offset = (index - (len(fractions) - 1) / 2) * 0.2
        right.barh([at + offset for at in places], [rows[name][key] for name in names], 0.2, label=SCORES[key])
    left.set(title="CIDEr", yticks=list(places), yticklabels=names)
    right.set(xlim=(0, 1))
    left.invert_yaxis()
    right.legend(fontsize="small", ncols=len(fractions), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.suptitle(f"{study.title} ({study.source})", fontsize="medium")
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    pyplot.close(figure)
    return written.getvalue()


def slug(name: str) -> str:
    """A row's name as that of its folder."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
