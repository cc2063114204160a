"""``longtake probe``: what the reader sees in a source, read to its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.panel import Panel

    from longtake.types import SourceReport


def probe(
    source: Annotated[
        str, typer.Argument(help="A file, URL, webcam:0, folder of images, or - for standard input.", metavar="SOURCE")
    ],
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Longest wait for a sign of life from the source.")
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a panel.")] = False,
) -> None:
    """Say what the reader sees in a video: frames, times, size, losses, warnings.

    The whole source is decoded; of a live one, the first ten seconds.
    """
    from longtake.video import probe as probe_source

    report = probe_source(source, timeout_seconds=timeout)
    if as_json:
        print(json.dumps(report_to_dict(report), ensure_ascii=False))
        return
    from rich.console import Console

    Console().print(panel(source, report))


def report_to_dict(report: SourceReport) -> dict[str, object]:
    """The report under the names of the command line's contract; times in seconds, to the microsecond."""
    return {
        "frames": report.frames,
        "first_pts": round(report.first_pts, 6),
        "last_pts": round(report.last_pts, 6),
        "start_time": round(report.start_time, 6),
        "duration": None if report.duration is None else round(report.duration, 6),
        "width": report.width,
        "height": report.height,
        "rotation": report.rotation,
        "lost_frames": report.lost_frames,
        "warnings": list(report.warnings),
    }


def panel(source: str, report: SourceReport) -> Panel:
    """The report for people; a border that says at a glance whether all is well."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    rows = {
        "frames": f"{report.frames}" + (f", {report.lost_frames} lost" if report.lost_frames else ""),
        "time": f"{report.first_pts:.3f} to {report.last_pts:.3f} s",
        "media start": f"{report.start_time:.3f} s",
        "declared": "no duration" if report.duration is None else f"{report.duration:.3f} s",
        "size": f"{report.width}x{report.height}"
        + (f", turned by {report.rotation} degrees" if report.rotation else ""),
        "warnings": "\n".join(report.warnings) or "none",
    }
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        is_warning = name == "warnings" and bool(report.warnings)
        table.add_row(Text(name, style="dim"), Text(value, style="yellow" if is_warning else ""))
    border = "yellow" if report.warnings else "green"
    return Panel(table, title=Text(source), title_align="left", border_style=border, expand=False)
