"""The work behind ``longtake ask``: read the source, keep the state if that is wanted, then answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from longtake.cli import choosing
from longtake.cli.answers import INCOMPLETE, JsonLines, Shown, Text, trimmed
from longtake.cli.ask_job import Job, check_options, check_used
from longtake.cli.reading import Reading, can_answer, lasting, read, stopped
from longtake.cli.sources import short_name
from longtake.cli.terminal import StatusLine, summary
from longtake.config import to_dict
from longtake.errors import ConfigError, LongtakeError, StateError, UnsupportedRequest
from longtake.hub import load
from longtake.methods.statekv_answer import flags_of
from longtake.methods.statekv_choice import choose_by_saying
from longtake.position import read_notes
from longtake.session import Session
from longtake.types import Answer
from longtake.vlm.decode import Sampling

DEFAULT_MODEL = "toybox-vlm"


def run(job: Job) -> int:
    """Read and answer; the exit status."""
    status = StatusLine(shown=not job.quiet)
    notes = read_notes(job.resume) if job.resume else {}
    name = notes.get("model", DEFAULT_MODEL) if job.model is None else job.model
    if choosing.is_meant(name):
        return choosing.run(job, name, status)
    check_options(job)
    remote = {"trust_remote_code": True} if job.trust_remote_code else {}
    model: Any = _load(job, name, notes, remote)
    _check_questions(job, model, name)
    check_used(job, model.config)
    _tell_limits(job, model, status)
    session = _session(job, model, notes.get("config") or {})
    session.notes |= {"model": lasting(name), "config": to_dict(model.config)}
    failure: BaseException | None = None
    reason = ""
    try:
        reason = read(session, _reading(job), status)
    except (LongtakeError, KeyboardInterrupt) as error:
        if not can_answer(error, job.source, session):
            if isinstance(error, KeyboardInterrupt):
                status.say(stopped(job.source, session, job.save))
            raise
        failure = error
    if not job.quiet:
        status.say(f"{short_name(job.source)}: {summary(session.progress)}")
    broken = isinstance(failure, LongtakeError)
    if broken:
        status.say(" ".join(str(failure).split()))
    whole = failure is None and not reason and job.seconds is None
    try:
        _check_moment(job, session, whole=whole)
    except ConfigError as error:
        if isinstance(failure, KeyboardInterrupt):  # whoever stopped it, knows why the moment was not reached
            status.say(str(error))
            raise failure from None
        raise
    _answer_all(job, session, status, flags=(INCOMPLETE,) if broken or reason else ())
    if isinstance(failure, KeyboardInterrupt):
        raise failure
    return int(broken)


def _load(job: Job, name: str, notes: Mapping[str, Any], remote: Mapping[str, Any]) -> Any:
    """The model as the state was made with it, but for what is asked for now."""
    try:
        return load(name, **{**(notes.get("config") or {}), **job.options, **remote})
    except ConfigError as error:
        if notes.get("model", lasting(name)) != lasting(name):
            raise StateError(
                f"{job.resume} was saved with model {notes['model']}, and {name} cannot take its settings; "
                "leave --model out, or start anew without --resume"
            ) from error
        raise


def _tell_limits(job: Job, model: Any, status: StatusLine) -> None:
    """What was asked for and cannot make a difference, though it does no harm."""
    positions = model.horizon.positions
    if "budget" in job.options and model.config.budget >= positions and model.config.at_horizon == "stop":
        status.say(
            f"a budget of {model.config.budget} lets nothing go, as --policy full does: "
            f"this model serves {positions} positions of video"
        )


def _reading(job: Job) -> Reading:
    return Reading(
        source=job.source,
        seconds=job.seconds,
        until=job.at if job.save is None else None,
        save=job.save,
        on_lag=job.on_lag,
        timeout_seconds=job.timeout_seconds,
    )


def _check_moment(job: Job, session: Session[Any], *, whole: bool) -> None:
    """Raise ConfigError for a moment that was not seen; ``whole``: the source was read to its end."""
    seen = session.clock.seen_seconds
    if job.at is None or job.at <= seen + 1e-6:
        return
    if whole:
        raise ConfigError(
            f"--at {job.at:g} lies beyond the end: {short_name(job.source)} is {seen:g} s long; give an earlier moment"
        )
    raise ConfigError(f"--at {job.at:g} was not reached: reading stopped at {seen:g} s; give an earlier moment")


def _session(job: Job, model: Any, saved: Mapping[str, Any]) -> Session[Any]:
    """At the start of the source, or where the state stands; ``saved`` is the config that the state was made with."""
    if job.resume is None:
        return Session(model, source=job.source, tells_events=False)
    try:
        return Session.resume(model, job.resume, tells_events=False)
    except StateError as error:
        for key, value in job.options.items():
            if key in saved and saved[key] != value:
                raise StateError(
                    f"{job.resume} was saved with {key} {saved[key]}, got {value}; "
                    "leave that out, or start anew without --resume"
                ) from error
        raise


def _answer_all(job: Job, session: Session[Any], status: StatusLine, *, flags: tuple[str, ...]) -> None:
    import torch

    with torch.inference_mode():
        _answer_each(job, session, status, flags)


def _answer_each(job: Job, session: Session[Any], status: StatusLine, flags: tuple[str, ...]) -> None:
    model: Any = session.model
    state = session.state if job.at is None else model.as_of(session.state, job.at)
    seen = session.clock.seen_seconds
    if job.at is not None and not job.as_json and state.seen_seconds < job.at - 1e-3:
        status.say(f"answered as of {state.seen_seconds:g} s, the last step that was complete by {job.at:g} s")
    shown: Shown = Text(status, several=len(job.questions) > 1)
    if job.as_json:
        shown = JsonLines(status, policy=model.config.policy, budget=model.config.budget, seen_seconds=seen)
    sampling = Sampling(**{"max_new_tokens": model.config.max_new_tokens, **job.sampling})
    conversation: Any = None
    for question in job.questions:
        if conversation is None or not job.follow_up:
            conversation = None  # its memory is free before the next one takes as much
            conversation = model.converse(state, sampling)
        shown.begin(question)
        answer = _answer(job, conversation, question, shown)
        shown.end(question, replace(answer, flags=(*answer.flags, *flags)), job.choices)


def _answer(job: Job, conversation: Any, question: str, shown: Shown) -> Answer:
    if job.choices and job.choose_by == "likelihood":
        return conversation.choose(question, job.choices)
    if job.choices:
        answer = choose_by_saying(conversation, question, job.choices)
        if answer.choice is None:
            shown.add(answer.text)
        return answer
    flags: list[str] = []

    def pieces() -> Iterator[str]:
        for piece in conversation.ask(question):
            flags.extend([piece.finish] if piece.finish not in ("", "stop") else [])
            yield piece.text

    words: list[str] = []
    for text in trimmed(pieces()):
        words.append(text)
        shown.add(text)
    text = "".join(words)
    return Answer(text=text, at_seconds=conversation.at_seconds, flags=(*flags, *flags_of(text)))


def _check_questions(job: Job, model: Any, name: str) -> None:
    if not hasattr(model, "converse"):
        raise UnsupportedRequest(
            f"{name} is a {type(model).__name__} and answers no questions in words; give --model a video-language model"
        )
    for text in (*job.questions, *job.choices):
        model.family.question(text, position=0)
