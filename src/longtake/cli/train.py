"""``longtake train``: run a recipe, with time left and scores on screen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe file, for example recipes/toybox-sts.toml.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the recipe.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint of this run.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the run; default runs/<recipe name>.")
    ] = None,
) -> None:
    """Train a model by a recipe; resumable after a kill, metrics as JSON lines and a plot in the run's folder."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from longtake.train.log import plot
    from longtake.train.run import read_recipe
    from longtake.train.run import train as run_training

    loaded = read_recipe(recipe, settings or [])
    folder = output or Path("runs") / loaded.name
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(loaded.name, total=None, note="")
        for at in run_training(loaded, folder, resume=resume):
            note = f"{at.seconds_left / 60:.0f} min left, loss {at.losses['loss']:.3f}"
            if not console.is_terminal and (at.step % 100 == 0 or at.step == at.total_steps):
                console.print(f"{at.stage} {at.step}/{at.total_steps}: {note}", highlight=False)
            bar.update(task, description=at.stage, completed=at.step, total=at.total_steps, note=note)
            if at.step % 100 == 0 or at.step == at.total_steps:
                plot(folder / "metrics.jsonl", folder / "metrics.png")
    typer.echo(f"{folder / 'model'}")
