"""Exact sentences and memory words among matched events."""

from __future__ import annotations

import pytest

from longtake.eval.annotations import MemoryMark, TimedSentence
from longtake.eval.dense import make_case
from longtake.eval.memory import Wording, answer_in, same_sentence, wording
from longtake.eval.protocols import PROTOCOLS

ORDINALS = ("first", "second", "third")


def event(number: int, text: str, *marks: MemoryMark) -> TimedSentence:
    """The event with that number: ten seconds each, five apart."""
    return TimedSentence(start_seconds=15.0 * number, end_seconds=15.0 * number + 10, text=text, memory=marks)


def jump(ordinal: str) -> str:
    return f"the red car jumps for the {ordinal} time"


def counted(number: int, ordinal: str) -> TimedSentence:
    return event(number, jump(ordinal), MemoryMark(kind="count", word=ordinal, needed=ordinal != "first"))


TOLD = tuple(counted(number, ordinal) for number, ordinal in enumerate((*ORDINALS, "first")))


def judge(*said: TimedSentence) -> Wording:
    return wording([make_case("v", said, [TOLD], PROTOCOLS["longtake"])])


def test_the_right_words_are_all_right() -> None:
    found = judge(*TOLD)
    words = found.words["count"]
    assert (found.matches, found.exact, found.exact_rate) == (4, 4, 1.0)
    assert (words.right, words.items, words.accuracy) == (4, 4, 1.0)
    assert (words.needed_right, words.needed_items, words.needed_accuracy) == (2, 2, 1.0)


def test_a_wrong_name_is_not_a_wrong_count() -> None:
    found = judge(event(1, "the blue fish jumps for the second time"))
    assert found.exact == 0
    assert (found.words["count"].right, found.words["count"].items) == (1, 1)
    assert found.words["count"].to_dict()["right"] is not True  # a count in JSON too


@pytest.mark.parametrize("said", ["the red car spins", jump("third"), jump("secondary"), ""])
def test_silence_and_wrong_answers_count_as_wrong(said: str) -> None:
    words = judge(event(1, said)).words["count"]
    assert (words.right, words.items) == (0, 1)


def test_unmatched_events_are_no_items() -> None:
    found = judge(event(9, jump("first")))
    assert (found.matches, found.exact_rate) == (0, 0.0)
    assert (found.words["count"].items, found.words["count"].references) == (0, 4)
    assert found.words["count"].accuracy == 0.0


def test_each_reference_is_matched_by_one_prediction_only() -> None:
    assert judge(event(1, "the red car spins"), event(1, jump("second"))).matches == 1


def test_the_majority_answer_is_told_with_its_share() -> None:
    words = judge(*TOLD).words["count"]
    assert (words.majority_answer, words.majority_share) == ("first", 0.5)


def test_references_without_marks_have_no_memory_words() -> None:
    told = (event(0, "a car"),)
    assert wording([make_case("v", told, [told], PROTOCOLS["longtake"])]).words == {}


def test_kinds_are_scored_apart() -> None:
    marks = MemoryMark(kind="first_back", word="comes back"), MemoryMark(kind="place", word="to the left")
    told = (
        event(0, "the car comes back and slides to the left", *marks),
        event(1, "a car enters", MemoryMark(kind="first_back", word="enters")),
    )
    said = (event(0, "the car comes back and slides to the right"), event(1, "the car comes back"))
    words = wording([make_case("v", said, [told], PROTOCOLS["longtake"])]).words
    assert {kind: (word.right, word.items) for kind, word in words.items()} == {"first_back": (1, 2), "place": (0, 1)}


def test_sentences_are_compared_up_to_white_space() -> None:
    assert same_sentence(" a  red\tcar\n", "a red car")
    assert not same_sentence("A red car", "a red car")
    assert not same_sentence("a red car.", "a red car")


def test_the_longest_answer_in_a_sentence_is_taken() -> None:
    places = ("back", "back to where it started", "to a new place")
    assert answer_in("the car goes back to where it started", places) == "back to where it started"
    assert answer_in("the car goes backwards", places) is None
    assert answer_in("the car goes to a new place.", places) == "to a new place"
