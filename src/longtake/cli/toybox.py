"""``longtake toybox``: videos of the procedural world, with captions, memory words, questions and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def toybox() -> None:
    """Make videos of Toybox, the procedural world."""


@app.command()
def make(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    videos: Annotated[int, typer.Option(help="How many videos.")],
    seed: Annotated[int, typer.Option(help="The same split and seed make the same data anywhere.")],
    seconds: Annotated[float | None, typer.Option(help="Length of each video; 40 to 120 s if not given.")] = None,
    split: Annotated[str, typer.Option(help="Any name; 'routines' gives videos with class labels.")] = "test",
) -> None:
    """Make a folder of videos with all annotations."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from longtake.data.toybox.dataset import make_dataset

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("videos", total=videos)
        make_dataset(
            directory,
            videos,
            seed,
            seconds,
            split,
            on_progress=lambda done: progress.update(task, completed=done),
        )
    console.print(f"{videos} videos of split {split} (seed {seed}) are in {directory}", highlight=False, markup=False)
