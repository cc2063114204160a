"""The rules of the world hold in every script: clock, cast, stage, shares, balance and reach of memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import hypot

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.toybox.scripts import RECIPES, Recipe, many_scripts, write_script

from longtake.data.toybox import ACTIONS, COLOURS, COUNTED, KINDS, Script, ToyEvent, make_script, vocabulary
from longtake.errors import ConfigError


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    return many_scripts()


def events_of(scripts: list[Script]) -> list[ToyEvent]:
    return [event for script in scripts for event in script.events]


def overlapping(script: Script) -> set[int]:
    spans = [(event.start_seconds, event.end_seconds) for event in script.events]
    pairs = [
        (i, j) for i in range(len(spans)) for j in range(i) if spans[j][1] > spans[i][0] and spans[i][1] > spans[j][0]
    ]
    return {index for pair in pairs for index in pair}


@given(st.integers(0, 2**48), st.none() | st.integers(10, 60))
@settings(max_examples=10)
def test_script_is_the_same_for_the_same_seed(seed: int, seconds: int | None) -> None:
    assert make_script(seed, seconds=seconds) == make_script(seed, seconds=seconds)


def test_scripts_differ_by_seed_and_split() -> None:
    scripts = [make_script(seed, split=split) for seed in range(5) for split in ("train", "val", "test", "routines")]
    assert len({script.events for script in scripts}) == len(scripts)


@given(RECIPES)
def test_events_keep_to_the_clock(recipe: Recipe) -> None:
    script = write_script(*recipe)
    starts = [event.start_seconds for event in script.events]
    assert starts == sorted(starts)
    for event in script.events:
        assert (event.start_seconds / 0.25).is_integer()
        assert (event.end_seconds / 0.25).is_integer()
        assert 2.0 <= event.end_seconds - event.start_seconds <= 6.0
        assert event.start_seconds >= 0.0
        assert event.end_seconds <= script.seconds - 0.5
        if event.action in ("enters", "leaves", "slides", "is carried", "hides", "comes out", "bumps", "swaps"):
            assert event.end_seconds - event.start_seconds <= 4.0


def test_length_is_as_asked_or_40_to_120_seconds(scripts: list[Script]) -> None:
    assert make_script(0, seconds=77.3).seconds == 77.25
    lengths = [script.seconds for script in scripts]
    assert 40 <= min(lengths) < 50
    assert 110 < max(lengths) <= 120


@given(RECIPES)
def test_no_toy_is_in_two_events_within_a_second(recipe: Recipe) -> None:
    script = write_script(*recipe)
    last_end: dict[int, float] = {}
    for event in script.events:
        for toy in {event.toy, event.partner} - {None}:
            assert event.start_seconds >= last_end.get(toy, -1.0) + 1.0
            last_end[toy] = event.end_seconds


@given(RECIPES)
def test_at_most_a_fifth_of_the_events_overlap(recipe: Recipe) -> None:
    script = write_script(*recipe)
    assert len(overlapping(script)) <= 0.2 * len(script.events)


@given(RECIPES)
def test_cast_has_one_toy_of_a_kind_in_every_act(recipe: Recipe) -> None:
    script = write_script(*recipe)
    names = [toy.name for toy in script.cast]
    assert len(set(names)) == len(names)
    for act in range(len(script.acts)):
        kinds = [toy.kind for toy in script.cast if toy.idle or act in toy.acts]
        assert len(set(kinds)) == len(kinds)
    assert 1 <= sum(toy.idle for toy in script.cast) <= 2
    assert {toy.kind for toy in script.cast} <= set(KINDS)
    assert {toy.colour for toy in script.cast} <= set(COLOURS)
    idle = {index for index, toy in enumerate(script.cast) if toy.idle}
    assert not idle & {toy for event in script.events for toy in (event.toy, event.partner)}


def resting_places(script: Script) -> Iterator[tuple[float, dict[int, tuple[float, float]]]]:
    """After each event that overlaps no other: the time and where every toy on the stage stands, by replay."""
    places = {toy: member.start for toy, member in enumerate(script.cast) if member.start is not None}
    together = overlapping(script)
    for index, event in enumerate(script.events):
        if event.action in ("leaves", "hides"):
            del places[event.toy]
        elif event.action == "swaps":
            places[event.toy], places[event.partner] = places[event.partner], places[event.toy]
        elif event.action != "bumps":
            assert event.origin == places.get(event.toy, event.origin)
            places[event.toy] = event.goal
        if index not in together:
            yield event.end_seconds, dict(places)


@given(RECIPES)
def test_toys_at_rest_stand_apart_and_five_at_most(recipe: Recipe) -> None:
    script = write_script(*recipe)
    for _, places in resting_places(script):
        assert len(places) <= 5
        points = list(places.values())
        for i, (x, y) in enumerate(points):
            assert 0.1 < x < 0.9
            assert 0.1 < y < 0.9
            assert all(hypot(x - u, y - v) > 0.21 for u, v in points[:i])


@given(RECIPES)
def test_sentences_use_the_vocabulary_only(recipe: Recipe) -> None:
    script = write_script(*recipe)
    words = {word for event in script.events for word in event.sentence.split()}
    assert words <= set(vocabulary())


def test_vocabulary_is_small_and_used_up(scripts: list[Script]) -> None:
    words = {word for event in events_of(scripts) for word in event.sentence.split()}
    assert tuple(sorted(words)) == vocabulary()
    assert len(vocabulary()) < 90


def test_every_action_happens(scripts: list[Script]) -> None:
    happened = {event.action for event in events_of(scripts)}
    assert happened == set(ACTIONS) - {"idle", "is bumped"}
    assert len(happened) >= 12


def test_a_third_of_the_sentences_need_memory(scripts: list[Script]) -> None:
    needing = [any(mark.needs_memory for mark in event.memory) for event in events_of(scripts)]
    assert 0.36 <= np.mean(needing) <= 0.43


@pytest.mark.parametrize(("seconds", "count"), [(None, 100), (60, 60), (300, 12)])
def test_no_answer_of_a_memory_kind_is_more_frequent_than_60_percent(seconds: int | None, count: int) -> None:
    events = events_of(many_scripts(count, seconds=seconds))
    for kind in ("first_back", "count", "place"):
        words = Counter(mark.word for event in events for mark in event.memory if mark.kind == kind)
        assert max(words.values()) <= 0.6 * words.total(), words


def test_ordinals_and_shares_are_as_designed(scripts: list[Script]) -> None:
    events = events_of(scripts)
    counted = [event for event in events if event.action in COUNTED]
    assert 0.37 <= len(counted) / len(events) <= 0.46
    ordinals = Counter(event.memory[0].word for event in counted)
    shares = [ordinals[word] / len(counted) for word in ("first", "second", "third", "fourth")]
    np.testing.assert_allclose(shares, (0.38, 0.28, 0.20, 0.13), atol=0.05)
    entering = np.mean([event.action == "enters" for event in events])
    assert 0.18 <= entering <= 0.26


def test_needed_memory_reaches_2_to_40_seconds_back(scripts: list[Script]) -> None:
    reach = np.array([mark.reach_seconds for event in events_of(scripts) for mark in event.memory if mark.needs_memory])
    assert reach.min() >= 2.0
    assert np.mean(reach > 40.0) < 0.05
    shares = np.histogram(reach, (2, 6, 10, 20, 40))[0] / len(reach)
    assert shares.min() > 0.1


def test_gaps_are_short_as_a_rule_and_20_seconds_at_most(scripts: list[Script]) -> None:
    gaps = []
    for script in scripts:
        end = 0.0
        for event in script.events:
            gaps.append(event.start_seconds - end)
            end = max(end, event.end_seconds)
    gaps = np.array(gaps)
    assert gaps.max() <= 20.5
    assert 1.0 <= gaps[gaps >= 0].mean() <= 2.5
    assert np.mean(gaps == 0) > 0.05


def test_three_or_more_toys_act_as_a_rule(scripts: list[Script]) -> None:
    acting = [sum(not toy.idle for toy in script.cast) for script in scripts]
    assert np.mean([number >= 3 for number in acting]) > 0.95
    assert max(acting) <= 6


def test_hour_long_script_keeps_the_rules() -> None:
    script = make_script(3, seconds=3600)
    assert script.seconds == 3600
    assert script.acts[0][0] == 0.0
    assert script.acts[-1][1] == 3600
    assert all(one[1] == other[0] for one, other in zip(script.acts, script.acts[1:], strict=False))
    assert all(60 <= end - start <= 180 for start, end in script.acts)
    assert 4.0 <= script.seconds / len(script.events) <= 6.0
    needing = [any(mark.needs_memory for mark in event.memory) for event in script.events]
    assert np.mean(needing) > 1 / 3
    for event in script.events:
        act = next(i for i, (start, end) in enumerate(script.acts) if start <= event.start_seconds < end)
        assert act in script.cast[event.toy].acts


@pytest.mark.parametrize("seconds", [3, 0, -5, float("nan"), float("inf")])
def test_script_of_impossible_length_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match="at least 10 s"):
        make_script(0, seconds=seconds)
