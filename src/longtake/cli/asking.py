"""The work behind ``longtake ask``: read the source, keep the state if that is wanted, then answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from longtake.cli.answers import JsonLines, Shown, Text, trimmed
from longtake.cli.snapshots import Pace
from longtake.cli.sources import short_name
from longtake.cli.terminal import StatusLine, summary
from longtake.config import from_dict, to_dict
from longtake.errors import ConfigError, LongtakeError, StateError, UnsupportedRequest
from longtake.files import check_writable
from longtake.hub import load
from longtake.methods.statekv_choice import choose_by_saying
from longtake.methods.statekv_config import StateKVConfig
from longtake.position import read_notes
from longtake.session import Session
from longtake.types import Answer
from longtake.video import OnLag
from longtake.video.address import parse_address
from longtake.vlm.decode import Sampling

DEFAULT_MODEL = "toybox-vlm"
MAX_LETTERS = 20_000
"""Of a question: about as much as a model can take beside a video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked for on the command line; None and empty: not said."""

    source: str
    questions: tuple[str, ...]
    model: str | None
    options: Mapping[str, Any]
    """Fields of ``StateKVConfig``, those that were given."""
    sampling: Mapping[str, Any]
    """Fields of ``Sampling``, those that were given."""
    choices: tuple[str, ...]
    choose_by: Literal["likelihood", "generation"]
    follow_up: bool
    at: float | None
    seconds: float | None
    save: Path | None
    resume: Path | None
    on_lag: OnLag
    timeout_seconds: float
    trust_remote_code: bool
    as_json: bool
    quiet: bool


def run(job: Job) -> int:
    """Read and answer; the exit status."""
    status = StatusLine(shown=not job.quiet)
    notes = read_notes(job.resume) if job.resume else {}
    _check(job, notes)
    name = job.model or notes.get("model", DEFAULT_MODEL)
    remote = {"trust_remote_code": True} if job.trust_remote_code else {}
    model = load(name, **(notes.get("config") or {}) | job.options | remote)
    _check_questions(job, model, name)
    if job.resume:
        session = Session.resume(model, job.resume, tells_events=False)
    else:
        session = Session(model, source=job.source, tells_events=False)
    session.notes |= {"model": _lasting(name), "config": to_dict(model.config)}
    failure: BaseException | None = None
    try:
        _read(job, session, status)
    except (LongtakeError, KeyboardInterrupt) as error:
        # a camera has no end that could be missed: what was seen until then is what the questions are about
        if not _is_endless(job.source) or not session.clock.num_segments or isinstance(error, StateError):
            raise
        failure = error
    if not job.quiet:
        status.say(f"{short_name(job.source)}: {summary(session.progress)}")
    with torch.inference_mode():
        _answer_all(job, session, status)
    if isinstance(failure, LongtakeError):
        status.say(" ".join(str(failure).split()))
        return 1
    if failure is not None:
        raise failure
    return 0


def _read(job: Job, session: Session[Any], status: StatusLine) -> None:
    """Take the source in, as far as it is wanted; whatever happens, ``--save`` has what was taken in."""
    if job.seconds == 0:
        return
    pace, began = Pace(job.save) if job.save else None, session.clock.seen_seconds
    try:
        steps = session.watch(job.source, on_lag=job.on_lag, timeout_seconds=job.timeout_seconds)
        with closing(steps):
            for step in steps:
                if pace:
                    pace.save(session, session.notes, now=False)
                status.show("", step.progress)
                if _is_enough(job, session, began):
                    break
    except StateError:
        raise  # another source than the state's: nothing was taken in
    except (LongtakeError, KeyboardInterrupt):
        if pace and session.clock.num_segments:
            pace.save(session, session.notes, now=True)
        raise
    finally:
        status.clear()
    if pace:
        pace.save(session, session.notes, now=True)


def _is_enough(job: Job, session: Session[Any], began: float) -> bool:
    seen = session.clock.seen_seconds
    if job.seconds is not None and seen - began >= job.seconds - 1e-6:
        return True
    # a segment that ends later is not needed for this moment, nor is the rest
    return job.at is not None and job.save is None and seen > job.at


def _answer_all(job: Job, session: Session[Any], status: StatusLine) -> None:
    model: Any = session.model
    state = session.state if job.at is None else model.as_of(session.state, job.at)
    seen = session.clock.seen_seconds
    shown: Shown = Text(status, several=len(job.questions) > 1)
    if job.as_json:
        shown = JsonLines(status, policy=model.config.policy, budget=model.config.budget, seen_seconds=seen)
    sampling = Sampling(**{"max_new_tokens": model.config.max_new_tokens} | dict(job.sampling))
    conversation: Any = None
    for question in job.questions:
        if conversation is None or not job.follow_up:
            conversation = None  # its memory is free before the next one takes as much
            conversation = model.converse(state, sampling)
        shown.begin(question)
        shown.end(question, _answer(job, conversation, question, shown), job.choices)


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
    return Answer(text="".join(words), at_seconds=conversation.at_seconds, flags=tuple(flags))


# --- checks: all that can be known before the first frame is


def _check(job: Job, notes: Mapping[str, Any]) -> None:
    """All that can be checked before the model is loaded."""
    for number, question in enumerate(job.questions, 1):
        _check_words(f"question {number}", question)
    for number, choice in enumerate(job.choices, 1):
        _check_words(f"choice {number}", choice)
    if len(job.choices) == 1:
        raise ConfigError("got one --choice, expected two or more to choose from, or none")
    folded = [" ".join(choice.split()).casefold() for choice in job.choices]
    if twice := [choice for choice, same in zip(job.choices, folded, strict=True) if folded.count(same) > 1]:
        raise ConfigError(f"choice {twice[0]!r} is given twice; give each once")
    if job.follow_up and job.choices and job.choose_by == "likelihood":
        raise ConfigError("a choice by likelihood is no turn of a conversation; use --choose-by generation, or no --follow-up")
    for name, value in (("--at", job.at), ("--seconds", job.seconds)):
        if value is not None and not 0 <= value < float("inf"):
            raise ConfigError(f"{name} is {value:g}, expected 0 or more seconds from the video's first frame")
    if job.seconds == 0 and job.resume is None:
        raise ConfigError("--seconds 0 reads nothing, so there is nothing to ask about; it goes with --resume")
    from_dict(Sampling, job.sampling, where="sampling")
    from_dict(StateKVConfig, job.options, where="options")
    saved = notes.get("config") or {}
    for key, value in job.options.items():
        if key in saved and saved[key] != value:
            raise StateError(
                f"{job.resume} was saved with {key} {saved[key]}, got {value}; leave it out, or start anew without --resume"
            )
    if job.save is not None:
        check_writable(job.save)
    if job.source != "-" and job.seconds != 0:
        parse_address(job.source)


def _check_words(what: str, text: str) -> None:
    if not text.strip():
        raise ConfigError(f"{what} is empty; put it in words")
    if len(text) > MAX_LETTERS:
        raise ConfigError(f"{what} has {len(text)} characters, expected at most {MAX_LETTERS}; ask for less at once")
    if odd := [letter for letter in text if not letter.isprintable() and letter not in "\n\t"]:
        raise ConfigError(f"{what} contains {odd[0]!r}, which is not text; remove it")


def _check_questions(job: Job, model: Any, name: str) -> None:
    if not hasattr(model, "converse"):
        raise UnsupportedRequest(
            f"{name} is a {type(model).__name__} and answers no questions in words; give --model a video-language model"
        )
    for text in (*job.questions, *job.choices):
        model.family.question(text, position=0)


def _is_endless(source: str) -> bool:
    try:
        address = parse_address(source)
    except LongtakeError:
        return False
    return address.is_live or address.kind == "pipe"


def _lasting(name: str) -> str:
    """The model's name as it will still be found from another folder."""
    return str(Path(name).resolve()) if Path(name).expanduser().is_dir() else name


