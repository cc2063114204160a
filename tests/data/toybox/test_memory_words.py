"""Every memory word is true and names its evidence: a second reading of the script from its sentences."""

from __future__ import annotations

import re

from hypothesis import given
from tests.data.toybox.scripts import RECIPES, Recipe, write_script

from longtake.data.toybox import Script
from longtake.data.toybox.world import MemoryWord, ToyEvent

ORDINAL = re.compile(r"the (\w+ \w+) (jumps|spins|blinks) for the (first|second|third|fourth) time")
NUMBER = {"first": 1, "second": 2, "third": 3, "fourth": 4}


def the_mark(event: ToyEvent, kind: str) -> MemoryWord:
    (mark,) = event.memory
    assert mark.kind == kind
    assert event.sentence[mark.start_char : mark.end_char] == mark.word
    assert mark.needs_memory == bool(mark.evidence)
    if mark.needs_memory:
        assert mark.reach_seconds == event.start_seconds - mark.evidence[-1][1] >= 2.0
    return mark


@given(RECIPES)
def test_ordinals_count_what_this_toy_did(recipe: Recipe) -> None:
    script = write_script(*recipe)
    done: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for event in script.events:
        said = ORDINAL.fullmatch(event.sentence)
        if said is None:
            assert "time" not in event.sentence
            continue
        earlier = done.setdefault((said[1], said[2]), [])
        mark = the_mark(event, "count")
        assert NUMBER[said[3]] == len(earlier) + 1
        assert mark.word == said[3]
        assert list(mark.evidence) == earlier
        earlier.append((event.start_seconds, event.end_seconds))


@given(RECIPES)
def test_toys_come_back_exactly_if_they_were_seen(recipe: Recipe) -> None:
    script = write_script(*recipe)
    seen = {toy.name for toy in script.cast if toy.start is not None}
    last_left: dict[str, tuple[float, float]] = {}
    for event in script.events:
        name = script.cast[event.toy].name
        if event.action == "leaves":
            assert name in seen
            last_left[name] = (event.start_seconds, event.end_seconds)
        if event.action == "enters":
            mark = the_mark(event, "first_back")
            assert mark.word == ("comes back" if name in seen else "enters")
            assert event.sentence.startswith("the " if name in seen else ("a ", "an "))
            assert mark.evidence == ((last_left[name],) if name in seen else ())
            seen.add(name)


def homes(script: Script) -> list[tuple[ToyEvent, bool]]:
    """Each carry and slide, with whether it ends where the toy first stood since it last came on stage."""
    home = {index: toy.start for index, toy in enumerate(script.cast)}
    found = []
    for event in script.events:
        if event.action == "enters":
            home[event.toy] = event.goal
        if event.action in ("is carried", "slides"):
            found.append((event, event.goal == home[event.toy]))
    return found


@given(RECIPES)
def test_back_is_where_the_toy_started(recipe: Recipe) -> None:
    script = write_script(*recipe)
    for event, returns in homes(script):
        mark = the_mark(event, "place")
        assert returns == mark.needs_memory == (mark.word == "back to where it started")
        if mark.word == "to the left":
            assert event.goal[0] < event.origin[0] - 0.2
        if mark.word == "to the right":
            assert event.goal[0] > event.origin[0] + 0.2


@given(RECIPES)
def test_a_new_place_is_new(recipe: Recipe) -> None:
    script = write_script(*recipe)
    stood: dict[int, set[tuple[float, float]]] = {
        i: {t.start} for i, t in enumerate(script.cast) if t.start is not None
    }
    for event in script.events:
        if event.action == "enters":
            stood[event.toy] = set()
        if any(mark.word == "to a new place" for mark in event.memory):
            x, y = event.goal
            assert all(abs(x - u) + abs(y - v) > 0.1 for u, v in stood[event.toy])
        if event.action in ("enters", "is carried", "slides", "comes out"):
            stood[event.toy].add(event.goal)
        if event.action == "swaps" and event.partner is not None:
            stood[event.toy].add(event.goal)
            stood[event.partner].add(event.origin)


@given(RECIPES)
def test_only_words_about_the_past_are_marked(recipe: Recipe) -> None:
    script = write_script(*recipe)
    for event in script.events:
        marked = event.action in ("jumps", "spins", "blinks", "enters", "is carried", "slides")
        assert len(event.memory) == marked
