"""What an answer in words means: an option, a number, yes or no. Nothing is ever guessed at random."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from longtake.data.datasets.samples import Question
from longtake.methods.statekv_choice import choice_in

NEAREST = "nearest"
"""Flag of an answer that names no option: the one spelled most like it was taken."""
NO_ANSWER = "no-answer"
"""Flag of an answer that cannot be read at all; it counts as wrong."""
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def option_said(text: str, options: Sequence[str]) -> tuple[int | None, str]:
    """The option that an answer means, and a flag for how it was found, empty if the answer names it."""
    named = choice_in(text, options)
    if named is not None:
        return named, ""
    words = _plain(text)
    if not words:
        return None, NO_ANSWER
    apart = [edit_distance(words, _plain(option)) for option in options]
    return apart.index(min(apart)), NEAREST


def word_said(text: str, kind: str) -> str:
    """The number, as digits, or Yes or No that an answer begins with or first says; empty if there is none."""
    words = re.findall(r"[a-z]+|[0-9]+", text.lower())
    if kind == "yes-no":
        return next((word.capitalize() for word in words if word in ("yes", "no")), "")
    known = dict(zip(NUMBERS, map(str, range(len(NUMBERS))), strict=True))
    return next((str(int(known.get(word, word))) for word in words if word in known or word.isdigit()), "")


def official_right(rule: str, text: str, question: Question) -> bool:
    """Whether the data set's own script would call an answer right, oddities included.

    ``first-letter`` (Perception Test): the first A to D that stands alone. ``bracket`` (MLVU): the character before the
    first closing bracket. ``anywhere`` (OVO-Bench): the right letter anywhere in the text, all digits of it in a row,
    Yes or No anywhere or the bare letter.
    """
    if question.kind == "count":
        return "".join(re.findall(r"[0-9]", text)) == question.answer
    if question.kind == "yes-no":
        return question.answer in text or text.strip() == question.answer[0]
    letter = ascii_uppercase[question.gold or 0]
    if rule == "anywhere":
        return letter in text
    if rule == "bracket":
        return text.partition(")")[0][-1:] == letter
    found = re.search(r"\b([A-D])\b", text)
    return found is not None and found[1] == letter


def edit_distance(one: str, other: str) -> int:
    """Letters to put in, leave out or change until both are equal (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        before, row[0] = row[0], number
        for place, match in enumerate(other, start=1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != match))
    return row[-1]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
