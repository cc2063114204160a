"""The work behind ``longtake caption``: follow each source, show and keep its events, go on when one fails."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake.cli.outputs import Outputs
from longtake.cli.snapshots import Snapshots, said_before
from longtake.cli.terminal import StatusLine, summary
from longtake.config import apply_overrides
from longtake.errors import ConfigError, LongtakeError, StateError
from longtake.eval.timeline import Filmstrip, check_picture, draw_timeline
from longtake.files import check_savable
from longtake.hub import load
from longtake.language.formats import ONE_VIDEO_FORMATS, Format
from longtake.protocol import StreamModel
from longtake.session import Session, require_captions
from longtake.types import Event
from longtake.video import OnLag
from longtake.video.address import parse_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked for on the command line."""

    videos: Mapping[str, str]
    """Name in the output -> source."""
    model: str
    settings: list[str]
    """Fields of the model's config, as ``key=value``."""
    to: Format | None
    files: list[Path]
    fps: float | None
    save: Path | None
    resume: Path | None
    on_lag: OnLag
    timeout_seconds: float
    timeline: Path | None
    quiet: bool


def run(job: Job) -> int:
    """Caption every source; the exit status."""
    status = StatusLine(shown=not job.quiet)
    outputs = Outputs(
        job.files,
        to=job.to,
        several=len(job.videos) > 1,
        keep=job.timeline is not None,
        quiet=job.quiet,
        status=status,
    )
    _check(job, outputs)
    model = load(job.model, **apply_overrides({}, job.settings))
    require_captions(model)
    Session(model, fps=job.fps)  # a rate that the model refuses is told once, not for each source
    failed, strip = False, Filmstrip()
    for video, source in job.videos.items():
        # a camera has no whole that could be missed: what was seen until it went away is the result
        endless = _is_live(source)
        try:
            _follow(job, model, video, outputs, strip, status)
        except LongtakeError as error:
            failed = True
            status.say(" ".join(str(error).split()))
            if not endless:
                outputs.drop(video)
        except KeyboardInterrupt:
            status.clear()
            if endless:
                _finish(job, outputs, strip)
            raise
    _finish(job, outputs, strip)
    return int(failed)


def _follow(
    job: Job, model: StreamModel[Any], video: str, outputs: Outputs, strip: Filmstrip, status: StatusLine
) -> None:
    source = job.videos[video]
    session, said = _session(job, model, source, outputs)
    shown_name = video if len(job.videos) > 1 else ""
    familiar, num_said = True, session.clock.num_events
    with ExitStack() as stack:
        snapshots = stack.enter_context(Snapshots(job.save, said=said, resumed=job.resume)) if job.save else None
        steps = stack.enter_context(
            closing(session.watch(source, on_lag=job.on_lag, timeout_seconds=job.timeout_seconds))
        )
        for number, step in enumerate(steps):
            if number == 0:
                outputs.begin(video, said)
            if snapshots is not None:
                snapshots.record(step.events)
            outputs.add(video, step.events)
            if snapshots is not None:
                snapshots.save(session, now=bool(step.events) or step.segment is None)
            if step.segment is not None and job.timeline is not None:
                strip.add(step.segment)
            if familiar and (why := session.unfamiliar()) is not None:
                familiar = False
                status.say(f"WARNING: {video}: {why}")
            status.show(shown_name, step.progress)
    if not job.quiet:
        status.say(f"{video}: {summary(session.progress, session.clock.num_events - num_said)}")


def _finish(job: Job, outputs: Outputs, strip: Filmstrip) -> None:
    outputs.finish()
    for video, events in outputs.results.items():
        if job.timeline is not None:
            draw_timeline(events, job.timeline, title=video, seen_seconds=strip.seen_seconds, pictures=strip.pictures)


def _session(job: Job, model: StreamModel[Any], source: str, outputs: Outputs) -> tuple[Session[Any], list[Event]]:
    """A session at the start of the source or where the snapshot stands, and what it said before."""
    if job.resume is None:
        return Session(model, source=source, fps=job.fps), []
    session = Session.resume(model, job.resume)
    if job.fps not in (None, session.spec.fps):
        raise StateError(f"{job.resume} was saved at {session.spec.fps:g} fps, got --fps {job.fps:g}; leave --fps out")
    needs_all = outputs.wants_whole or job.save is not None or job.timeline is not None
    return session, said_before(job.resume, session) if needs_all else []


def _check(job: Job, outputs: Outputs) -> None:
    """All that can be checked before the model is loaded."""
    for to in outputs.formats & ONE_VIDEO_FORMATS:
        if len(job.videos) > 1:
            raise ConfigError(f"{to} holds one video, got {len(job.videos)}; write json or jsonl, or run one by one")
    if job.save is not None:
        check_savable(job.save)
    if job.timeline is not None:
        check_picture(job.timeline)


def _is_live(source: str) -> bool:
    try:
        return parse_address(source).is_live
    except LongtakeError:
        return False
