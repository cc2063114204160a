"""Every answer is right: it is found again from the bare events, by another route than the one it was made by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.toybox.scripts import RECIPES, USUAL, Recipe, many_scripts, write_script

from longtake.data.toybox import Script, ToyEvent
from longtake.data.toybox.questions import QUOTAS, Question, questions_of

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
VERBS = {"jump": "jumps", "spin": "spins", "blink": "blinks", "leave": "leaves", "come in": "enters", "slide": "slides"}


class Reading:
    """The script read event by event, with nothing but sentences, times and places."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.events = script.events
        self.names = [toy.name for toy in script.cast]
        self.by_sentence = {event.sentence: event for event in script.events}

    def place(self, name: str, seconds: float) -> tuple[float, float] | str:
        """Where the toy stands; ``off`` or ``box`` where it is not on stage. Events in progress do not count yet."""
        toy = self.names.index(name)
        place: tuple[float, float] | str = self.script.cast[toy].start or "off"
        for event in self.events:
            if event.end_seconds > seconds:
                continue
            if event.toy == toy and event.action == "leaves":
                place = "off"
            elif event.toy == toy and event.action == "hides":
                place = "box"
            elif event.toy == toy and event.action != "bumps":
                place = event.goal
            elif event.partner == toy and event.action == "swaps":
                place = event.origin
        return place

    def region(self, name: str, seconds: float) -> str:
        x, y = self.place(name, seconds)
        return f"{('top', 'middle', 'bottom')[min(int(y * 3), 2)]} {'left' if x < 0.5 else 'right'}"

    def box(self, seconds: float) -> list[str]:
        return [name for name in self.names if self.place(name, seconds) == "box"]

    def moment(self, when: str) -> float:
        if when in ("at the end", "end"):
            return self.script.seconds
        if when in ("at the start", "start"):
            return 0.0
        return self.by_sentence[when.removeprefix("when ")].start_seconds

    def of(self, verb: str, name: str | None = None) -> list[ToyEvent]:
        return [
            event
            for event in self.events
            if event.action == VERBS[verb] and (name is None or self.names[event.toy] == name)
        ]


DOING = {
    "it enters": ("enters from", "comes back from"),
    "it leaves": ("leaves to",),
    "it jumps": ("jumps for",),
    "it spins": ("spins for",),
    "it blinks": ("blinks for",),
    "it grows": ("grows",),
    "it shrinks": ("shrinks",),
    "it bumps into another toy": ("bumps into",),
    "it swaps places with another toy": ("swaps places",),
    "it hides in the box": ("hides in",),
    "it comes out of the box": ("comes out",),
    "a hand carries it": ("hand carries",),
    "it slides": ("slides",),
    "it shakes": ("shakes",),
    "it nods": ("nods",),
}


def doing(event: ToyEvent) -> str:
    (found,) = [answer for answer, words in DOING.items() if any(word in event.sentence for word in words)]
    return found


def beside(reading: Reading, word: str, sentence: str) -> str:
    order = sorted(reading.events, key=lambda event: event.start_seconds)
    index = order.index(reading.by_sentence[sentence])
    return order[index + (1 if word == "after" else -1)].sentence


def earliest(reading: Reading, word: str, verb: str) -> str:
    found = [e for e in reading.events if e.action == "hides"] if verb == "hide in the box" else reading.of(verb)
    pick = min if word == "first" else max
    return reading.names[pick(found, key=lambda event: event.start_seconds).toy]


def happens_to(reading: Reading, word: str, name: str) -> str:
    own = [event for event in reading.events if name in event.sentence]
    return doing((min if word == "first" else max)(own, key=lambda event: event.start_seconds))


def yes(truth: bool) -> str:
    return "yes" if truth else "no"


def side(reading: Reading, one: str, other: str, when: str) -> str:
    seconds = reading.moment(when)
    return "left" if reading.place(one, seconds)[0] < reading.place(other, seconds)[0] else "right"


def height(reading: Reading, one: str, other: str, when: str) -> str:
    seconds = reading.moment(when)
    return "above" if reading.place(one, seconds)[1] < reading.place(other, seconds)[1] else "below"


def just(reading: Reading, word: str, sentence: str) -> float:
    event = reading.by_sentence[sentence]
    return event.end_seconds if word == "after" else event.start_seconds - 0.01


NAME = r"(\w+ \w+)"
ORACLES: list[tuple[str, Callable[..., str]]] = [
    (r"what happens right (before|after) (.+)\?", beside),
    (
        r"yes or no: (.+) before (.+)\?",
        lambda r, a, b: yes(r.by_sentence[a].start_seconds < r.by_sentence[b].start_seconds),
    ),
    (rf"yes or no: the {NAME} is in the box (when .+|at the end)\?", lambda r, n, w: yes(n in r.box(r.moment(w)))),
    (r"what is in the box (when .+|at the end)\?", lambda r, w: " ".join(r.box(r.moment(w))) or "nothing"),
    (r"how many times does any toy (.+)\?", lambda r, v: WORDS[len(r.of(v))]),
    (
        r"how many times does a toy hide in the box\?",
        lambda r: WORDS[sum("hides" in event.sentence for event in r.events)],
    ),
    (rf"how many times does the {NAME} (.+)\?", lambda r, n, v: WORDS[len(r.of(v, n))]),
    (
        r"how many toys are on the stage at the end\?",
        lambda r: WORDS[sum(not isinstance(r.place(name, r.script.seconds), str) for name in r.names)],
    ),
    (r"which toy is the (first|last) to (.+)\?", earliest),
    (rf"what is the (first|last) thing that happens to the {NAME}\?", happens_to),
    (rf"where is the {NAME} right (before|after) (.+)\?", lambda r, n, w, s: r.region(n, just(r, w, s))),
    (rf"where is the {NAME} (when .+)\?", lambda r, n, w: r.region(n, r.moment(w))),
    (rf"where is the {NAME} at the (start|end)\?", lambda r, n, w: r.region(n, r.moment(w))),
    (rf"is the {NAME} above or below the {NAME} at the (start|end)\?", height),
    (rf"is the {NAME} to the left or to the right of the {NAME} at the (start|end)\?", side),
]


def answer_again(question: Question, reading: Reading) -> str:
    if question.question.startswith("which of these four"):
        pick = min if "first" in question.question else max
        return pick(question.options, key=lambda sentence: reading.by_sentence[sentence].start_seconds)
    pattern, oracle = next((p, o) for p, o in ORACLES if re.fullmatch(p, question.question))
    return oracle(reading, *re.fullmatch(pattern, question.question).groups())


@given(RECIPES, st.sampled_from(("train", "routines")))
def test_answers_match_a_second_reading_of_the_script(recipe: Recipe, split: str) -> None:
    script = write_script(*recipe) if split == "train" else write_script(recipe[0], split=split)
    reading = Reading(script)
    for question in questions_of(script):
        assert answer_again(question, reading) == question.answer, question


@given(USUAL)
@settings(max_examples=20)
def test_questions_are_many_well_formed_and_within_the_video(recipe: Recipe) -> None:
    script = write_script(*recipe)
    questions = questions_of(script)
    assert len(questions) >= 30
    assert {question.type for question in questions} == set(QUOTAS)
    assert len({(question.question, question.options) for question in questions}) == len(questions)
    for question in questions:
        start, end = question.span
        assert 0.0 <= start < end <= script.seconds
        assert len(set(question.options)) == len(question.options) != 1
        if question.options:
            assert question.options[question.answer_index] == question.answer
    assert 8 <= sum(bool(question.options) for question in questions) <= 34


@given(USUAL)
@settings(max_examples=20)
def test_span_holds_the_events_a_question_names(recipe: Recipe) -> None:
    script = write_script(*recipe)
    for question in questions_of(script):
        if question.type == "order":
            named = [e for e in script.events if e.sentence in question.question or e.sentence == question.answer]
            start, end = question.span
            assert all(start <= event.start_seconds and event.end_seconds <= end for event in named)


def test_questions_are_the_same_again_and_differ_between_videos() -> None:
    assert questions_of(write_script(1)) == questions_of(write_script(1))
    assert questions_of(write_script(1)) != questions_of(write_script(2))


def test_no_position_of_the_answer_is_preferred() -> None:
    places = Counter(
        question.answer_index
        for script in many_scripts(60)
        for question in questions_of(script)
        if len(question.options) == 4
    )
    shares = np.array([places[index] for index in range(4)]) / places.total()
    assert places.total() > 600
    assert np.abs(shares - 0.25).max() < 0.06


@pytest.mark.parametrize("seconds", [10, 20, 40])
def test_short_videos_have_30_questions_too(seconds: int) -> None:
    assert min(len(questions_of(write_script(seed, seconds=seconds))) for seed in range(8)) >= 30
