"""What a model says of a stretch of video, as events on our clock."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import pytest
import torch
from tests.contract.models import make_segments, make_statekv

from longtake.methods.statekv import StateKV
from longtake.methods.statekv_caption import events_of
from longtake.session import Session
from longtake.types import Answer, Caption, Event


def said(text: str, *flags: str) -> list[tuple[float, float, str, bool, bool]]:
    """Events between 8 and 16 seconds."""
    events = events_of(Answer(text=text, flags=flags), 8.0, 16.0)
    return [(one.start_seconds, one.end_seconds, one.text, one.start_clamped, one.end_clamped) for one in events]


def test_answer_without_times_lasts_the_whole_stretch() -> None:
    assert said("A red car leaves.\nIt rains.") == [(8.0, 16.0, "A red car leaves. It rains.", False, False)]


@pytest.mark.parametrize(
    "text",
    [
        "9.5 - 12 seconds: a dog barks",
        "- [9.5s-12s] a dog barks",
        "From 9.5 to 12.0 seconds, a dog barks",
        "0:09.5–0:12 a dog barks",  # noqa: RUF001
        "**Between 9.5 and 12 seconds:** a dog barks",
    ],
)
def test_times_within_the_stretch_are_taken(text: str) -> None:
    assert said(text) == [(9.5, 12.0, "a dog barks", False, False)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 - 12 seconds: a dog", (8.0, 12.0, "a dog", True, False)),
        ("9 - 99 seconds: a dog", (9.0, 16.0, "a dog", False, True)),
        ("2 - 99 seconds: a dog", (8.0, 16.0, "a dog", True, True)),
        ("20 - 30 seconds: a dog", (8.0, 16.0, "a dog", True, True)),
        ("12 - 9 seconds: a dog", (8.0, 16.0, "a dog", True, True)),
    ],
)
def test_other_times_are_clamped_and_flagged(text: str, expected: tuple[object, ...]) -> None:
    assert said(text) == [expected]
    (event,) = events_of(Answer(text=text), 8.0, 16.0)
    assert (event.to_dict("v").get("start_clamped"), event.to_dict("v").get("end_clamped")) == (
        expected[3] or None,
        expected[4] or None,
    )


def test_lines_with_times_are_events_in_order_of_time() -> None:
    text = "Here is what happened:\n12-14 seconds: a cat\n9-10 seconds: a dog\n10-11 seconds: nothing"
    assert [one[:3] for one in said(text)] == [(9.0, 10.0, "a dog"), (12.0, 14.0, "a cat")]


@pytest.mark.parametrize(
    "text",
    ["", " ", "nothing", "Nothing.", "None", "No", "Nothing happened.", "Nothing new happens in this part.", "N/A",
     "No significant changes.", "There was no activity in the video.", "**Nothing**"],
)  # fmt: skip
def test_nothing_is_said_as_nothing(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    "text", ["No one moved, but the car left.", "Nothing but a cat is left.", "None of them fell."]
)
def test_sentences_that_only_begin_like_nothing_are_events(text: str) -> None:
    assert said(text) == [(8.0, 16.0, text, False, False)]


def test_degenerate_words_are_no_event_and_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert said("car car car car", "repeats") == []
    assert "the model repeats itself at 8.0 to 16.0 s" in caplog.text


# --- a whole stream


@pytest.fixture(scope="module")
def model() -> Any:
    """Says what it was asked and never falls silent."""
    return make_statekv("qwen3-vl")


@pytest.fixture
def asked(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that captioning puts; each answer is different."""
    questions: list[str] = []

    def answer(self: Any, question: str) -> Answer:
        questions.append(question)
        return Answer(text=f"event number {len(questions)}")

    monkeypatch.setattr("longtake.methods.statekv_answer.Conversation.answer", answer)
    return questions


def spans(events: list[Event]) -> list[tuple[float, float]]:
    return [(event.start_seconds, event.end_seconds) for event in events]


def test_each_decoding_point_asks_about_the_time_since_the_last_one(model: Any, asked: list[str]) -> None:
    session = Session(model)
    events = [event for segment in make_segments(model.segment_spec, 5) for event in session.advance(segment)]
    assert spans(events) == [(0.0, 1.0), (1.0, 2.0)]
    assert [question[:45] for question in asked] == [
        "What happened between 0.0 and 1.0 seconds of ",
        "What happened between 1.0 and 2.0 seconds of ",
    ]


def test_finish_tells_the_last_piece_once(model: Any, asked: list[str]) -> None:
    session = Session(model)
    for segment in make_segments(model.segment_spec, 5):
        session.advance(segment)
    assert spans(session.finish()) == [(2.0, 2.5)]
    assert session.finish() == []
    assert len(asked) == 3


def test_stream_that_goes_on_after_its_finish_tells_no_moment_twice(model: Any, asked: list[str]) -> None:
    session, segments = Session(model), make_segments(model.segment_spec, 8)
    events = [event for segment in segments[:5] for event in session.advance(segment)] + session.finish()
    events += [event for segment in segments[5:] for event in session.advance(segment)] + session.finish()
    assert spans(events) == [(0.0, 1.0), (1.0, 2.0), (2.0, 2.5), (2.5, 3.0), (3.0, 4.0)]


def test_finish_of_a_stream_without_frames_says_nothing(model: Any, asked: list[str]) -> None:
    assert Session(model).finish() == []
    assert asked == []


def test_session_for_answers_alone_asks_for_no_events(model: Any, asked: list[str]) -> None:
    session = Session(model, tells_events=False)
    for segment in make_segments(model.segment_spec, 5):
        assert session.advance(segment) == []
    assert session.finish() == []
    assert asked == []


def test_question_of_captions_is_the_configs(model: Any, asked: list[str]) -> None:
    config = dataclasses.replace(model.config, caption_question="events from {start} until {end}?")
    other = StateKV(model.family, config)
    with torch.inference_mode():
        state = other.init_state()
        for segment in make_segments(other.segment_spec, 4):
            state = other.advance(state, segment)
            list(other.respond(state, Caption()))
    assert asked == ["events from 0.0 until 1.0?", "events from 1.0 until 2.0?"]
