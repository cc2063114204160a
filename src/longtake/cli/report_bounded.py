"""``longtake report bounded``: bounded answers compared with whole ones, as a table and a picture."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from longtake.cli import report_options as options


def bounded(
    output: options.Output = Path("runs/report-bounded"),
    model: options.Model = "toybox-vlm",
    videos: options.Videos = 12,
    seconds: options.Seconds = "600",
    seed: options.Seed = 777,
    as_json: options.AsJson = False,
) -> None:
    """Ask the same questions of whole and of bounded answers, by every retrieval and several numbers of chunks."""
    from longtake.cli.evaluate import bar
    from longtake.cli.evaluate_ask import rendered, seconds_of
    from longtake.eval.ask import text_only_of_toybox
    from longtake.eval.ask_bounded import run_ways, ways
    from longtake.eval.ask_bounded_report import BoundedReport, markdown, picture
    from longtake.eval.ask_run import without_video
    from longtake.eval.ask_sweep import policies_of
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
    table = markdown(report, heading)
    again = options.command("bounded", model=model, videos=videos, seconds=seconds, seed=seed)
    options.write_report(
        output, "bounded", report.to_dict(), table, again=again, picture=picture(report, heading), as_json=as_json
    )
