"""A study on the page of all experiments: our numbers, the paper's beside them, and how to get ours again."""

from __future__ import annotations

from pathlib import Path

from longtake.eval.page import Section
from longtake.train.study import Study
from longtake.train.study_picture import Rows, picture


def section(study: Study, path: Path, rows: Rows, folder: Path) -> Section:
    """What has been trained of the study in ``path``; its runs are in ``folder``."""
    seeds = sorted({study.recipe_of(row).seed for row in study.rows})
    return Section(
        name=study.name,
        title=f"{study.title} ({study.source})",
        text=markdown(study, rows),
        source=(
            f"`longtake report toybox --study {path} -o {folder}`; seed {', '.join(map(str, seeds))}. "
            f"Recipe and scores of each row: `{folder / study.name}/ROW/recipe.json` and `metrics.jsonl`."
        ),
        picture=picture(study, rows) if rows else None,
    )


def markdown(study: Study, rows: Rows) -> str:
    """The table, with what the paper has for a row beside it."""
    theirs = list(dict.fromkeys(name for row in study.rows for name in row.paper))
    heads = ["", *study.columns.values(), *(f"paper: {name}" for name in theirs)]
    lines = [f"| {' | '.join(heads)} |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in study.rows:
        scores = rows.get(row.name)
        ours = [f"{scores[name]:.3f}" if scores else "not run" for name in study.columns]
        paper = [f"{row.paper[name]:g}" if name in row.paper else "" for name in theirs]
        lines.append(f"| {' | '.join([row.name, *ours, *paper])} |")
    note = "\nThe paper's numbers are of another data set and far larger models: compare how rows differ.\n"
    return "\n".join(lines) + "\n" + (note if theirs else "")
