"""Many streams and many questions on one frozen model: each as if it were alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.contract.models import make_segments, make_statekv

from longtake.session import Session
from longtake.types import Answer

QUESTIONS = [f"what happened in second {number}?" for number in range(8)]


@pytest.fixture(scope="module", params=["qwen3-vl", "llava-onevision", "internvl3"])
def model(request: pytest.FixtureRequest) -> Any:
    return make_statekv(request.param)


def seen(model: Any, seed: int, count: int = 6) -> Session[Any]:
    """A session that took in the first ``count`` segments of a stream."""
    session = Session(model, tells_events=False)
    for segment in make_segments(model.segment_spec, 8, seed=seed)[:count]:
        session.advance(segment)
    return session


def test_two_sessions_interleaved_on_one_model_answer_as_separate_ones(model: Any) -> None:
    separate = [[seen(model, seed).ask(question) for question in QUESTIONS[:3]] for seed in (1, 2)]
    streams = [make_segments(model.segment_spec, 8, seed=seed)[:6] for seed in (1, 2)]
    sessions = [Session(model, tells_events=False) for _ in streams]
    for pair in zip(*streams, strict=True):
        for session, segment in zip(sessions, pair, strict=True):
            session.advance(segment)
            session.ask("and now?")
    together = [[session.ask(question) for question in QUESTIONS[:3]] for session in sessions]
    assert together == separate
    assert together[0] != together[1], "the videos are told apart"


@torch.inference_mode()
def test_eight_questions_forked_from_one_state_answer_as_eight_separate_runs(model: Any) -> None:
    separate = [seen(model, 3).ask(question) for question in QUESTIONS]
    one = seen(model, 3)
    forks = [one.fork() for _ in QUESTIONS]
    assert [fork.ask(question) for fork, question in zip(forks, QUESTIONS, strict=True)] == separate
    # token by token in turns, as a server would
    talks = [model.converse(one.state).ask(question) for question in QUESTIONS]
    texts, waiting = [""] * len(talks), set(range(len(talks)))
    while waiting:
        for number in sorted(waiting):
            piece = next(talks[number], None)
            texts[number] += piece.text if piece else ""
            waiting -= {number} if piece is None else set()
    assert [text.strip() for text in texts] == [answer.text for answer in separate]
    assert len({answer.text for answer in separate}) > 1, "the questions are told apart"


@torch.inference_mode()
def test_answer_as_of_a_moment_is_that_of_a_stream_that_ended_there(model: Any) -> None:
    spec, whole = model.segment_spec, seen(model, 4, 8)
    early = seen(model, 4, 5)
    moment = 5 * spec.num_frames / spec.fps
    then = model.converse(model.as_of(whole.state, moment)).answer(QUESTIONS[0])
    assert then == early.ask(QUESTIONS[0])
    assert isinstance(then, Answer)
    assert then.at_seconds == moment
