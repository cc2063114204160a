"""``longtake classify``: what kind of video it is, by a model's own labels or by any words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtake.cli import ask_options as options
from longtake.cli.see_options import Fps, Model, Settings, Sources, watched


def classify(
    sources: Sources,
    model: Model = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labels to choose from, one a line.  [default: the model's own]")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="The same, each given with --label; two or more.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What is said of a label, {} in its place: 'a video of {}'.  [default: the model's]"
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="Show the K most probable labels.")] = 5,
    blind: Annotated[
        bool, typer.Option("--blind", help="Read no video: what the model says of the labels alone.")
    ] = False,
    fps: Fps = None,
    settings: Settings = None,
    seconds: options.Seconds = None,
    save: options.Save = None,
    resume: options.Resume = None,
    on_lag: options.OnLag = "wait",
    timeout: options.Timeout = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per video instead of text.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what videos or streams are, with probabilities: one of the model's labels, or of any words.

    A video is read to its end, however long, at constant cost per frame. A live source is read until --seconds or
    Ctrl-C. A source that fails is reported and the others go on; the exit status is then 1.
    """
    if labels is not None and label:
        raise typer.BadParameter("--labels and --label are both given; give one of them")
    if blind and (save or resume):
        raise typer.BadParameter("--blind reads no video; leave --save and --resume out")
    watch = watched(
        sources,
        model=model,
        settings=settings,
        fps=fps,
        seconds=seconds,
        save=save,
        resume=resume,
        on_lag=on_lag,
        timeout=timeout,
        quiet=quiet,
    )
    from longtake.cli.classifying import Job, run
    from longtake.cli.labels import checked_labels, read_labels

    named = read_labels(labels) if labels else checked_labels(label) if label else ()
    job = Job(watch=watch, labels=named, prompt=prompt, top=top, blind=blind, as_json=as_json)
    raise typer.Exit(run(job))
