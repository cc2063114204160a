"""Metrics of a run: one JSON line per step or validation, and a picture of them."""

from __future__ import annotations

import json
from pathlib import Path


class MetricsLog:
    """An append-only JSONL file that can be cut back to the step a run resumes from."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, *, step: int, **values: object) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    def read(self) -> list[dict[str, object]]:
        """All whole lines; one that a kill cut short is left out."""
        if not self.path.exists():
            return []
        rows: list[dict[str, object]] = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return rows

    def cut(self, step: int) -> None:
        """Forget what came after ``step``: the run goes on from there."""
        kept = [row for row in self.read() if int(str(row["step"])) <= step]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        fresh.replace(self.path)


LOSSES = ("loss", "captions", "stack_ended", "stack_memory", "cell", "answer", "classes", "ranks", "seen_action")
SCORES = tuple(
    f"valid_{name}" for name in ("f1", "exact", "memory_first_back", "memory_count", "all", "classes_", "questions_")
)
"""Names, and beginnings of names, of what is drawn of a run that has it."""


def plot(metrics: Path, picture: Path) -> None:
    """Losses on a logarithmic axis above, validation scores below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = MetricsLog(metrics).read()
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
    known = list(dict.fromkeys(name for row in rows for name in row))
    for name in (name for name in LOSSES if name in known):
        points = [(row["step"], row[name]) for row in rows if name in row]
        above.plot(*_smooth(points), label=name)
    for name in (name for name in known if name.startswith(SCORES)):
        points = [(row["step"], row[name]) for row in rows if name in row]
        below.plot(
            [step for step, _ in points], [value for _, value in points], marker="o", label=name.removeprefix("valid_")
        )
    above.set(yscale="log", ylabel="loss")
    below.set(ylim=(0, 1), ylabel="validation", xlabel="step")
    for axis in (above, below):
        axis.grid(alpha=0.3)
        if axis.get_lines():
            axis.legend(fontsize="small")
    fresh = picture.with_suffix(".new.png")
    figure.savefig(fresh, dpi=110)
    pyplot.close(figure)
    fresh.replace(picture)


def _smooth(points: list[tuple[object, object]], width: int = 25) -> tuple[list[float], list[float]]:
    """Means over runs of ``width`` points."""
    groups = [points[index : index + width] for index in range(0, len(points), width)]
    steps = [float(str(group[-1][0])) for group in groups]
    return steps, [sum(float(str(value)) for _, value in group) / len(group) for group in groups]
