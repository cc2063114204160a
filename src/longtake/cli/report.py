"""``longtake report``: run the studies of recipes/studies, or read those that have been run, and show their tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtake.cli.report_ask import ask
from longtake.cli.report_bounded import bounded
from longtake.cli.report_page import page_of
from longtake.cli.report_sizes import sizes

if TYPE_CHECKING:
    from longtake.train.study import Study

PAGE = "report.html"

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def report() -> None:
    """Run the papers' experiments in kind, and show their tables."""


app.command()(ask)
app.command()(bounded)
app.command()(sizes)


@app.command()
def toybox(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of runs, CSVs and pictures; a killed report goes on there.")
    ] = Path("runs/report"),
    studies: Annotated[
        list[Path] | None,
        typer.Option("--study", help="Study file; default: all of recipes/studies, then the reports on questions."),
    ] = None,
    run: Annotated[bool, typer.Option(help="--no-run shows what is there, trains nothing and asks nothing.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
) -> None:
    """The papers' tables on Toybox, and one HTML page of them all: what the folder does not hold yet is run."""
    from longtake.config import load_recipe
    from longtake.errors import ConfigError
    from longtake.files import write_whole
    from longtake.train.study import Study, table, write_table

    paths = studies or sorted(Path("recipes/studies").glob("*.toml"))
    if not paths:
        raise ConfigError("no studies in recipes/studies; run this in the repository or name files with --study")
    loaded = {path: load_recipe(path, Study) for path in paths}
    found = {study.name: table(study, output) for study in loaded.values()}
    for study in loaded.values():
        if run:
            _run(study, output)
            found[study.name] = table(study, output)
        if found[study.name]:
            write_table(study, found[study.name], output)
            write_whole(output / PAGE, page_of(output, loaded, found))
        if not as_json:
            _print(study, found[study.name])
    if run and not studies:
        _ask(output)
    write_whole(output / PAGE, page_of(output, loaded, found))
    if as_json:
        print(json.dumps({"task": "report", "dataset": "toybox", "page": str(output / PAGE), "studies": found}))
    else:
        print(f"\n{output / PAGE}")


def _run(study: Study, folder: Path) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from longtake.train.study import run_study

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(study.name, total=None)
        for at in run_study(study, folder):
            left = f"{at.run.seconds_left / 60:.0f} min left"
            text = f"{study.name} {at.number}/{len(study.rows)}: {at.row.name}, {left}"
            bar.update(task, description=text, completed=at.run.step, total=at.run.total_steps)


def _ask(folder: Path) -> None:
    """The reports on questions that are not there yet."""
    for name, report in (("ask", ask), ("bounded", bounded)):
        if not (folder / name / f"{name}.json").is_file():
            report(output=folder / name)


def _print(study: Study, rows: Mapping[str, Mapping[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    grid = Table(title=f"{study.title} ({study.source})", box=None, pad_edge=False)
    grid.add_column("")
    for head in study.columns.values():
        grid.add_column(head, justify="right", no_wrap=True)
    for row in study.rows:
        scores = rows.get(row.name)
        grid.add_row(row.name, *(f"{scores[name]:.3f}" for name in study.columns) if scores else ("not run",))
    Console().print(grid, markup=False)
