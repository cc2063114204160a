"""``longtake eval ask``: ask a model about the videos of a data set, and mark its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtake.cli.evaluate_questions import Wanted, run
from longtake.cli.public import only_public, public_dataset

if TYPE_CHECKING:
    from longtake.eval.ask import Marked
    from longtake.eval.ask_data import AskData

FRESH_VIDEOS = 30


def ask(
    dataset: Annotated[str, typer.Option(help="toybox, or one of docs/datasets.md: next-qa.", show_default=False)],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set; for toybox without it, unseen videos are rendered.")
    ] = None,
    videos: Annotated[Path | None, typer.Option(help="Folder of the videos, if they are not in --data.")] = None,
    split: Annotated[str | None, typer.Option(help="By default the one that papers report.")] = None,
    model: Annotated[str, typer.Option(help="A bundled name, a folder or a hub id.")] = "toybox-vlm",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an option of the model: policy=recency, budget=90."),
    ] = None,
    choose: Annotated[bool, typer.Option(help="Choose among the question's options instead of answering.")] = False,
    limit: Annotated[int | None, typer.Option(help="The first N videos; without --data N videos, else 30.")] = None,
    seconds: Annotated[
        str | None, typer.Option(help="Without --data: least and most seconds of a video; 90-120 if not said.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Without --data: which videos to render; 0 if not said.")] = None,
    last: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Where questions have moments: the baseline's window.  [default: 16]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Report as JSON, with every answer.")] = None,
) -> None:
    """Ask about the videos of a data set when they have ended, and mark the answers."""
    from longtake.config import apply_overrides
    from longtake.eval.ask import metrics, text_only_of_toybox
    from longtake.eval.ask_data import ASK_DATASETS, open_recall
    from longtake.eval.ask_run import ask_all, blind_all, without_video
    from longtake.files import check_writable
    from longtake.hub import load
    from longtake.methods.mcvit import MCViT

    public = public_dataset(dataset, "ask", ASK_DATASETS, data)
    if data and (seconds is not None or seed is not None):
        raise typer.BadParameter("--seconds and --seed are of videos that are rendered; leave them out beside --data")
    if not public:
        only_public({"--videos": videos, "--split": split, "--last": last})
    if output is not None:
        check_writable(output)
    if public:
        wanted = Wanted(
            videos=videos,
            split=split,
            model=model,
            settings=settings or [],
            choose=choose,
            limit=limit,
            last_seconds=last,
            as_json=as_json,
            output=output,
        )
        run(*public, wanted)
        return
    found = open_recall(data, limit=limit) if data else None
    span = seconds_of(seconds or "90-120")
    speaker = load(model, **apply_overrides({}, settings or []))
    with ExitStack() as stack:
        found = found or rendered(FRESH_VIDEOS if limit is None else limit, seed or 0, span, stack)
        from longtake.cli.evaluate import bar

        with bar("asking", len(found.videos)) as show:
            marks = ask_all(found, speaker, choose=choose, on_progress=show)
    blind = blind_all(found, speaker) if choose and isinstance(speaker, MCViT) else []
    result: dict[str, Any] = {
        "task": "ask",
        "model": model,
        "settings": settings or [],
        "dataset": dataset,
        "videos": len(found.videos),
        "seed": found.seed,
        "metrics": metrics(marks, without_video(text_only_of_toybox(), found), blind=blind),
    }
    _report(result, marks, as_json=as_json, output=output)


def seconds_of(text: str) -> tuple[int, int]:
    """``90-120`` as two numbers."""
    from longtake.errors import ConfigError

    least, dash, most = text.partition("-")
    if not (least.isdigit() and (most.isdigit() if dash else True)) or int(most or least) < int(least):
        raise ConfigError(f"seconds is {text!r}, expected a length or two, for example 600 or 90-120")
    return int(least), int(most or least)


def rendered(videos: int, seed: int, seconds: tuple[int, int], stack: ExitStack, split: str = "test") -> AskData:
    """Fresh videos with their questions in a folder that goes with the stack."""
    from tempfile import TemporaryDirectory

    from longtake.cli.evaluate import bar
    from longtake.eval.ask_data import open_recall
    from longtake.eval.caption_data import render_toybox

    folder = Path(stack.enter_context(TemporaryDirectory(prefix="longtake-toybox-")))
    with bar("rendering", videos) as show:
        render_toybox(folder, videos=videos, seed=seed, seconds=seconds, split=split, on_progress=show)
    return open_recall(folder)


def _report(result: Mapping[str, Any], marks: Sequence[Marked], *, as_json: bool, output: Path | None) -> None:
    """Shown first: a full disk loses nothing."""
    from longtake.files import write_whole

    if as_json:
        print(json.dumps(result))
    else:
        _print(result)
    if output is not None:
        answers = [_row(mark) for mark in marks]
        write_whole(output, json.dumps(dict(result) | {"answers": answers}, indent=1) + "\n")


def _row(mark: Marked) -> dict[str, object]:
    asked = mark.question
    return {
        "video": mark.video,
        "type": asked.type,
        "question": asked.question,
        "expected": asked.answer,
        "answer": mark.said,
        "right": mark.right,
        "flags": list(mark.flags),
    }


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    found = result["metrics"]
    title = f"{result['model']} on {result['dataset']}, {result['videos']} videos, seed {result['seed']}"
    shown = Table(title=title, box=None, pad_edge=False)
    for head in ("", "accuracy", "95 %", "questions"):
        shown.add_column(head, justify="left" if not head else "right", no_wrap=True)
    rows = {"all": found, **found["by_type"], **{f"  {name}": row for name, row in found["by_form"].items()}}
    if "without_video" in found:
        rows["words alone, no video"] = found["without_video"]
    if "blind" in found:
        rows["the same model, no video"] = found["blind"]
    for name, row in rows.items():
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
        shown.add_row(name, f"{row['accuracy']:.3f}", interval, str(row["items"]))
    Console().print(shown, markup=False)
