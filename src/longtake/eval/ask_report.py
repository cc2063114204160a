"""What a sweep of policies and budgets found: chosen on one set of videos, scored once on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from longtake.eval.ask import Marked, Share, by, difference, share
from longtake.eval.ask_picture import BLIND, Line, lines_and_levels
from longtake.eval.ask_sweep import FULL, REFERENCE, Trial

DECIDES = Fraction(1, 8)
"""The best option is chosen at this budget."""


@dataclass(frozen=True, kw_only=True)
class AskReport:
    """Answers of every trial on the videos that choose and on those that are scored."""

    valid: Mapping[Trial, Sequence[Marked]]
    test: Mapping[Trial, Sequence[Marked]]
    blind: Sequence[Marked]
    """From the words of the questions alone, on the test videos."""

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(trial.name for trial in self.test if trial.name != FULL))

    @property
    def shares(self) -> list[Fraction]:
        return sorted({trial.share for trial in self.test if trial.name != FULL})

    def marks(self, name: str, budget: Fraction = Fraction(1)) -> Sequence[Marked]:
        """Of the test videos."""
        return next(found for trial, found in self.test.items() if (trial.name, trial.share) == (name, budget))

    @property
    def best(self) -> str:
        """The option that was right most often on the videos that choose, at ``DECIDES``."""
        found = {
            trial.name: share(marks).accuracy
            for trial, marks in self.valid.items()
            if trial.name != FULL and trial.share == DECIDES
        }
        return max(found, key=found.__getitem__)

    def behind(self, name: str, budget: Fraction) -> Share:
        """How far full attention is ahead, on the same questions."""
        return difference(self.marks(FULL), self.marks(name, budget))

    def to_dict(self) -> dict[str, object]:
        rows = [
            {
                "policy": trial.name,
                "share": str(trial.share),
                **share(marks).to_dict(),
                "by_type": {name: one.accuracy for name, one in by(marks, "type").items()},
                "by_form": {name: one.accuracy for name, one in by(marks, "form").items()},
                "valid_accuracy": share(self.valid[trial]).accuracy if trial in self.valid else None,
            }
            for trial, marks in self.test.items()
        ]
        return {"best": self.best, "without_video": share(self.blind).to_dict(), "trials": rows}


def markdown(report: AskReport, heading: str) -> str:
    """The table for a model card."""
    full = share(report.marks(FULL))
    types = by(report.marks(FULL), "type")
    kinds = ", ".join(f"{name} {one.accuracy:.3f}" for name, one in types.items())
    level = f"**{full.accuracy:.3f}** ({full.low:.3f} to {full.high:.3f}; {kinds})"
    lines = [
        f"Share of right answers, {heading} ({full.items} questions). Budgets are shares of a video's tokens.",
        "",
        f"Full attention: {level}. Words of the questions alone: {share(report.blind).accuracy:.3f}.",
        "",
        "| policy | " + " | ".join(str(one) for one in report.shares) + " |",
        "|---|" + "---|" * len(report.shares),
    ]
    for name in report.names:
        cells = [share(report.marks(name, budget)) for budget in report.shares]
        row = " | ".join(f"{one.accuracy:.3f} ({one.low:.3f} to {one.high:.3f})" for one in cells)
        lines.append(f"| {name} | {row} |")
    lines += ["", *(_gap(report, name) for name in dict.fromkeys((REFERENCE, report.best)))]
    return "\n".join(lines) + "\n"


def _gap(report: AskReport, name: str) -> str:
    gap = report.behind(name, DECIDES)
    why = "the reference rule" if name == REFERENCE else "chosen on other videos"
    if name == report.best == REFERENCE:
        why = "the reference rule, and the one chosen on other videos"
    return (
        f"At {DECIDES}, {name} ({why}) is {gap.accuracy:.3f} ({gap.low:.3f} to {gap.high:.3f}) behind full attention."
    )


def picture(report: AskReport, heading: str) -> bytes:
    """Accuracy over the budget, one line per policy."""
    return lines_and_levels(
        {
            name: Line(marks=[report.marks(name, budget) for budget in report.shares], solid=name.startswith(REFERENCE))
            for name in report.names
        },
        {"full": report.marks(FULL), BLIND: report.blind},
        costs=[float(one) for one in report.shares],
        ticks=[str(one) for one in report.shares],
        xlabel="budget, as a share of the video's tokens",
        heading=heading,
    )
