"""``longtake report bounded``: bounded answers compared with whole ones, as a table and a picture."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer


def bounded(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the table, picture and JSON.")] = Path(
        "runs/report-bounded"
    ),
    model: Annotated[str, typer.Option(help="A bundled name, a folder or a hub id.")] = "toybox-vlm",
    videos: Annotated[int, typer.Option(help="Unseen videos to ask about.")] = 12,
    seconds: Annotated[str, typer.Option(help="Least and most seconds of a video.")] = "600",
    seed: Annotated[int, typer.Option(help="Which videos.")] = 777,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Ask the same questions of whole and of bounded answers, by every retrieval and several numbers of chunks."""
    from longtake.cli.evaluate import bar
    from longtake.cli.evaluate_ask import rendered, seconds_of
    from longtake.eval.ask import text_only_of_toybox
    from longtake.eval.ask_bounded import run_ways, ways
    from longtake.eval.ask_bounded_report import BoundedReport, markdown, picture
    from longtake.eval.ask_run import without_video
    from longtake.eval.ask_sweep import policies_of
    from longtake.files import write_whole
    from longtake.hub import load

    span = seconds_of(seconds)
    speaker = policies_of(load(model), model)
    output.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        test = rendered(videos, seed, span, stack)
        with bar("asking", videos) as show:
            found = run_ways(speaker, test, ways(), show)
        report = BoundedReport(found=found, blind=without_video(text_only_of_toybox(), test))
    heading = f"{model}, {videos} videos of {seconds} s, seed {seed}"
    write_whole(output / "bounded.md", markdown(report, heading))
    write_whole(output / "bounded.json", json.dumps(report.to_dict(), indent=1) + "\n")
    write_whole(output / "bounded.png", picture(report, heading))
    print(json.dumps(report.to_dict()) if as_json else markdown(report, heading))
