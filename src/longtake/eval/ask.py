"""Whether questions are answered: accuracy by type, with its bootstrap interval, beside what needs no video.

An answer is right if it is the reference after both are put in small letters and stripped of white space and a final
full stop. Intervals are 95 %, from ``RESAMPLES`` bootstrap samples of whole videos, since questions of one video are
not independent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from longtake.eval.ask_data import AskedQuestion

RESAMPLES = 2000
LEVEL = 0.95


@runtime_checkable
class Judged(Protocol):
    """Something said of a video that is right or wrong."""

    @property
    def video(self) -> str: ...

    @property
    def right(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """One answer beside its reference."""

    video: str
    question: AskedQuestion
    said: str
    flags: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return plain(self.said) == plain(self.question.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of right answers with its interval."""

    accuracy: float
    low: float
    high: float
    items: int

    def to_dict(self) -> dict[str, float]:
        return {"accuracy": self.accuracy, "low": self.low, "high": self.high, "items": self.items}


def plain(text: str) -> str:
    """A text as answers are compared."""
    return " ".join(text.lower().split()).removesuffix(".")


def share(marks: Iterable[Judged]) -> Share:
    """Right answers among all, resampled by video."""
    by_video: dict[str, list[bool]] = defaultdict(list)
    for mark in marks:
        by_video[mark.video].append(mark.right)
    right = np.array([sum(found) for found in by_video.values()], dtype=float)
    items = np.array([len(found) for found in by_video.values()], dtype=float)
    if not items.sum():
        return Share(accuracy=0.0, low=0.0, high=0.0, items=0)
    drawn = np.random.default_rng(0).integers(0, len(items), (RESAMPLES, len(items)))
    shares = right[drawn].sum(1) / items[drawn].sum(1)
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Share(accuracy=float(right.sum() / items.sum()), low=float(low), high=float(high), items=int(items.sum()))


def difference(one: Sequence[Marked], other: Sequence[Marked]) -> Share:
    """How much more often ``one`` is right than ``other`` on the same questions, resampled by video."""
    by_video: dict[str, list[float]] = defaultdict(list)
    for mine, theirs in zip(one, other, strict=True):
        by_video[mine.video].append(float(mine.right) - float(theirs.right))
    apart = np.array([sum(found) for found in by_video.values()])
    items = np.array([len(found) for found in by_video.values()], dtype=float)
    drawn = np.random.default_rng(0).integers(0, len(items), (RESAMPLES, len(items)))
    low, high = np.quantile(apart[drawn].sum(1) / items[drawn].sum(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Share(accuracy=float(apart.sum() / items.sum()), low=float(low), high=float(high), items=int(items.sum()))


def by(marks: Iterable[Marked], key: str) -> dict[str, Share]:
    """Shares by ``type`` or ``form``."""
    groups: dict[str, list[Marked]] = defaultdict(list)
    for mark in marks:
        groups[str(getattr(mark.question, key))].append(mark)
    return {name: share(found) for name, found in sorted(groups.items())}


def metrics(
    marks: Sequence[Marked], words_alone: Sequence[Marked] = (), *, blind: Sequence[Marked] = ()
) -> dict[str, object]:
    """All shares as JSON data.

    Args:
        marks: The model's answers.
        words_alone: Of who has learned from other videos' questions and has not seen these videos.
        blind: Of the same model without the videos; ``visual`` is how far it is ahead of that.
    """
    found: dict[str, object] = dict(share(marks).to_dict())
    for key in ("type", "form"):
        found[f"by_{key}"] = {name: one.to_dict() for name, one in by(marks, key).items()}
    if words_alone:
        found["without_video"] = share(words_alone).to_dict()
    if blind:
        found["blind"] = share(blind).to_dict()
        found["visual"] = difference(marks, blind).to_dict()
    found["flagged"] = sum(bool(mark.flags) for mark in marks)
    return found


class TextOnly:
    """Answers from the words of a question alone: the usual answer to it, learned from other videos' questions.

    Names of toys, which tell nothing, are left out of the words, so that this is as good as words can be.
    """

    def __init__(self, questions: Iterable[AskedQuestion], names: Iterable[str]) -> None:
        self.names = sorted(names, key=len, reverse=True)
        answers: dict[str, Counter[str]] = defaultdict(Counter)
        self.by_form: dict[str, Counter[str]] = defaultdict(Counter)
        for question in questions:
            answers[self._words(question)][question.answer] += 1
            self.by_form[question.form][question.answer] += 1
        self.answers: Mapping[str, Counter[str]] = answers

    def answer(self, question: AskedQuestion) -> str:
        usual = self.answers.get(self._words(question)) or self.by_form.get(question.form)
        return usual.most_common(1)[0][0] if usual else ""

    def _words(self, question: AskedQuestion) -> str:
        text = question.question
        for name in self.names:
            text = text.replace(name, "toy")
        return text


def text_only_of_toybox(videos: int = 400, seed: int = 0) -> TextOnly:
    """Learned from the questions of the training split."""
    from longtake.data.toybox import COLOURS, KINDS, make_script
    from longtake.data.toybox.recall import recall_questions

    seen = (recall_questions(make_script(seed + index, seconds=105.0, split="train")) for index in range(videos))
    questions = [
        AskedQuestion(type=one.kind, question=one.question, answer=one.answer, form=one.form)
        for found in seen
        for one in found
    ]
    return TextOnly(questions, [f"{colour} {kind}" for colour in COLOURS for kind in KINDS])
