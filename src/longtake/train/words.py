"""Every word of Toybox's questions and answers, and those that people ask with: the model's vocabulary."""

from __future__ import annotations

import re

from longtake.data.toybox import vocabulary
from longtake.data.toybox.questions import NUMBERS, YES_NO
from longtake.data.toybox.recall import PAST, PLAIN
from longtake.data.toybox.story import REGIONS

ASKED = (
    "what did the do before after it first last was were where when how many times come back which toy who happened "
    "happens between and in on at is are a an of to seconds second now nothing if say then there box stage hand "
    "anything video see seen describe doing right left top middle bottom center yes or no this that with from any all "
    "most recently"
)


def question_words() -> list[str]:
    """Sorted, without repetition, small letters only."""
    texts = [ASKED, *PAST.values(), *PLAIN.values(), *NUMBERS, *YES_NO, *REGIONS, *vocabulary()]
    return sorted({word for text in texts for word in re.findall("[a-z]+", text)})
