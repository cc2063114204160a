"""``longtake report ask``: policies and budgets compared on one frozen model, as a table and a picture."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from longtake.cli import report_options as options


def ask(
    output: options.Output = Path("runs/report-ask"),
    model: options.Model = "toybox-vlm",
    videos: options.Videos = 30,
    choosing: Annotated[int, typer.Option(min=1, help="Other unseen videos on which the best option is chosen.")] = 24,
    seconds: options.Seconds = "90-120",
    seed: options.Seed = 777,
    as_json: options.AsJson = False,
) -> None:
    """Ask the same questions under every policy and budget; the option is chosen on one set and scored on another."""
    from longtake.cli.evaluate import bar
    from longtake.cli.evaluate_ask import rendered, seconds_of
    from longtake.eval.ask import text_only_of_toybox
    from longtake.eval.ask_report import DECIDES, AskReport, markdown, picture
    from longtake.eval.ask_run import without_video
    from longtake.eval.ask_sweep import policies_of, run_trials, trials
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
    table = markdown(report, heading)
    again = options.command("ask", model=model, videos=videos, choosing=choosing, seconds=seconds, seed=seed)
    options.write_report(
        output, "ask", report.to_dict(), table, again=again, picture=picture(report, heading), as_json=as_json
    )
