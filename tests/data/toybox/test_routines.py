"""Routines: the order of four moves, spread over the whole video, is all that tells the classes apart."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.data.toybox import make_script
from longtake.data.toybox.dataset import script_of
from longtake.data.toybox.routines import ROUTINE_MOVES, ROUTINES
from longtake.errors import ConfigError


def test_there_are_24_classes() -> None:
    assert len(set(ROUTINES)) == 24


@given(st.integers(0, 2**48), st.sampled_from(ROUTINES), st.none() | st.integers(40, 90))
@settings(max_examples=20)
def test_one_toy_does_the_moves_in_the_order_of_the_class(seed: int, label: str, seconds: int | None) -> None:
    script = make_script(seed, seconds=seconds, split="routines", label=label)
    moves = [event for event in script.events if event.action in ROUTINE_MOVES]
    assert " then ".join(event.action for event in moves) == label == script.label
    assert len({event.toy for event in moves}) == 1
    (hero,) = {event.toy for event in moves}
    others = [event for event in script.events if event.toy != hero]
    assert all(hero not in (event.toy, event.partner) for event in others)
    assert len(others) >= 1
    # spread: the moves fall into the four quarters, up to the time it takes for them to come round
    for quarter, event in enumerate(moves):
        assert quarter / 4 - 0.13 <= event.start_seconds / script.seconds <= (quarter + 1) / 4 + 0.13


def test_every_block_of_24_videos_has_each_class_once() -> None:
    labels = [script_of("routines", 3, index, 40.0).label for index in range(48)]
    assert Counter(labels[:24]) == Counter(labels[24:]) == Counter(ROUTINES)
    assert labels[:24] != labels[24:]


def test_label_is_drawn_where_none_is_given() -> None:
    labels = {make_script(seed, seconds=40, split="routines").label for seed in range(20)}
    assert len(labels) > 10
    assert labels <= set(ROUTINES)


@pytest.mark.parametrize(("split", "label"), [("train", ROUTINES[0]), ("routines", "jumps then jumps")])
def test_label_that_does_not_fit_is_refused(split: str, label: str) -> None:
    with pytest.raises(ConfigError, match="labels are those of split 'routines'"):
        make_script(0, split=split, label=label)
