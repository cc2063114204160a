"""``longtake embed``: vectors of videos, or of their stretches, as one npz file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from longtake.cli import ask_options as options
from longtake.cli.see_options import Fps, Settings, Sources, check_output, watched


def embed(
    sources: Sources,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.npz", help="Write here.  [default: stdout]")
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            help="A vector for each stretch so long, in whole segments; the past stays in memory.  [default: one for "
            "the whole]",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A bundled name, a folder or a hub id.  [default: toybox-mcvit]")
    ] = None,
    fps: Fps = None,
    settings: Settings = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Read at most so much of each source.  [default: all]")
    ] = None,
    on_lag: options.OnLag = "wait",
    timeout: options.Timeout = 10.0,
    quiet: options.Quiet = False,
) -> None:
    """Turn videos or streams into vectors: an npz of video, start, end and embedding, one row per vector.

    A video is read to its end, however long, at constant cost per frame. A live source is read until --seconds or
    Ctrl-C. A source that fails is reported and left out, and the others go on; the exit status is then 1.
    """
    if output is None and sys.stdout.isatty():
        raise typer.BadParameter("an npz is no text for a terminal; give -o FILE.npz, or send stdout into a file")
    if output is not None and output.suffix.lower() != ".npz":
        raise typer.BadParameter(f"{output} does not end in .npz, which is what is written; name it so")
    watch = watched(
        sources,
        model=model,
        settings=settings,
        fps=fps,
        seconds=seconds,
        on_lag=on_lag,
        timeout=timeout,
        quiet=quiet,
    )
    check_output(output, watch.videos.values())
    from longtake.cli.embedding import run

    raise typer.Exit(run(watch, output, every_seconds=every))
