"""What classify, embed and a choice by MC-ViT share: the model, and sources seen one by one, whatever befalls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from longtake.cli.reading import Reading, can_answer, lasting, read, stopped
from longtake.cli.terminal import StatusLine, summary
from longtake.config import merged, to_dict
from longtake.errors import CheckpointError, ConfigError, LongtakeError, UnsupportedRequest
from longtake.hub import bundled, load
from longtake.position import read_notes
from longtake.protocol import StreamModel
from longtake.session import Session, Step
from longtake.types import Choose, Classify, Embed, Request
from longtake.video import OnLag

DEFAULT_MODEL = "toybox-mcvit"
WHAT = {Classify: "gives no labels", Embed: "gives no vectors", Choose: "chooses nothing"}
"""Of a model that does not serve a request."""
CUT = "the model took in no more; what is said is about what was seen until then"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Which sources are seen by which model, and how."""

    videos: Mapping[str, str]
    """Name in the output -> source."""
    model: str | None
    """None: the state's, else the default."""
    options: Mapping[str, Any]
    """Fields of the model's config, nested ones as tables."""
    seconds: float | None = None
    save: Path | None = None
    resume: Path | None = None
    on_lag: OnLag = "wait"
    timeout_seconds: float = 10.0
    quiet: bool = False


class Seen(NamedTuple):
    """What came of one source."""

    session: Session[Any]
    failure: BaseException | None
    """Why reading stopped although what was seen is worth an answer."""
    cut: bool
    """Reading stopped before it was meant to."""


def load_model(watch: Watch, kind: type[Request]) -> StreamModel[Any]:
    """The model that serves this kind of request.

    Raises:
        CheckpointError: There is no such model.
        UnsupportedRequest: It does not serve it.
    """
    notes = read_notes(watch.resume) if watch.resume else {}
    name = _name(watch)
    if name == DEFAULT_MODEL and name not in bundled() and not Path(name).is_dir():
        raise CheckpointError(
            f"{name} does not come with this version; give --model the folder or hub id of an MC-ViT or a ViViT, "
            "for example google/vivit-b-16x2-kinetics400"
        )
    model = load(name, **merged(notes.get("config") or {}, watch.options))
    if kind not in model.supports:
        why = "it has neither labels nor a text tower" if kind is Classify and Embed in model.supports else ""
        why = "it has no text tower" if kind is Choose and Embed in model.supports else why
        raise UnsupportedRequest(
            f"{name} is a {type(model).__name__} and {WHAT.get(kind, 'does not serve that')}"
            f"{f' ({why})' if why else ''}; give --model an MC-ViT that can"
        )
    return model


def run_each(
    watch: Watch,
    model: StreamModel[Any],
    status: StatusLine,
    tell: Callable[[str, Seen], None],
    *,
    on_step: Callable[[str, Session[Any], Step], None] | None = None,
    interrupted: Callable[[], None] | None = None,
) -> int:
    """See each source to its end and tell of it; one that fails is named and the others go on. The exit status.

    Args:
        on_step: Told the video, its session and what was taken in, after each segment.
        interrupted: Called when a live source was stopped by Ctrl-C, after what was seen of it was told.
    """
    failed = False
    for video in watch.videos:
        try:
            seen = see(watch, model, video, status, on_step=on_step)
            tell(video, seen)
            if isinstance(seen.failure, KeyboardInterrupt) and interrupted is not None:
                interrupted()
            if seen.failure is not None:
                raise seen.failure
        except LongtakeError as error:
            failed = True
            status.say(" ".join(str(error).split()))
    return int(failed)


def see(
    watch: Watch,
    model: StreamModel[Any],
    video: str,
    status: StatusLine,
    *,
    on_step: Callable[[str, Session[Any], Step], None] | None = None,
) -> Seen:
    """Take in one source. What stops that is raised, unless what was seen is worth an answer."""
    source, failure, reason = watch.videos[video], None, ""
    session = _session(watch, model, source)
    familiar = True

    def each(step: Step) -> None:
        nonlocal familiar
        if familiar and (why := session.unfamiliar()) is not None:
            familiar = False
            status.say(f"WARNING: {video}: {why}")
        if on_step is not None:
            on_step(video, session, step)

    try:
        reason = read(session, _reading(watch, video), status, on_step=each)
    except (LongtakeError, KeyboardInterrupt) as error:
        if not can_answer(error, source, session):
            if isinstance(error, KeyboardInterrupt):
                status.say(stopped(source, session, watch.save, what="told"))
            raise
        failure = error
    if not watch.quiet:
        status.say(f"{video}: {summary(session.progress)}")
    if reason:
        status.say(f"{video}: {CUT}")
    return Seen(session, failure, bool(reason) or isinstance(failure, LongtakeError))


def warn_half_read(model: Any, texts: list[str], status: StatusLine) -> None:
    """Say so if the model's text tower does not know what it is given."""
    odd = model.half_read(texts) if hasattr(model, "half_read") else []
    if odd:
        status.say(
            f"WARNING: {len(odd)} of {len(texts)} texts have words that the model does not know, or are too long for "
            f"it, for example {odd[0]!r}; their scores mean little"
        )


def check_seconds(seconds: float | None, resume: Path | None) -> None:
    """Raise ConfigError for a stretch of time that cannot be read."""
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise ConfigError(f"--seconds is {seconds:g}, expected a number of seconds, 0 or more")
    if seconds == 0 and resume is None:
        raise ConfigError("--seconds 0 reads nothing, so there is nothing to tell; it goes with --resume")


def _name(watch: Watch) -> str:
    if watch.model is not None:
        return watch.model
    notes = read_notes(watch.resume) if watch.resume else {}
    return notes.get("model") or DEFAULT_MODEL


def _reading(watch: Watch, video: str) -> Reading:
    return Reading(
        source=watch.videos[video],
        name=video if len(watch.videos) > 1 else "",
        seconds=watch.seconds,
        save=watch.save,
        on_lag=watch.on_lag,
        timeout_seconds=watch.timeout_seconds,
    )


def _session(watch: Watch, model: Any, source: str) -> Session[Any]:
    """At the start of the source, or where the state stands."""
    if watch.resume is None:
        session: Session[Any] = Session(model, source=source, tells_events=False)
    else:
        session = Session.resume(model, watch.resume, tells_events=False)
    session.notes |= {"model": lasting(_name(watch)), "config": to_dict(model.config)}
    return session
