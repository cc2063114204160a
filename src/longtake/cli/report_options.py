"""The options that the reports on questions share, as annotations, and how they write what they found."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from longtake.files import write_whole

Output: TypeAlias = Annotated[Path, typer.Option("-o", "--output", help="Folder of the table, its picture and JSON.")]
Model: TypeAlias = Annotated[str, typer.Option(help="A bundled name, a folder or a hub id.")]
Videos: TypeAlias = Annotated[int, typer.Option(min=1, help="Unseen videos to ask about.")]
Seconds: TypeAlias = Annotated[str, typer.Option(help="Least and most seconds of a video.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Which videos.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]


def command(name: str, *arguments: str, **values: object) -> str:
    """The command line that gives a report again."""
    given = [part for option, value in values.items() for part in (f"--{option}", str(value))]
    return shlex.join(["longtake", "report", name, *arguments, *given])


def write_report(
    folder: Path,
    name: str,
    found: Mapping[str, Any],
    table: str,
    *,
    again: str,
    picture: bytes | None = None,
    as_json: bool,
) -> None:
    """``name`` with .md, .json and, if there is a picture, .png in the folder; the table or JSON on standard output.

    ``again`` is the command that gives it again; it stands in the JSON.
    """
    found = {"command": again, **found}
    print(json.dumps(found) if as_json else table, flush=True)  # first: a full disk loses nothing
    write_whole(folder / f"{name}.md", table)
    write_whole(folder / f"{name}.json", json.dumps(found, indent=1) + "\n")
    if picture is not None:
        write_whole(folder / f"{name}.png", picture)
