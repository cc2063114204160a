"""``longtake report ask``: policies and budgets compared on one frozen model, as a table and a picture."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer


def ask(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the table, picture and JSON.")] = Path(
        "runs/report-ask"
    ),
    model: Annotated[str, typer.Option(help="A bundled name, a folder or a hub id.")] = "toybox-vlm",
    videos: Annotated[int, typer.Option(help="Unseen videos to ask about.")] = 30,
    choosing: Annotated[int, typer.Option(help="Other unseen videos on which the best option is chosen.")] = 12,
    seconds: Annotated[str, typer.Option(help="Least and most seconds of a video.")] = "90-120",
    seed: Annotated[int, typer.Option(help="Which videos.")] = 777,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Ask the same questions under every policy and budget; the option is chosen on one set and scored on another."""
    from longtake.cli.evaluate import bar
    from longtake.cli.evaluate_ask import rendered, seconds_of
    from longtake.eval.ask import text_only_of_toybox
    from longtake.eval.ask_report import DECIDES, AskReport, markdown, picture
    from longtake.eval.ask_run import without_video
    from longtake.eval.ask_sweep import policies_of, run_trials, trials
    from longtake.files import write_whole
    from longtake.hub import load

    span = seconds_of(seconds)
    policies_of(load(model), model)
    output.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        valid = rendered(choosing, seed, span, stack, split="valid")
        test = rendered(videos, seed, span, stack)
        with bar("asking (to choose)", choosing) as show:
            chosen = run_trials(model, valid, trials(shares=(DECIDES,)), show)
        with bar("asking", videos) as show:
            scored = run_trials(model, test, trials(), show)
        report = AskReport(valid=chosen, test=scored, blind=without_video(text_only_of_toybox(), test))
    heading = f"{model}, {videos} videos of {seconds} s, seed {seed}"
    write_whole(output / "ask.md", markdown(report, heading))
    write_whole(output / "ask.json", json.dumps(report.to_dict(), indent=1) + "\n")
    write_whole(output / "ask.png", picture(report, heading))
    print(json.dumps(report.to_dict()) if as_json else markdown(report, heading))
