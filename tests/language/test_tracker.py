"""The tracker: what was said twice, cut, turned round or out of order at segment borders."""

from __future__ import annotations

import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.language.tracker import EventTracker, TrackerState
from longtake.types import Event


def event(start: float, end: float, text: str = "the red car jumps", score: float = 1.0) -> Event:
    return Event(start_seconds=start, end_seconds=end, text=text, score=score)


def spans(events: list[Event]) -> list[tuple[float, float]]:
    return [(one.start_seconds, one.end_seconds) for one in events]


def run(tracker: EventTracker, *segments: tuple[float, list[Event]]) -> list[Event]:
    state, leaving = TrackerState(), []
    for now, said in segments:
        state, events = tracker.track(state, said, now_seconds=now)
        leaving += events
    return leaving + tracker.finish(state)[1]


def test_tracker_leaves_out_an_event_said_again_in_the_next_segment() -> None:
    said_twice = run(
        EventTracker(), (2.0, [event(0.5, 2.0)]), (4.0, [event(0.5, 2.25), event(2.5, 4.0, "a star spins")])
    )
    assert spans(said_twice) == [(0.5, 2.0), (2.5, 4.0)]


def test_tracker_keeps_a_repeat_that_does_not_overlap() -> None:
    assert len(run(EventTracker(), (2.0, [event(0.0, 1.9)]), (4.0, [event(2.0, 3.9)]))) == 2


def test_tracker_keeps_two_things_at_the_same_time() -> None:
    assert len(run(EventTracker(), (2.0, [event(0.0, 1.5), event(0.0, 1.5, "the blue ball spins")]))) == 2


def test_tracker_takes_case_blanks_and_full_stop_for_the_same_words() -> None:
    assert len(run(EventTracker(), (2.0, [event(0.0, 1.5), event(0.0, 1.5, " The red  car jumps. ")]))) == 1


def test_tracker_gives_the_better_score_and_the_whole_span_when_a_segment_says_an_event_twice() -> None:
    (one,) = run(EventTracker(), (4.0, [event(0.5, 3.0, score=0.2), event(1.0, 3.5, score=0.9)]))
    assert (one.start_seconds, one.end_seconds, one.score) == (0.5, 3.5, 0.9)


def test_tracker_joins_an_event_cut_at_the_border_when_it_may_hold() -> None:
    holding = EventTracker(hold_seconds=0.25)
    cut = ((2.0, [event(0.5, 2.0)]), (4.0, [event(2.0, 4.0)]), (6.0, [event(4.0, 4.5)]))
    assert spans(run(holding, *cut)) == [(0.5, 4.5)]


def test_tracker_takes_the_later_account_when_it_may_hold() -> None:
    holding = EventTracker(hold_seconds=0.25)
    assert spans(run(holding, (2.0, [event(0.5, 2.0)]), (4.0, [event(0.5, 2.25)]))) == [(0.5, 2.25)]


def test_tracker_lets_a_held_event_go_when_the_next_segment_is_silent() -> None:
    holding = EventTracker(hold_seconds=0.25)
    state, now = holding.track(TrackerState(), [event(0.5, 2.0)], now_seconds=2.0)
    assert now == []
    state, later = holding.track(state, [], now_seconds=4.0)
    assert spans(later) == [(0.5, 2.0)]
    assert holding.finish(state)[1] == []


def test_tracker_lets_every_event_go_at_once_when_it_may_not_hold() -> None:
    state, leaving = EventTracker().track(TrackerState(), [event(0.5, 2.0)], now_seconds=2.0)
    assert spans(leaving) == [(0.5, 2.0)]
    assert state.held == ()


def test_tracker_turns_an_event_that_ends_before_it_starts_into_a_short_one() -> None:
    assert spans(run(EventTracker(min_seconds=0.5), (4.0, [event(3.0, 2.0)]))) == [(1.5, 2.0)]


def test_tracker_ends_an_event_no_later_than_what_was_seen() -> None:
    assert spans(run(EventTracker(), (4.0, [event(3.0, 9.0)]))) == [(3.0, 4.0)]


def test_tracker_warns_and_leaves_out_an_event_whose_time_is_no_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert run(EventTracker(), (4.0, [event(math.nan, 2.0), event(0.0, 1.0)])) == [event(0.0, 1.0)]
    assert "not numbers" in caplog.text


def test_tracker_leaves_out_an_event_without_words() -> None:
    assert run(EventTracker(), (4.0, [event(0.0, 1.0, " \n")])) == []


def test_tracker_moves_starts_when_monotone() -> None:
    tracker = EventTracker(monotone=True)
    said = [event(0.0, 3.0, "one"), event(1.0, 2.0, "two"), event(0.5, 3.5, "three")]
    assert spans(run(tracker, (4.0, said))) == [(1.0, 2.0), (2.0, 3.0), (3.0, 3.5)]


def test_tracker_forgets_all_but_its_history() -> None:
    tracker = EventTracker(history=3)
    state = TrackerState()
    for second in range(50):
        state, _ = tracker.track(
            state, [event(float(second), second + 1.0, f"number {second}")], now_seconds=second + 1.0
        )
        assert len(state.recent) <= 3


def test_tracker_never_changes_the_state_it_was_handed() -> None:
    before = TrackerState(recent=(event(0.0, 1.0),))
    EventTracker().track(before, [event(1.0, 2.0)], now_seconds=2.0)
    assert before == TrackerState(recent=(event(0.0, 1.0),))


@pytest.mark.parametrize("wrong", [{"min_overlap": 0.0}, {"min_seconds": 0.0}, {"hold_seconds": -1.0}, {"history": 0}])
def test_tracker_refuses_rules_that_cannot_work(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        EventTracker(**wrong)  # type: ignore[arg-type]


times = st.floats(-5, 60)
said_events = st.lists(st.builds(event, times, times, st.sampled_from(["a", "b", "c"]), st.floats(0, 1)), max_size=6)


@given(st.lists(said_events, max_size=8), st.sampled_from([0.0, 0.25]), st.booleans())
def test_tracker_output_is_sound_whatever_is_said(said: list[list[Event]], hold: float, monotone: bool) -> None:
    tracker = EventTracker(hold_seconds=hold, monotone=monotone)
    state, leaving = TrackerState(), []
    for index, events in enumerate(said, 1):
        now = 2.0 * index
        state, left = tracker.track(state, events, now_seconds=now)
        assert all(0 <= one.start_seconds < one.end_seconds <= now for one in left)
        assert [one.end_seconds for one in left] == sorted(one.end_seconds for one in left)
        leaving += left
    leaving += tracker.finish(state)[1]
    for index, one in enumerate(leaving):
        for other in leaving[index + 1 : index + 1 + tracker.history]:
            common = min(one.end_seconds, other.end_seconds) - max(one.start_seconds, other.start_seconds)
            if monotone:
                assert common <= 1e-9
            elif one.text == other.text:
                shorter = min(one.end_seconds - one.start_seconds, other.end_seconds - other.start_seconds)
                assert common < tracker.min_overlap * shorter + 1e-9
