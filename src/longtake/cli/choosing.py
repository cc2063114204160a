"""``longtake ask --choice`` with an MC-ViT: the choice whose text, after the question's, is nearest to the video."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longtake import hub
from longtake.cli.answers import BLIND, INCOMPLETE, JsonLines, Shown, Text
from longtake.cli.ask_job import Job
from longtake.cli.seeing import DEFAULT_MODEL, Watch, load_model, see, warn_half_read
from longtake.cli.sources import short_name
from longtake.cli.terminal import StatusLine
from longtake.errors import ConfigError, LongtakeError, UnsupportedRequest
from longtake.methods.mcvit import option_texts
from longtake.methods.mcvit_blind import without_video
from longtake.session import Session
from longtake.types import Answer, Choose

OF_WORDS = ("policy", "select", "sinks", "budget", "horizon_seconds", "height", "width")
"""Options of ``ask`` that only a video-language model has."""


def is_meant(name: str) -> bool:
    """Whether this model is an MC-ViT; raises CheckpointError if there is no such model."""
    if name == DEFAULT_MODEL and name not in hub.bundled():
        return True  # what is wrong is told when it is loaded
    return hub.method_name(hub.find(name)) == "mcvit"


def run(job: Job, name: str, status: StatusLine) -> int:
    """Read, unless blind, and choose; the exit status."""
    _check(job, name)
    video = short_name(job.source)
    watch = Watch(
        videos={video: job.source},
        model=name,
        options=job.options,
        seconds=job.seconds,
        save=job.save,
        resume=job.resume,
        on_lag=job.on_lag,
        timeout_seconds=job.timeout_seconds,
        quiet=job.quiet,
    )
    model: Any = load_model(watch, Choose)
    requests = [Choose(question=question, options=job.choices) for question in job.questions]
    warn_half_read(model, [text for request in requests for text in option_texts(request)], status)
    if job.blind:
        session = Session(model, tells_events=False)
        state, failure, flags = without_video(model), None, (BLIND,)
    else:
        session, failure, cut = see(watch, model, video, status)
        if isinstance(failure, LongtakeError):
            status.say(" ".join(str(failure).split()))
        state, flags = session.state, (INCOMPLETE,) if cut else ()
    shown = _shown(job, model, session, status)
    for request in requests:
        (answer,) = model.respond(state, request)
        _show(shown, request, answer, flags)
    if isinstance(failure, KeyboardInterrupt):
        raise failure
    return int(failure is not None)


def _shown(job: Job, model: Any, session: Session[Any], status: StatusLine) -> Shown:
    """In JSON, policy and budget are the variant and the tokens that a layer's memory may hold."""
    if not job.as_json:
        return Text(status, several=len(job.questions) > 1)
    config = model.config
    seen = session.clock.seen_seconds
    return JsonLines(status, policy=config.memory.variant, budget=config.capacity, seen_seconds=seen)


def _show(shown: Shown, request: Choose, answer: Answer, flags: tuple[str, ...]) -> None:
    shown.begin(request.question)
    shown.end(request.question, replace(answer, flags=(*answer.flags, *flags)), request.options)


def _check(job: Job, name: str) -> None:
    """Raise for what an MC-ViT cannot be asked."""
    if not job.choices:
        raise UnsupportedRequest(
            f"{name} is an MC-ViT and answers no questions in words; give it two or more --choice, or give --model a "
            "video-language model"
        )
    idle = [key for key in OF_WORDS if key in job.options] + list(job.sampling)
    idle += [key for key, given in (("follow_up", job.follow_up), ("at", job.at is not None)) if given]
    idle += ["choose_by generation"] if job.choose_by == "generation" else []
    if idle:
        option = f"--{idle[0].replace('_seconds', '').replace('_', '-')}"
        raise ConfigError(
            f"{name} is an MC-ViT, for which {option} changes nothing; leave it out, or give --model a "
            "video-language model"
        )
