"""A report on captions as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from longtake.eval import CaptionReport

_AVERAGES = {
    "cider": "CIDEr",
    "meteor": "METEOR",
    "soda_c": "SODA_c F",
    "soda_d": "SODA_d F (times alone)",
    "miou": "mIoU (best per event)",
    "bleu_4": "BLEU-4",
    "rouge_l": "ROUGE-L",
}


def print_report(report: CaptionReport, *, title: str) -> None:
    """Print to stdout; what was left out or is missing is said below the numbers."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120  # in a file or a pipe there is room
    console.print(title, style="bold", markup=False, soft_wrap=True)
    places = Table(box=None, pad_edge=False)
    places.add_column("")
    for threshold in report.thresholds:
        places.add_column(f"tIoU {threshold:g}", justify="right")
    places.add_column("mean", justify="right")
    for name, label in {"f1": "F1", "precision": "precision", "recall": "recall"}.items():
        values = (*report.per_threshold[name], report.metrics[name])
        places.add_row(label, *(_number(value) for value in values))
    console.print(places, markup=False)
    console.print()
    scores = Table(box=None, pad_edge=False, show_header=False)
    scores.add_column("metric")
    scores.add_column("value", justify="right")
    scores.add_column("of what", style="dim")
    for name, label in _AVERAGES.items():
        scores.add_row(label, _number(report.metrics[name]), report.unavailable.get(name, ""))
    counts = report.counts
    scores.add_row(
        "exact sentences", _number(report.metrics["exact"]), f"{counts['exact']} of {counts['matches']} matches"
    )
    for kind, words in report.words.items():
        note = (
            f"{words.right} of {words.items}; always {words.majority_answer!r} would reach {words.majority_share:.0%}"
        )
        scores.add_row(f"memory words: {kind}", _number(words.accuracy), note)
    console.print(scores, markup=False)
    for line in _remarks(report):
        console.print(line, style="dim", markup=False, soft_wrap=True)


def _number(value: float | None) -> str:
    return "unavailable" if value is None else f"{value:.4f}"


def _remarks(report: CaptionReport) -> list[str]:
    counts = report.counts
    scored = f"{counts['videos']} videos, {counts['predictions']} predictions, {counts['reference_events']} references"
    lines = [f"protocol {report.protocol}; {scored} scored; tokens by {report.tokenizer}"]
    if counts["predictions_not_read"]:
        lines.append(
            f"{counts['predictions_not_read']} predictions beyond the protocol's limit per video were not read"
        )
    for names, what in ((report.missing_videos, "in the references only"), (report.extra_videos, "predicted only")):
        if names:
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            lines.append(f"{what}: {shown}")
    return lines
