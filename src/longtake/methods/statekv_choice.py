"""One of several options, by what a model says when it is shown them."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import replace

from longtake.errors import ConfigError
from longtake.methods.statekv_answer import Conversation
from longtake.types import Answer

UNCLEAR = "no-choice"
"""Flag of an answer that names none of the options, or several."""


def choose_by_saying(conversation: Conversation, question: str, options: Sequence[str]) -> Answer:
    """Show the options with letters, let the model speak, and read its choice from its words.

    The answer's text is the chosen option, or the model's own words, flagged, where they name none.

    Raises:
        ConfigError: Fewer than two options, or more than there are letters.
    """
    if not 2 <= len(options) <= len(string.ascii_uppercase):
        raise ConfigError(f"got {len(options)} options, expected 2 to {len(string.ascii_uppercase)} to choose from")
    answer = conversation.answer(lettered(question, options))
    choice = choice_in(answer.text, options)
    if choice is None:
        return replace(answer, flags=(*answer.flags, UNCLEAR))
    return replace(answer, text=options[choice], choice=choice)


def lettered(question: str, options: Sequence[str]) -> str:
    """The question with its options, as multiple-choice benchmarks put it."""
    lines = [f"{letter}. {option}" for letter, option in zip(string.ascii_uppercase, options, strict=False)]
    return "\n".join([question, *lines, "Answer with the letter of the right option."])


def choice_in(text: str, options: Sequence[str]) -> int | None:
    """The option that an answer names: by its letter at the beginning, by its words, or by the only letter in it."""
    letters = string.ascii_uppercase[: len(options)]
    words = text.strip().strip("\"'*").strip()
    first = re.match(rf"\(?([{letters}{letters.lower()}])(?:[).:,]|$)", words)
    if first:
        return letters.index(first[1].upper())
    named = [index for index, option in enumerate(options) if _names(words, option)]
    # an option within another one ("red" in "dark red") is not meant where the longer one is named
    named = [one for one in named if not any(one != other and _names(options[other], options[one]) for other in named)]
    if len(named) == 1:
        return named[0]
    if named:
        return None
    alone = set(re.findall(rf"\b([{letters}])\b(?!')", words))
    # "A red car" begins with a word, not with a letter
    if len(alone) != 1 or re.search(r"\b[AI] [a-z]", words):
        return None
    return letters.index(alone.pop())


def _names(text: str, option: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(option.strip())}(?!\w)", text, re.IGNORECASE) is not None
