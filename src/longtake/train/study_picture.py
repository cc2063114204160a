"""Pictures of studies: bars for tables of several scores, lines where one thing grows."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtake.train.study import Study

FRACTIONS = ("f1", "miou", "exact", "memory_first_back")
Rows = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One score on a line."""

    row: str
    head: str
    """Of its column."""
    along: float
    score: float


def picture(study: Study, rows: Rows) -> bytes:
    """A PNG of the rows that there are."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = _lines(study, rows) if study.along else _bars(study, rows)
    figure.suptitle(f"{study.title} ({study.source})", fontsize="medium")
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    pyplot.close(figure)
    return written.getvalue()


def _bars(study: Study, rows: Rows) -> Any:
    """CIDEr on the left, what lies between 0 and 1 on the right; one group of bars per row."""
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(11, 1.2 + 0.55 * len(rows)), sharey=True, layout="constrained", width_ratios=(1, 2)
    )
    names, places = list(rows), range(len(rows))
    left.barh(places, [rows[name]["cider"] for name in names], color="tab:gray")
    for index, key in enumerate(FRACTIONS):
        offset = (index - (len(FRACTIONS) - 1) / 2) * 0.2
        heights = [rows[name][key] for name in names]
        right.barh([at + offset for at in places], heights, 0.2, label=study.columns[key])
    left.set(title="CIDEr", yticks=list(places), yticklabels=names)
    right.set(xlim=(0, 1))
    left.invert_yaxis()
    right.legend(fontsize="small", ncols=len(FRACTIONS), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _lines(study: Study, rows: Rows) -> Any:
    """The score along what grows, and over each cost."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, 1 + len(study.costs), figsize=(5 * (1 + len(study.costs)), 4.2), sharey=True, squeeze=False
    )
    figure.set_layout_engine("constrained")
    found = lines(study, rows)
    for axis, (cost, name) in zip(axes[0], {"": study.along, **study.costs}.items(), strict=True):
        for line, points in found.items():
            over = [rows[point.row][f"{cost}_{point.head}"] if cost else point.along for point in points]
            axis.plot(over, [point.score for point in points], marker="o", label=line)
        axis.set(xscale="log", xlabel=name, ylim=(0, 1))
        axis.grid(alpha=0.3)
    axes[0][0].set(ylabel="share right")
    axes[0][0].legend(fontsize="small")
    return figure


def lines(study: Study, rows: Rows) -> dict[str, list[Point]]:
    """Points by name of the line, the least far along first."""
    found: dict[str, list[Point]] = {}
    for row in study.rows:
        scores = rows.get(row.name, {})
        for head, name in study.numbers.items():
            if name in scores:
                point = Point(row=row.name, head=head, along=row.at or float(head), score=scores[name])
                found.setdefault(row.line or row.name, []).append(point)
    return {name: sorted(points, key=lambda point: point.along) for name, points in found.items()}
