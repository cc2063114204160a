"""``longtake caption``: the events of videos and streams, each as soon as it has ended."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from longtake.cli.sources import JOURNAL_SUFFIX, expand


class Format(StrEnum):
    """What ``--format`` takes."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"
    SRT = "srt"
    VTT = "vtt"


class OnLag(StrEnum):
    """What ``--on-lag`` takes."""

    WAIT = "wait"
    DROP = "drop"
    STRIDE = "stride"


def caption(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="Files, URLs, webcam:0, folders of images (one video each) or of videos, - for standard input.",
        ),
    ],
    model: Annotated[str, typer.Option(help="A bundled name, a checkpoint folder or a hub id.")] = "toybox-sts",
    to: Annotated[
        Format | None,
        typer.Option("--format", help="Of stdout, or of all -o files; by default text, or by each file's suffix."),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write events here too; may be given several times."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a field of the model's config: caption_seconds=4."),
    ] = None,
    fps: Annotated[
        float | None, typer.Option(min=0.001, help="Sampling rate other than the model's, if the model allows it.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="STATE", help="Keep a snapshot here, good to go on from at any moment.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="STATE", help="Go on from a snapshot; give the same source again.")
    ] = None,
    on_lag: Annotated[
        OnLag, typer.Option(help="When a live source is faster than the model: fall behind, or leave frames out.")
    ] = OnLag.WAIT,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=86400.0, metavar="SECONDS", help="Longest wait for a sign of life from the source."),
    ] = 10.0,
    timeline: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the events along time into this picture.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress on stderr; with -o nothing on stdout.")
    ] = False,
) -> None:
    """Say the events of videos and streams, each as soon as it has ended.

    A source that fails is reported and the others go on; the exit status is then 1.
    """
    videos = expand(sources)
    files = list(output or ())
    _check_usage(videos, files, save=save, resume=resume, timeline=timeline)
    from longtake.cli.captioning import Job, run

    job = Job(
        videos=videos,
        model=model,
        settings=settings or [],
        to=to.value if to else None,
        files=files,
        fps=fps,
        save=save,
        resume=resume,
        on_lag=on_lag.value,
        timeout_seconds=timeout,
        timeline=timeline,
        quiet=quiet,
    )
    raise typer.Exit(run(job))


def _check_usage(
    videos: dict[str, str], files: list[Path], *, save: Path | None, resume: Path | None, timeline: Path | None
) -> None:
    """What can be known to be wrong before anything heavy is loaded."""
    alone = {"--save": save, "--resume": resume, "--timeline": timeline}
    for option, value in alone.items():
        if value is not None and len(videos) > 1:
            raise typer.BadParameter(f"{option} is for one source, got {len(videos)}; run them one by one")
    journal = save.with_name(save.name + JOURNAL_SUFFIX) if save is not None else None
    written = [path for path in (*files, save, journal, timeline) if path is not None]
    places = [path.resolve() for path in written]
    taken = {Path(source).resolve() for source in videos.values() if source != "-"}
    for path, place in zip(written, places, strict=True):
        if str(path) == "-":
            raise typer.BadParameter("- is no file; leave -o out for stdout")
        if places.count(place) > 1 or place in taken:
            raise typer.BadParameter(f"{path} is given twice, and would be overwritten")
