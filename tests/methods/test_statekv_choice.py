"""The option that a model names in its own words."""

from __future__ import annotations

import pytest

from longtake.errors import ConfigError
from longtake.methods.statekv_answer import Conversation
from longtake.methods.statekv_choice import choice_in, choose_by_saying, lettered
from longtake.types import Answer

COLOURS = ("red", "dark red", "a red car", "blue")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", 1),
        ("b.", 1),
        ("(C)", 2),
        ("D. blue", 3),
        ("A: red", 0),
        ("blue", 3),
        ("It was blue.", 3),
        ("The answer is D", 3),
        ("dark red", 1),
        ("A red car", 2),
        ("It is a RED CAR, I think", 2),
        ("", None),
        ("red or blue", None),
        ("A or B", None),
        ("green", None),
        ("A dog barks", None),
        ("bluebird", None),
    ],
)
def test_choice_is_read_from_words(text: str, expected: int | None) -> None:
    assert choice_in(text, COLOURS) == expected


def test_options_are_shown_with_letters() -> None:
    assert lettered("Which?", ["red", "blue"]) == "Which?\nA. red\nB. blue\nAnswer with the letter of the right option."


class Scripted(Conversation):
    """Says what it was told to."""

    def __init__(self, text: str, flags: tuple[str, ...] = ()) -> None:
        self.said = Answer(text=text, at_seconds=3.0, flags=flags)

    def answer(self, question: str) -> Answer:
        return self.said


def test_answer_is_the_option_that_was_named() -> None:
    answer = choose_by_saying(Scripted("B", ("length",)), "Which?", ["red", "blue"])
    assert answer == Answer(text="blue", choice=1, at_seconds=3.0, flags=("length",))


def test_words_that_name_no_option_are_flagged() -> None:
    answer = choose_by_saying(Scripted("green"), "Which?", ["red", "blue"])
    assert answer == Answer(text="green", at_seconds=3.0, flags=("no-choice",))


@pytest.mark.parametrize("count", [0, 1, 27])
def test_too_few_or_too_many_options_are_refused(count: int) -> None:
    with pytest.raises(ConfigError, match=f"got {count} options"):
        choose_by_saying(Scripted("A"), "Which?", [str(number) for number in range(count)])
