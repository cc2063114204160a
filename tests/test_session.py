"""A session: its clock, its decoding points, what it refuses, and that it can be copied, saved and gone on with."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.contract.colours import Colours, ColoursState
from tests.contract.models import cut

from longtake.errors import CapacityError, ConfigError, StateError, UnsupportedRequest
from longtake.language.tracker import EventTracker
from longtake.session import Session, Step, caption
from longtake.types import Caption, Event, Request, Segment

FPS = 4.0
SHOWN = "rrrrrggggrrbbbbb"
"""Colour of each frame at 4 fps: red to 1.25 s, green to 2.25 s, red to 2.75 s, then blue."""
EVENTS = [(0.0, 1.25, "red"), (1.25, 2.25, "green"), (2.25, 2.75, "red for time 2")]


def frames(shown: str, size: int = 16) -> torch.Tensor:
    pixels = torch.zeros(len(shown), 3, size, size, dtype=torch.uint8)
    for index, letter in enumerate(shown):
        pixels[index, "rgb".index(letter)] = 200
    return pixels


def segments(shown: str = SHOWN, length: int = 4) -> list[Segment]:
    model, pixels = Colours(), frames(shown)
    starts = range(0, len(shown), length)
    return [
        cut(pixels, model.segment_spec, start, min(start + length, len(shown)), i) for i, start in enumerate(starts)
    ]


def told(events: list[Event]) -> list[tuple[float, float, str]]:
    return [(event.start_seconds, event.end_seconds, event.text) for event in events]


def run(session: Session[Any], parts: list[Segment]) -> list[Event]:
    return [event for part in parts for event in session.advance(part)]


class Stream:
    """Segments that know how late they are, as from a camera."""

    lag_seconds = 1.5
    dropped_frames = 3
    total_seconds = None

    def __init__(self, parts: list[Segment], *, is_live: bool) -> None:
        self.is_live = is_live
        self._parts = iter(parts)

    def __iter__(self) -> Iterator[Segment]:
        return self._parts


def test_session_gives_each_event_in_the_segment_in_which_it_ended() -> None:
    session = Session(Colours())
    assert [told(session.advance(segment)) for segment in segments()] == [[], EVENTS[:1], EVENTS[1:], []]
    assert session.clock.num_events == 3


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_session_gives_the_same_events_however_the_stream_is_cut(length: int) -> None:
    assert told(run(Session(Colours()), segments(length=length))) == EVENTS


def test_session_refuses_a_segment_that_goes_back_and_stays_where_it_was() -> None:
    session, parts = Session(Colours()), segments()
    run(session, parts[:3])
    with pytest.raises(StateError, match=r"segment 1 starts at 1 s but the stream is already at 3 s"):
        session.advance(parts[1])
    assert session.clock.seen_seconds == 3.0
    assert session.advance(parts[3]) == []


def test_session_goes_over_a_gap() -> None:
    session, parts = Session(Colours()), segments()
    assert told(run(session, [parts[0], parts[2]])) == [
        (0.0, 2.0, "red"),
        (2.0, 2.25, "green"),
        (2.25, 2.75, "red for time 2"),
    ]


def test_session_stays_where_it_was_when_the_model_fails() -> None:
    session, parts = Session(Colours()), segments()
    run(session, parts[:1])
    before = session.clock
    with pytest.raises(StateError, match="expected"):
        session.advance(dataclasses.replace(parts[1], pixels=parts[1].pixels[:, :, 1:]))
    assert session.clock == before
    assert told(run(session, parts[1:])) == EVENTS


def test_session_takes_in_under_inference_mode() -> None:
    session = Session(Colours())
    run(session, segments()[:1])
    assert session.state.echo.is_inference()


def test_session_warns_of_a_model_in_training_mode(caplog: pytest.LogCaptureFixture) -> None:
    model = Colours()
    model.training = True  # type: ignore[attr-defined]
    with caplog.at_level(logging.WARNING):
        Session(model)
    assert "training mode" in caplog.text


class Forgetful(Colours):
    """Promises less than it keeps."""

    def max_state_bytes(self) -> int:
        return 10


def test_session_refuses_a_state_beyond_the_promised_bytes() -> None:
    with pytest.raises(CapacityError, match="promises 10"):
        Session(Forgetful()).advance(segments()[0])


class Silent(Colours):
    """Says no events."""

    supports: frozenset[type[Request]] = Colours.supports - {Caption}


def test_session_of_a_model_without_events_advances_and_answers() -> None:
    session = Session(Silent())
    assert run(session, segments()) == []
    assert session.ask("how often was it red?").text == "2"


def test_caption_refuses_a_model_without_events_before_it_opens_anything() -> None:
    with pytest.raises(UnsupportedRequest, match="says no events"):
        caption("nowhere.mp4", Silent())


class Mute(Colours):
    """Says nothing but events."""

    supports: frozenset[type[Request]] = frozenset({Caption})


@pytest.mark.parametrize(
    ("kind", "question"),
    [
        ("Ask", lambda session: session.ask("why?")),
        ("Choose", lambda session: session.ask("which?", ["a", "b"])),
        ("Classify", lambda session: session.classify()),
        ("Embed", lambda session: session.embed()),
    ],
)
def test_session_says_which_requests_the_model_serves(kind: str, question: Any) -> None:
    session = Session(Mute())
    run(session, segments())
    with pytest.raises(UnsupportedRequest, match=f"Mute does not serve {kind}, it serves Caption; load another model"):
        question(session)


def test_session_answers_every_kind_of_question_without_disturbing_the_stream() -> None:
    session, parts = Session(Colours()), segments()
    events = run(session, parts[:3])
    state = session.state
    assert session.ask("how often was it red?").text == "2"
    assert session.ask("which?", ("green", "red")).choice == 1
    assert session.choose("which?", ["green", "red"]).text == "red"
    assert [label.name for label in session.classify(top=2)] == ["red", "green"]
    assert session.embed().end_seconds == 3.0
    assert session.state is state
    assert told(events + run(session, parts[3:])) == EVENTS


def test_fork_goes_its_own_way() -> None:
    session, parts = Session(Colours()), segments()
    events = run(session, parts[:2])
    fork = session.fork()
    assert told(run(fork, segments("rrrrrggggbbb")[2:])) == [(1.25, 2.25, "green")]
    assert session.clock.seen_seconds == 2.0
    assert told(events + run(session, parts[2:])) == EVENTS


def test_progress_tells_seen_lag_drops_and_bytes() -> None:
    model = Colours()
    steps = list(Session(model).follow(Stream(segments(), is_live=True)))
    assert [step.progress.seen_seconds for step in steps] == [1.0, 2.0, 3.0, 4.0, 4.0]
    last = steps[-1].progress
    assert (last.lag_seconds, last.dropped_frames, last.state_bytes) == (1.5, 3, model.max_state_bytes())
    assert last.realtime_factor > 0


def test_follow_ends_with_a_step_without_segment_that_gives_what_was_held() -> None:
    tracker = EventTracker(hold_seconds=10.0)
    steps: list[Step] = list(Session(Colours(), tracker=tracker).follow(segments()))
    assert [len(step.events) for step in steps] == [0, 0, 0, 0, 3]
    assert steps[-1].segment is None


def test_follow_goes_on_in_time_when_a_camera_is_opened_again() -> None:
    session = Session(Colours())
    list(session.follow(Stream(segments("rrrr"), is_live=True)))
    events = [event for step in session.follow(Stream(segments("rrgg"), is_live=True)) for event in step.events]
    assert told(events) == [(0.0, 1.5, "red")]
    assert session.clock.seen_seconds == 2.0


def test_session_takes_another_rate_only_if_the_model_allows_it() -> None:
    assert Session(Colours(), fps=2.0).spec.fps == 2.0
    with pytest.raises(ConfigError, match="sampling rate is 30 fps, Colours runs at 1 to 8 fps"):
        Session(Colours(), fps=30.0)


def test_session_keeps_no_password_of_its_source() -> None:
    assert Session(Colours(), source="rtsp://anna:secret@cam/1").source == "rtsp://cam/1"


def test_session_passes_on_that_the_input_looks_unfamiliar() -> None:
    session = Session(Colours())
    run(session, segments("rrrr"))
    assert session.unfamiliar() is None
    grey = torch.full((8, 3, 16, 16), 90, dtype=torch.uint8)
    grey[6:, 0] = 250
    run(session, [cut(grey, session.spec, 4 * part, 4 * part + 4, part + 1) for part in (1,)])
    assert session.unfamiliar() is not None
    assert Session(Mute()).unfamiliar() is None


def test_caption_gives_no_events_twice_and_none_lost_after_save_and_resume(tmp_path: Path) -> None:
    model, parts = Colours(), segments()
    for border in range(5):
        session = Session(model, source="film.mp4")
        first = run(session, parts[:border])
        session.save(tmp_path / "state", notes={"journal": 7})
        resumed = Session.resume(Colours(), tmp_path / "state")
        assert (resumed.clock, resumed.source, resumed.notes) == (session.clock, "film.mp4", {"journal": 7})
        assert told(first + run(resumed, parts[border:])) == EVENTS


def test_resumed_session_keeps_the_trackers_rules_and_memory(tmp_path: Path) -> None:
    model, parts = Colours(), segments()
    session = Session(model, tracker=EventTracker(hold_seconds=10.0), fps=2.0)
    run(session, parts[:3])
    session.save(tmp_path / "state")
    resumed = Session.resume(model, tmp_path / "state")
    assert resumed.tracker == session.tracker
    assert resumed.spec == session.spec
    assert told(resumed.finish()) == EVENTS


def test_resume_refuses_another_model_and_what_is_no_session(tmp_path: Path) -> None:
    session = Session(Colours())
    session.save(tmp_path / "state")
    with pytest.raises(StateError, match="saved by"):
        Session.resume(Colours(decay=0.5), tmp_path / "state")
    with pytest.raises(StateError, match="missing"):
        Session.resume(Colours(), tmp_path / "missing")
    (tmp_path / "text").write_text("no state at all")
    with pytest.raises(StateError, match="text"):
        Session.resume(Colours(), tmp_path / "text")


@pytest.mark.parametrize("extra", [{}, {"session": {"source": "a"}}, {"session": 3}])
def test_resume_refuses_a_state_of_another_version(tmp_path: Path, extra: dict[str, Any]) -> None:
    from longtake.state.tree import save_state

    model = Colours()
    save_state(tmp_path / "state", model.init_state(), fingerprint=model.fingerprint, extra=extra)
    with pytest.raises(StateError, match="session"):
        Session.resume(model, tmp_path / "state")


def test_check_source_knows_the_source_by_the_frames_seen_last() -> None:
    session, parts = Session(Colours(), source="a.mp4"), segments()
    run(session, parts[:2])
    session.check_source(parts[1])
    with pytest.raises(StateError, match=r"saved at 2 s of a.mp4, but b.mp4 has other frames there"):
        session.check_source(segments("rrrrrggg".replace("r", "b"))[1], name="b.mp4")
    with pytest.raises(StateError, match="has no frames there"):
        session.check_source(None)


def test_digest_tells_apart_two_pasts_with_the_same_last_segment() -> None:
    one, other = Session(Colours()), Session(Colours())
    run(one, segments("rrrrgggg"))
    run(other, segments("bbbbgggg"))
    assert one.clock.digest != other.clock.digest


def test_state_of_a_session_is_a_value() -> None:
    session, parts = Session(Colours()), segments()
    run(session, parts[:1])
    kept: ColoursState = session.state
    counts = kept.counts.clone()
    run(session, parts[1:])
    assert torch.equal(kept.counts, counts)
