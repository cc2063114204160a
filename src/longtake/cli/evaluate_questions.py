"""``longtake eval ask`` on public data sets: multiple choice, scored as each data set scores it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from longtake.cli.public import say

if TYPE_CHECKING:
    from longtake.data.datasets import DataSet
    from longtake.eval.question_run import MarkedQuestion

LAST_SECONDS = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was typed."""

    videos: Path | None
    split: str | None
    model: str
    settings: list[str]
    choose: bool
    limit: int | None
    last_seconds: float | None
    as_json: bool
    output: Path | None


def run(dataset: DataSet, folder: Path, wanted: Wanted) -> None:
    """Open, load, ask with the video, without it and with its last seconds, and report."""
    from longtake.cli.evaluate import bar
    from longtake.config import apply_overrides
    from longtake.errors import SourceError
    from longtake.eval.question_data import open_questions
    from longtake.eval.question_run import ask_blind, ask_questions
    from longtake.eval.question_score import metrics
    from longtake.files import write_whole
    from longtake.hub import load

    seconds = LAST_SECONDS if wanted.last_seconds is None else wanted.last_seconds
    if not 0 < seconds < 1e6:
        raise typer.BadParameter(f"--last is {seconds:g}, expected a number of seconds above 0")
    data = open_questions(dataset, folder, split=wanted.split, videos=wanted.videos, limit=wanted.limit)
    say(data.notes)
    model = _answering(load(wanted.model, **apply_overrides({}, wanted.settings)), wanted.model)
    choose = wanted.choose
    with bar("asking", len(data.clips)) as show:
        asked = ask_questions(data, model, choose=choose, on_progress=show)
    say(asked.unreadable)
    if not asked.marks:
        raise SourceError(f"none of the {len(data.clips)} videos could be read; the first: {asked.unreadable[0]}")
    late: tuple[MarkedQuestion, ...] = ()
    if any(mark.question.at_seconds is not None for mark in asked.marks):
        with bar(f"asking with {seconds:g} s", len(data.clips)) as show:
            late = ask_questions(data, model, choose=choose, last_seconds=seconds, on_progress=show).marks
    blind = ask_blind(asked.marks, model, choose=choose)
    result: dict[str, Any] = {
        "task": "ask",
        "model": wanted.model,
        "settings": wanted.settings,
        "dataset": dataset.name,
        "split": data.split,
        "videos": len(data.clips),
        "missing_videos": len(data.missing),
        "unreadable_videos": len(asked.unreadable),
        "notes": list(data.notes),
        "metrics": metrics(asked.marks, dataset.mean_over, rule="" if choose else dataset.rule, blind=blind, late=late),
    }
    if wanted.as_json:
        print(json.dumps(result))
    else:
        _print(result)
    if wanted.output is not None:  # after all is shown: a full disk loses nothing
        answers = {"answers": [_row(mark) for mark in asked.marks], "missing": list(data.missing)}
        write_whole(wanted.output, json.dumps(result | answers, indent=1) + "\n")


def _answering(model: Any, name: str) -> Any:
    """The model, if it answers anything."""
    from longtake.errors import UnsupportedRequest
    from longtake.types import Ask, Choose

    if not {Ask, Choose} & model.supports:
        raise UnsupportedRequest(f"{name} answers no questions; give --model a video-language model or an MC-ViT")
    return model


def _row(mark: MarkedQuestion) -> dict[str, object]:
    asked = mark.question
    return {
        "key": asked.key,
        "video": mark.video,
        **asked.tags,
        "question": asked.question,
        "options": list(asked.options),
        "expected": asked.answer,
        "said": mark.said,
        "answer": mark.answer,
        "right": mark.right,
        "at": asked.at_seconds,
        "frames": mark.frames,
        "last_frame": mark.last_frame_seconds,
        "flags": list(mark.flags),
    }


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    found = result["metrics"]
    title = f"{result['model']} on {result['dataset']} {result['split']}, {result['videos']} videos"
    title += f" ({result['missing_videos']} missing)" if result["missing_videos"] else ""
    shown = Table(title=title, box=None, pad_edge=False)
    for head in ("", "score", "95 %", "questions"):
        shown.add_column(head, justify="left" if not head else "right", no_wrap=True)
    over = " of ".join(f"mean over {tag}s" for tag in reversed(found["mean_over"]))
    shown.add_row(over, f"{found['score']:.3f}", "", str(found["items"]))
    if "official_rule" in found:
        shown.add_row("the same by the official reading of answers", f"{found['official_rule']:.3f}", "", "")
    rows = {"over questions": found}
    for key in (key for key in found if key.startswith("by_")):
        rows |= {f"  {key.removeprefix('by_')} {name}": row for name, row in found[key].items()}
    rows |= {"the same model, no video": found["blind"]} if "blind" in found else {}
    rows |= {"the same model, last seconds only": found["last_seconds"]} if "last_seconds" in found else {}
    for name, row in rows.items():
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
        shown.add_row(name, f"{row['accuracy']:.3f}", interval, str(row["items"]))
    Console().print(shown, markup=False)
