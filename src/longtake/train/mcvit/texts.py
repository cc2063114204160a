"""The words of MC-ViT's text tower: what the classes are called, in how many ways, and what is asked."""

from __future__ import annotations

import re
from collections.abc import Callable

from longtake.data.toybox.routines import ROUTINES, routine_of
from longtake.train.words import question_words

SIGNS = (",", ".", ":", "?")
ASKED = "does toys end start thing another above below these"
"""Words of Toybox's multiple-choice questions that those of ``question_words`` lack."""
_PLAIN = {"jumps": "jump", "spins": "spin", "blinks": "blink", "shakes": "shake"}
_GOING_ON = {"jumps": "jumping", "spins": "spinning", "blinks": "blinking", "shakes": "shaking"}

WORDINGS: tuple[Callable[[tuple[str, ...]], str], ...] = (
    lambda moves: " then ".join(moves),
    lambda moves: "a toy " + ", then ".join(moves),
    lambda moves: "first it " + ", then it ".join(moves),
    lambda moves: ", ".join(moves),
    lambda moves: " ".join(_PLAIN[move] for move in moves),
    lambda moves: " and then ".join(_GOING_ON[move] for move in moves),
    lambda moves: "it {} first, {} second, {} third and {} last".format(*moves),
)
"""Ways to say an order of moves; the first gives the names of the classes."""


def class_texts(wording: int) -> tuple[str, ...]:
    """Every class in one of the ``WORDINGS``, in the order of ``ROUTINES``."""
    return tuple(WORDINGS[wording](routine_of(label)) for label in ROUTINES)


def text_words() -> tuple[str, ...]:
    """Vocabulary: the words of all classes and of Toybox's questions, and signs."""
    texts = [ASKED, *(text for wording in range(len(WORDINGS)) for text in class_texts(wording))]
    return (*SIGNS, *sorted({*question_words(), *(word for text in texts for word in re.findall("[a-z]+", text))}))
