"""The options that classify and embed share, as annotations, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from longtake.cli.sources import expand

if TYPE_CHECKING:
    from longtake.cli.seeing import Watch
    from longtake.video import OnLag

Sources: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="Files, URLs, webcam:0, folders of images (one video each) or of videos, - for standard input.",
    ),
]
Model: TypeAlias = Annotated[
    str | None,
    typer.Option(help="A bundled name, a folder or a hub id.  [default: toybox-mcvit, or the state's]"),
]
Fps: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0.001, max=1000.0, metavar="F", help="Frames taken per second.  [default: the model's]"),
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a field of the model's config: memory.kind=last."),
]


def watched(
    sources: list[str],
    *,
    model: str | None,
    settings: list[str] | None,
    fps: float | None,
    seconds: float | None,
    on_lag: OnLag,
    timeout: float,
    quiet: bool,
    save: Path | None = None,
    resume: Path | None = None,
) -> Watch:
    """What was asked for; all that can be known to be wrong is told before anything heavy is loaded."""
    videos = expand(sources)
    for option, value in {"--save": save, "--resume": resume}.items():
        if value is not None and len(videos) > 1:
            raise typer.BadParameter(f"{option} is for one source, got {len(videos)}; run them one by one")
    check_output(save, videos.values())
    from longtake.cli.seeing import Watch, check_seconds
    from longtake.config import apply_overrides
    from longtake.files import check_savable

    check_seconds(seconds, resume)
    if save is not None:
        check_savable(save)
    return Watch(
        videos=videos,
        model=model,
        options=apply_overrides({}, settings or []) | ({} if fps is None else {"fps": fps}),
        seconds=seconds,
        save=save,
        resume=resume,
        on_lag=on_lag,
        timeout_seconds=timeout,
        quiet=quiet,
    )


def check_output(path: Path | None, sources: Iterable[str]) -> None:
    """Raise BadParameter for a file that is no file, or would be written over a source."""
    if path is None:
        return
    if str(path) == "-":
        raise typer.BadParameter("- is no file; give a path")
    taken = {Path(source).resolve() for source in sources if source != "-"}
    if path.resolve() in taken:
        raise typer.BadParameter(f"{path} is a source, which would be overwritten; choose another place")
