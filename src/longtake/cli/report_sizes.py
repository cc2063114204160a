"""``longtake report sizes``: a small model with full attention against a larger one with StateKV, at equal cost."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from longtake.cli import report_options as options


def sizes(
    small: Annotated[str, typer.Argument(help="The small model, read with full attention: a folder or a hub id.")],
    output: options.Output = Path("runs/report-sizes"),
    model: Annotated[str, typer.Option(help="The larger model: a bundled name, a folder or a hub id.")] = "toybox-vlm",
    videos: options.Videos = 12,
    seconds: options.Seconds = "90-120",
    seed: options.Seed = 777,
    as_json: options.AsJson = False,
) -> None:
    """Ask both models the same questions; the larger one's budget is what the small one's operations pay for."""
    from longtake.cli.evaluate import bar
    from longtake.cli.evaluate_ask import rendered, seconds_of
    from longtake.errors import ConfigError
    from longtake.eval.ask import text_only_of_toybox
    from longtake.eval.ask_run import without_video
    from longtake.eval.ask_sizes import LARGE, SMALL, SizesReport, cost_of, markdown, trials_of
    from longtake.eval.ask_sweep import policies_of, run_trials
    from longtake.hub import load

    if small == model:
        raise ConfigError(f"{small} is given as the small and as the larger model; give two models")
    span = seconds_of(seconds)
    speakers = {name: policies_of(load(name), name) for name in (small, model)}
    output.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        test = rendered(videos, seed, span, stack)
        first = next(iter(test.videos.values()))
        costs = {name: cost_of(speaker, name, first) for name, speaker in speakers.items()}
        wanted = trials_of(costs[small], costs[model])
        marks = {}
        for owner in (small, model):
            mine = {name: trial for name, (trial, _) in wanted.items() if (name == SMALL) == (owner == small)}
            with bar(f"asking {Path(owner).name}", videos) as show:
                found = run_trials(owner, test, list(mine.values()), show)
            marks |= {name: found[trial] for name, trial in mine.items()}
        report = SizesReport(
            small=costs[small],
            large=costs[model],
            marks=marks,
            operations={name: operations for name, (_, operations) in wanted.items()},
            share=wanted[LARGE][0].share,
            blind=without_video(text_only_of_toybox(), test),
        )
    heading = f"{Path(small).name} and {model}, {videos} videos of {seconds} s, seed {seed}"
    table = markdown(report, heading)
    again = options.command("sizes", small, model=model, videos=videos, seconds=seconds, seed=seed)
    options.write_report(output, "sizes", report.to_dict(), table, again=again, as_json=as_json)
