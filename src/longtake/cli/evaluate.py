"""``longtake eval``: run a model over a data set and measure it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtake.cli.evaluate_ask import ask
from longtake.cli.evaluate_classify import classify
from longtake.cli.public import only_public, public_dataset, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtake.eval.annotations import Stories
    from longtake.eval.caption_data import CaptionData
    from longtake.eval.predict import PredictionFile
    from longtake.protocol import StreamModel

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)
FRESH_VIDEOS = 100


@app.callback()
def evaluate() -> None:
    """Run a model over a data set and measure it."""


app.command()(ask)
app.command()(classify)


@app.command()
def captions(
    dataset: Annotated[str, typer.Option(help="toybox, or one of docs/datasets.md: youcook2.", show_default=False)],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set; for toybox without it, unseen videos are rendered.")
    ] = None,
    videos: Annotated[Path | None, typer.Option(help="Folder of the videos, if they are not in --data.")] = None,
    split: Annotated[str | None, typer.Option(help="By default the one that papers report.")] = None,
    model: Annotated[str, typer.Option(help="A bundled name, a checkpoint folder or a hub id.")] = "toybox-sts",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a field of the model's config: stack.carry=false."),
    ] = None,
    predictions: Annotated[Path | None, typer.Option(help="Score this file instead of running a model.")] = None,
    limit: Annotated[int | None, typer.Option(help="The first N videos; without --data N videos, else 100.")] = None,
    seed: Annotated[int, typer.Option(help="Without --data: which videos to render.")] = 0,
    protocol: Annotated[str, typer.Option(help="As for longtake score.")] = "pdvc2021",
    java: Annotated[bool, typer.Option(help="Without Java there is no METEOR and no SODA a to c.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Report as JSON, with each video's scores; a killed run goes on from it."),
    ] = None,
) -> None:
    """Caption the videos of a data set and score the captions."""
    from longtake.eval import TextTools, evaluate_captions, read_predictions
    from longtake.eval.caption_data import CAPTION_DATASETS, open_public, open_toybox
    from longtake.eval.protocols import protocol_named
    from longtake.files import check_writable, write_whole

    rules = protocol_named(protocol)
    public = public_dataset(dataset, "captions", CAPTION_DATASETS, data)
    if output is not None:
        check_writable(output)
    if public:
        found = open_public(*public, split=split, videos=videos, limit=limit)
        say(found.notes)
    else:
        only_public({"--videos": videos, "--split": split})
        found = open_toybox(data, limit=limit) if data else None
    said = read_predictions(predictions) if predictions else None
    speaker = None if predictions else _model(model, settings or [], output)
    with ExitStack() as stack:
        found = found or _rendered(FRESH_VIDEOS if limit is None else limit, seed, stack)
        said = _predict(found, *speaker) if speaker else said
        tools = stack.enter_context(TextTools(java=java))
        report = evaluate_captions([found.references, *found.more_references], said, protocol=rules, tools=tools)
    result: dict[str, Any] = {
        "task": "captions",
        "model": str(predictions) if predictions else model,
        "settings": settings or [],
        "dataset": dataset,
        "videos": len(found.videos),
        "seed": found.seed,
    }
    if found.notes:
        result["notes"] = list(found.notes)
    if as_json:
        print(json.dumps(result | report.to_dict(per_video=False)))
    else:
        from longtake.cli.caption_table import print_report

        print_report(report, title=f"{result['model']} on {dataset}, {result['videos']} videos, seed {found.seed}")
    if output is not None:  # after all is shown: a full disk loses nothing
        write_whole(output, json.dumps(result | report.to_dict(), indent=1) + "\n")


def _rendered(videos: int, seed: int, stack: ExitStack) -> CaptionData:
    from tempfile import TemporaryDirectory

    from longtake.eval.caption_data import open_toybox, render_toybox

    folder = Path(stack.enter_context(TemporaryDirectory(prefix="longtake-toybox-")))
    with bar("rendering", videos) as show:
        render_toybox(folder, videos=videos, seed=seed, on_progress=show)
    return open_toybox(folder)


def _model(name: str, settings: list[str], output: Path | None) -> tuple[StreamModel[Any], PredictionFile | None]:
    """The model, and the file in which its predictions are kept beside a report."""
    from longtake.config import apply_overrides
    from longtake.eval.predict import PredictionFile
    from longtake.hub import find, is_video_model, load, read_config
    from longtake.session import require_captions

    options = {}
    if settings and is_video_model(find(name)):
        options = apply_overrides({}, settings)
    elif settings:
        config = read_config(find(name))["config"]
        options = {key: value for key, value in apply_overrides(config, settings).items() if value != config.get(key)}
    model = load(name, **options)
    require_captions(model)
    if output is None:
        return model, None
    path = output.with_suffix(".predictions.jsonl")
    kept = PredictionFile(path, model=" ".join([name, *settings]), fingerprint=model.fingerprint)
    kept.check()
    return model, kept


def _predict(data: CaptionData, model: StreamModel[Any], kept: PredictionFile | None) -> Stories:
    from longtake.eval.predict import predict
    from longtake.session import caption

    with bar("captioning", len(data.videos)) as show:
        return predict(data, lambda video: caption(video, model), kept=kept, on_progress=show)


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
