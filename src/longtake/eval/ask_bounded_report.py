"""The table and the picture of bounded answers beside whole ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from longtake.eval.ask import Marked, by, difference, share
from longtake.eval.ask_bounded import FULL, WHOLE, Answered, Way
from longtake.eval.ask_picture import BLIND, Line, lines_and_levels


@dataclass(frozen=True, kw_only=True)
class BoundedReport:
    """Answers of every way, and those from the words of the questions alone."""

    found: Mapping[Way, Answered]
    blind: Sequence[Marked]

    @property
    def bounded(self) -> dict[str, dict[int, Answered]]:
        """By name, then by number of chunks."""
        rows: dict[str, dict[int, Answered]] = {}
        for way, answered in self.found.items():
            if way.retrieve:
                rows.setdefault(way.name, {})[way.chunks] = answered
        return rows

    @property
    def chunks(self) -> list[int]:
        return sorted({way.chunks for way in self.found if way.retrieve})

    def to_dict(self) -> dict[str, object]:
        whole = self.found[WHOLE].marks
        rows = [
            {
                "name": way.name,
                **asdict(way),
                **share(answered.marks).to_dict(),
                "behind_whole": difference(whole, answered.marks).to_dict(),
                "by_type": {name: one.accuracy for name, one in by(answered.marks, "type").items()},
                "seconds_per_answer": answered.seconds,
            }
            for way, answered in self.found.items()
        ]
        return {"without_video": share(self.blind).to_dict(), "ways": rows}


def markdown(report: BoundedReport, heading: str) -> str:
    """The table for a model card."""
    whole = report.found[WHOLE].marks
    lines = [f"Share of right answers, {heading} ({share(whole).items} questions).", ""]
    rows = {
        "full attention": report.found[FULL].marks,
        "whole detailed cache": whole,
        "words of the questions alone": report.blind,
    }
    for name, marks in rows.items():
        one = share(marks)
        lines.append(f"- {name}: {one.accuracy:.3f} ({one.low:.3f} to {one.high:.3f})")
    lines += ["", "Bounded answers by chunks found, and how far each is behind the whole detailed cache:", ""]
    lines += [
        "| chunks found by | " + " | ".join(map(str, report.chunks)) + " |",
        "|---|" + "---|" * len(report.chunks),
    ]
    for name, cells in report.bounded.items():
        row = " | ".join(_cell(cells[count].marks, whole) for count in report.chunks)
        lines.append(f"| {name} | {row} |")
    return "\n".join(lines) + "\n"


def _cell(marks: Sequence[Marked], whole: Sequence[Marked]) -> str:
    gap = difference(whole, marks)
    return f"{share(marks).accuracy:.3f}, {gap.accuracy:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def picture(report: BoundedReport, heading: str) -> bytes:
    """Accuracy over the number of chunks, one line per retrieval."""
    return lines_and_levels(
        {
            name: Line(marks=[cells[count].marks for count in report.chunks], solid=name.endswith("per layer"))
            for name, cells in report.bounded.items()
        },
        {"full": report.found[FULL].marks, "whole": report.found[WHOLE].marks, BLIND: report.blind},
        costs=report.chunks,
        ticks=[str(one) for one in report.chunks],
        xlabel="chunks found per question",
        heading=heading,
    )
