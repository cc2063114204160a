"""Labels say at every time what the events say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.toybox.scripts import RECIPES, USUAL, Recipe, write_script

from longtake.data.toybox import ACTIONS, COLOURS, COUNTED, KINDS, Script, frame_labels, make_script
from longtake.data.toybox.labels import FrameLabels

FIELDS = tuple(FrameLabels.__slots__)


def at(script: Script, seconds: float) -> FrameLabels:
    return frame_labels(script, [seconds])


def kind_of(script: Script, toy: int) -> int:
    return KINDS.index(script.cast[toy].kind)


@given(RECIPES)
@settings(max_examples=15)
def test_action_and_elapsed_ticks_follow_the_events(recipe: Recipe) -> None:
    script = write_script(*recipe)
    times = np.arange(0.0, script.seconds, 0.125)
    labels = frame_labels(script, times)
    expected = np.zeros_like(labels.action)
    elapsed = np.zeros_like(labels.elapsed_ticks)
    for event in script.events:
        rows = (times >= event.start_seconds) & (times < event.end_seconds)
        kind = kind_of(script, event.toy)
        expected[rows, kind] = ACTIONS.index(event.action)
        elapsed[rows, kind] = (times[rows] - event.start_seconds) / 0.25
        if event.partner is not None:
            other = kind_of(script, event.partner)
            start = event.start_seconds
            if event.action == "bumps":
                start += (event.end_seconds - event.start_seconds) / 0.25 // 2 * 0.25
            rows &= times >= start
            expected[rows, other] = ACTIONS.index("swaps" if event.action == "swaps" else "is bumped")
            elapsed[rows, other] = (times[rows] - start) / 0.25
    np.testing.assert_array_equal(labels.action, expected)
    np.testing.assert_allclose(labels.elapsed_ticks, elapsed, atol=1e-4)


@given(USUAL)
@settings(max_examples=15)
def test_counts_say_how_often_a_toy_began_an_action(recipe: Recipe) -> None:
    script = write_script(*recipe)
    for event in script.events:
        if event.action not in COUNTED:
            continue
        kind, slot = kind_of(script, event.toy), COUNTED.index(event.action)
        ordinal = ("first", "second", "third", "fourth").index(event.memory[0].word) + 1
        assert at(script, event.start_seconds - 0.01).counts[0, kind, slot] == ordinal - 1
        assert at(script, event.start_seconds).counts[0, kind, slot] == ordinal
        assert at(script, script.seconds).counts[0, kind, slot] >= ordinal


@given(USUAL)
@settings(max_examples=15)
def test_presence_home_and_box_follow_the_events(recipe: Recipe) -> None:
    script = write_script(*recipe)
    seen = {toy.kind for toy in script.cast if toy.start is not None}
    for event in script.events:
        kind = kind_of(script, event.toy)
        before, after = at(script, event.start_seconds - 0.01), at(script, event.end_seconds)
        if event.action == "enters":
            assert not before.visible[0, kind]
            assert before.seen_before[0, kind] == (KINDS[kind] in seen)
            assert after.at_home[0, kind]
            seen.add(KINDS[kind])
        assert after.visible[0, kind] == (event.action not in ("leaves", "hides"))
        assert after.in_box[0, kind] == (event.action == "hides")
        assert after.seen_before[0, kind]
        if after.visible[0, kind] and event.action != "bumps":
            np.testing.assert_allclose((after.x[0, kind], after.y[0, kind]), event.goal, atol=1e-6)
            assert after.scale[0, kind] == pytest.approx(event.scales[1])
        if any(mark.kind == "place" for mark in event.memory):
            assert after.at_home[0, kind] == event.memory[0].needs_memory


def test_colour_is_minus_one_exactly_outside_the_cast() -> None:
    script = make_script(11, seconds=60)
    labels = frame_labels(script, [0.0, 30.0, 59.0])
    for kind, name in enumerate(KINDS):
        (colour,) = {toy.colour for toy in script.cast if toy.kind == name} or {None}
        assert set(labels.colour[:, kind]) == {-1 if colour is None else COLOURS.index(colour)}


def test_long_video_labels_the_toy_of_the_act() -> None:
    script = make_script(4, seconds=600)
    for act, (start, end) in enumerate(script.acts):
        labels = at(script, (start + end) / 2)
        cast = {toy.kind: toy.colour for toy in script.cast if toy.idle or act in toy.acts}
        told = {KINDS[k]: COLOURS[c] for k, c in enumerate(labels.colour[0]) if c >= 0}
        assert told == cast


def test_blinking_toy_stays_visible() -> None:
    script = next(s for s in map(write_script, range(20)) if any(e.action == "blinks" for e in s.events))
    event = next(event for event in script.events if event.action == "blinks")
    times = np.arange(event.start_seconds, event.end_seconds, 0.125)
    assert frame_labels(script, times).visible[:, kind_of(script, event.toy)].all()


@given(USUAL, st.lists(st.floats(0, 40), min_size=1, max_size=8))
@settings(max_examples=15)
def test_labels_do_not_depend_on_the_other_times_asked_for(recipe: Recipe, times: list[float]) -> None:
    script = write_script(*recipe)
    together = frame_labels(script, times)
    for row, seconds in enumerate(times):
        alone = at(script, seconds)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(together, name)[row], getattr(alone, name)[0])
