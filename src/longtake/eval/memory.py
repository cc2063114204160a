"""Whether the right words were said: exact sentences and memory words among matched events.

A predicted event is matched to a reference event one-to-one: greedily by falling tIoU, tIoU >= 0.5, sentences playing
no part (``localization.match_one_to_one``). With several reference sets the first one that knows the video is used.

* **exact**: share of matches whose two sentences are the same, character by character after runs of white space become
  one space.
* **memory word accuracy** of a kind: among matches whose reference marks words of that kind, the share whose prediction
  gives the same answer. The prediction's answer is the longest of the kind's alternatives (all answers marked in the
  references) that stands in its sentence as whole words. A prediction that says nothing of the kind counts as wrong
  (the strict reading).
* **majority**: the most frequent reference answer of the kind and its share; whoever always gives it reaches that
  accuracy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from longtake.eval.annotations import TimedSentence
from longtake.eval.dense import Case
from longtake.eval.localization import match_one_to_one

MATCH_TIOU = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAccuracy:
    """How often the memory words of one kind were right."""

    right: int
    items: int
    """Matched reference events with words of the kind."""
    needed_right: int
    needed_items: int
    """Those among ``items`` whose words would be false without memory."""
    references: int
    """All reference events with words of the kind, matched or not."""
    majority_answer: str
    majority_share: float
    """Of all ``references``."""

    @property
    def accuracy(self) -> float:
        """In [0, 1]; 0 without items."""
        return self.right / self.items if self.items else 0.0

    @property
    def needed_accuracy(self) -> float:
        """In [0, 1]; 0 without items."""
        return self.needed_right / self.needed_items if self.needed_items else 0.0

    def to_dict(self) -> dict[str, object]:
        """For reports."""
        return {
            "accuracy": self.accuracy,
            "right": self.right,
            "items": self.items,
            "references": self.references,
            "majority_answer": self.majority_answer,
            "majority_share": self.majority_share,
            "needed": {"accuracy": self.needed_accuracy, "right": self.needed_right, "items": self.needed_items},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What was said among matched events."""

    matches: int
    exact: int
    words: Mapping[str, WordAccuracy]
    """By kind of memory word, in alphabetical order; empty where the references mark none."""
    per_video: Mapping[str, tuple[int, int]]
    """Matches and exact sentences by video."""

    @property
    def exact_rate(self) -> float:
        """In [0, 1]; 0 without matches."""
        return self.exact / self.matches if self.matches else 0.0


def wording(cases: Sequence[Case]) -> Wording:
    """Match every video's events and compare what is said in them."""
    matched = {case.video: matches_of(case) for case in cases}
    per_video = {
        video: (len(pairs), sum(same_sentence(said.text, told.text) for said, told in pairs))
        for video, pairs in matched.items()
    }
    everything = [event for case in cases for event in case.references[0]]
    return Wording(
        matches=sum(matches for matches, _ in per_video.values()),
        exact=sum(exact for _, exact in per_video.values()),
        words=_word_accuracies([pair for pairs in matched.values() for pair in pairs], everything),
        per_video=per_video,
    )


def matches_of(case: Case) -> list[tuple[TimedSentence, TimedSentence]]:
    """Matched (prediction, reference) events of one video."""
    pairs = match_one_to_one(case.tious[0], at_least=MATCH_TIOU)
    return [(case.predictions[row], case.references[0][column]) for row, column in pairs]


def same_sentence(said: str, told: str) -> bool:
    """Equal up to runs of white space."""
    return said.split() == told.split()


def answer_in(sentence: str, alternatives: Iterable[str]) -> str | None:
    """The longest alternative that stands in the sentence as whole words; None if none does."""
    spoken = [word for word in alternatives if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence)]
    return max(spoken, key=lambda word: (len(word), word), default=None)


def _word_accuracies(
    matches: Sequence[tuple[TimedSentence, TimedSentence]], everything: Sequence[TimedSentence]
) -> dict[str, WordAccuracy]:
    answers: dict[str, Counter[str]] = {}
    for event in everything:
        for mark in event.memory:
            answers.setdefault(mark.kind, Counter())[mark.word] += 1
    tallies = {kind: Counter[str]() for kind in sorted(answers)}
    for said, told in matches:
        for mark in told.memory:
            right = int(answer_in(said.text, answers[mark.kind]) == mark.word)
            needed = int(mark.needed)
            tallies[mark.kind].update(items=1, right=right, needed_items=needed, needed_right=needed * right)
    return {kind: _accuracy(tally, answers[kind]) for kind, tally in tallies.items()}


def _accuracy(tally: Counter[str], answers: Counter[str]) -> WordAccuracy:
    majority = max(sorted(answers), key=lambda word: answers[word])
    return WordAccuracy(
        right=tally["right"],
        items=tally["items"],
        needed_right=tally["needed_right"],
        needed_items=tally["needed_items"],
        references=answers.total(),
        majority_answer=majority,
        majority_share=answers[majority] / answers.total(),
    )
