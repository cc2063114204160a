"""A picture of right answers over what they cost: one line for each way to answer, levels that do not depend on it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longtake.eval.ask import Marked, share

BLIND = "words alone"
"""Level drawn in gray: what is right without the video."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Answers at each cost, by one way."""

    marks: Sequence[Sequence[Marked]]
    solid: bool


def lines_and_levels(
    lines: Mapping[str, Line],
    levels: Mapping[str, Sequence[Marked]],
    *,
    costs: Sequence[float],
    ticks: Sequence[str],
    xlabel: str,
    heading: str,
) -> bytes:
    """PNG of the accuracies with their intervals, over costs on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
    for name, line in lines.items():
        found = [share(marks) for marks in line.marks]
        style = "-" if line.solid else "--"
        (drawn,) = axes.plot(costs, [one.accuracy for one in found], style, marker="o", label=name)
        low, high = [one.low for one in found], [one.high for one in found]
        axes.fill_between(costs, low, high, color=drawn.get_color(), alpha=0.08)
    for label, marks in levels.items():
        axes.axhline(share(marks).accuracy, color="gray" if label == BLIND else "black", linewidth=1, linestyle=":")
        axes.annotate(label, (costs[0], share(marks).accuracy), fontsize="small", va="bottom")
    axes.set(xscale="log", xlabel=xlabel, ylabel="right answers", title=heading)
    axes.set_xticks(costs, ticks)
    axes.minorticks_off()
    axes.legend(fontsize="small")
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    pyplot.close(figure)
    return written.getvalue()
