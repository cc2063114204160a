"""``longtake score``: predictions that are already there, scored by the public protocols."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def score() -> None:
    """Score predictions that are already there."""


@app.command()
def captions(
    references: Annotated[
        list[Path], typer.Option(help="ActivityNet's layout; give it once for each annotator.", show_default=False)
    ],
    predictions: Annotated[
        Path, typer.Option(help="ActivityNet's results layout, or .jsonl as caption writes it.", show_default=False)
    ],
    protocol: Annotated[
        str, typer.Option(help="longtake, pdvc2018, pdvc2021, scenic, soda, soda-best or vidchapters.")
    ] = "pdvc2021",
    java: Annotated[bool, typer.Option(help="Without Java there is no METEOR and no SODA a to c.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    per_video: Annotated[bool, typer.Option("--per-video", help="With --json: the scores of each video too.")] = False,
) -> None:
    """Score event captions against one or more sets of references."""
    from longtake.eval import TextTools, evaluate_captions, read_predictions, read_references
    from longtake.eval.protocols import protocol_named

    rules = protocol_named(protocol)
    told = [read_references(path) for path in references]
    said = read_predictions(predictions)
    with TextTools(java=java) as tools:
        report = evaluate_captions(told, said, protocol=rules, tools=tools)
    if as_json:
        print(json.dumps({"task": "captions", "videos": report.counts["videos"]} | report.to_dict(per_video=per_video)))
        return
    from longtake.cli.caption_table import print_report

    print_report(report, title=str(predictions))
