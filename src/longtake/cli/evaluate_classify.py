"""``longtake eval classify``: run a classifier over a data set of labelled videos, and mark its labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtake.cli.public import only_public, public_dataset, say

if TYPE_CHECKING:
    from longtake.eval.classify import Classified
    from longtake.eval.classify_data import LabelledData

FRESH_VIDEOS = 100


def classify(
    dataset: Annotated[
        str,
        typer.Option(help="toybox (its routines), folders: a folder for each class, or diving48.", show_default=False),
    ],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set; for toybox without it, unseen videos are rendered.")
    ] = None,
    videos: Annotated[Path | None, typer.Option(help="Folder of the videos, if they are not in --data.")] = None,
    split: Annotated[str | None, typer.Option(help="By default the one that papers report.")] = None,
    model: Annotated[str, typer.Option(help="A bundled name, a folder or a hub id.")] = "toybox-mcvit",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a field of the model's config: memory.variant=st."),
    ] = None,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="As for longtake classify.")] = None,
    limit: Annotated[int | None, typer.Option(help="The first N videos; without --data N videos, else 100.")] = None,
    seconds: Annotated[
        str | None, typer.Option(help="Without --data: least and most seconds of a video.  [default: 40-120]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Without --data: which videos to render.")] = 777,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Report as JSON, with every video.")] = None,
) -> None:
    """Classify the videos of a data set when they have ended, and mark the labels."""
    from longtake.cli.evaluate import bar
    from longtake.cli.seeing import Watch, load_model
    from longtake.config import apply_overrides
    from longtake.eval.classify import classify_all, labels_for, metrics
    from longtake.files import write_whole
    from longtake.types import Classify

    found = _open(dataset, data, videos, split, limit, output)
    watch = Watch(videos={}, model=model, options=apply_overrides({}, settings or []))
    classifier: Any = load_model(watch, Classify)
    with ExitStack() as stack:
        found = found or _rendered(FRESH_VIDEOS if limit is None else limit, seed, seconds, stack)
        labels = labels_for(classifier, found)
        classifier.check(Classify(labels=labels, prompt=prompt))
        with bar("classifying", len(found.videos)) as show:
            marks = classify_all(found, classifier, labels=labels, prompt=prompt, on_progress=show)
    blind = _blind(classifier, found, labels, prompt)
    result: dict[str, Any] = {
        "task": "classify",
        "model": model,
        "settings": settings or [],
        "dataset": dataset,
        "videos": len(found.videos),
        "seed": found.seed,
        "metrics": metrics(marks, found.classes, blind=blind),
    }
    if found.notes:
        result["notes"] = list(found.notes)
    if as_json:
        print(json.dumps(result))
    else:
        _print(result)
    if output is not None:  # after all is shown: a full disk loses nothing
        write_whole(output, json.dumps(result | {"labels": [_row(mark) for mark in marks]}, indent=1) + "\n")


def _open(
    dataset: str, data: Path | None, videos: Path | None, split: str | None, limit: int | None, output: Path | None
) -> LabelledData | None:
    """The data if there is a folder; all that can be known to be wrong is told before a model is loaded."""
    from longtake.errors import ConfigError
    from longtake.eval.classify_data import CLASSIFY_DATASETS, open_labelled, open_public_labels
    from longtake.files import check_writable

    public = public_dataset(dataset, "classify", CLASSIFY_DATASETS, data)
    if public:
        if output is not None:
            check_writable(output)
        found = open_public_labels(*public, split=split, videos=videos, limit=limit)
        say(found.notes)
        return found
    only_public({"--videos": videos, "--split": split})
    if data is None and dataset != "toybox":
        raise ConfigError(f"--data is missing; expected the folder of {dataset!r}")
    if output is not None:
        check_writable(output)
    return open_labelled(dataset, data, limit=limit) if data else None


def _rendered(videos: int, seed: int, seconds: str | None, stack: ExitStack) -> LabelledData:
    """Fresh routines in a folder that goes with the stack."""
    from tempfile import TemporaryDirectory

    from longtake.cli.evaluate import bar
    from longtake.cli.evaluate_ask import seconds_of
    from longtake.data.toybox.routines import ROUTINES_SPLIT
    from longtake.eval.caption_data import render_toybox
    from longtake.eval.classify_data import open_labelled

    span = seconds_of(seconds) if seconds else None
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="longtake-toybox-")))
    with bar("rendering", videos) as show:
        render_toybox(folder, videos=videos, seed=seed, seconds=span, split=ROUTINES_SPLIT, on_progress=show)
    return open_labelled("toybox", folder)


def _blind(model: Any, data: LabelledData, labels: Sequence[str], prompt: str | None) -> list[Classified]:
    """What the model says of each video without any: always the same."""
    from longtake.eval.classify import marked
    from longtake.methods.mcvit_blind import without_video
    from longtake.types import Classify

    request = Classify(labels=tuple(labels), top=len(data.classes), prompt=prompt)
    ranked = list(model.respond(without_video(model), request))
    return [marked(video, label, ranked) for video, label in data.labels.items()]


def _row(mark: Classified) -> dict[str, object]:
    return {
        "video": mark.video,
        "expected": mark.label,
        "said": list(mark.said[:5]),
        "probability": round(mark.probability, 6),
        "right": mark.right,
    }


def _print(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    found = result["metrics"]
    title = f"{result['model']} on {result['dataset']}, {result['videos']} videos, seed {result['seed']}"
    shown = Table(title=title, box=None, pad_edge=False)
    for head in ("", "accuracy", "95 %", "videos", "taken for"):
        shown.add_column(head, justify="right" if head in ("accuracy", "95 %", "videos") else "left")
    tops = {f"among the first {count}": row for count, row in found["top"].items() if count != "1"}
    rows = {"all": found, **tops, **{f"  {name}": row for name, row in found["by_class"].items()}}
    if "blind" in found:
        rows["without the video"] = found["blind"]
    for name, row in rows.items():
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
        taken = f"{row['taken_for']} ({row['taken']})" if row.get("taken_for") else ""
        shown.add_row(name, f"{row['accuracy']:.3f}", interval, str(row["items"]), taken)
    console = Console()
    if not console.is_terminal:
        console.width = 120  # in a file or a pipe there is room
    console.print(shown, markup=False)
