"""SODA: stories compared in order.

Fujita et al. 2020, "SODA: Story Oriented Dense Video Captioning Evaluation Framework". Written from the paper and from
the published numbers, iteratively, so that any number of events works.
Axis words: ``references`` are rows and ``predictions`` are columns, both by start time.

Four types: ``a`` matches by tIoU, a tIoU below the threshold counting 0, and sums METEOR over the matched pairs,
averaged over the thresholds; ``b`` is ``a`` without thresholds; ``c`` matches by tIoU x METEOR and sums the same; ``d``
matches and sums tIoU. METEOR is taken the published way round, with the prediction as its reference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from longtake.eval.annotations import Story
from longtake.eval.dense import Case
from longtake.eval.localization import f_measure, spans, tiou_matrix
from longtake.eval.meteor import Pair, Statistics, pair_score
from longtake.eval.protocols import Protocol

TYPES = ("a", "b", "c", "d")
Scores = tuple[float, float, float]
"""Precision, recall, F."""
Align = Callable[[Iterable[Pair]], Mapping[Pair, Statistics] | None]
"""METEOR's numbers for token pairs, None where METEOR is unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SodaResult:
    """By type, over all videos and by video."""

    means: Mapping[str, Scores]
    per_video: Mapping[str, Mapping[str, Scores]]


def match_in_order(
    scores: Float[np.ndarray, "references predictions"],
) -> tuple[float, list[tuple[int, int]]]:
    """Best total over order-preserving one-to-one matchings, and the pairs that types a and b read their METEOR from.

    Equation: D(i, j) = max(D(i-1, j), D(i, j-1), D(i-1, j-1) + score(i, j)); SODA, section 3.2.
    Departs: the pairs are those of the published numbers, which need not add up to the total: from the last row up, a
    row takes the last column still free where pairing beat both other choices, even if leaving the row out would be
    better.
    """
    if 0 in scores.shape:
        return 0.0, []
    best = np.zeros(scores.shape[1] + 1)
    paired = np.zeros(scores.shape, dtype=bool)
    for row, row_scores in enumerate(scores):
        together = best[:-1] + row_scores
        step = np.maximum.accumulate(np.maximum(best[1:], together))
        before = np.concatenate(([0.0], step[:-1]))
        paired[row] = (together > best[1:]) & (together > before)
        best = np.concatenate(([0.0], step))
    paired[0, 0] = True  # the published back-trace always ends on some pair, be it worth 0
    return float(best[-1]), _read_pairs(paired)


def _read_pairs(paired: Bool[np.ndarray, "references predictions"]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    free = paired.shape[1]
    for row in range(paired.shape[0] - 1, -1, -1):
        columns = np.flatnonzero(paired[row, :free])
        if columns.size:
            free = int(columns[-1])
            pairs.append((row, free))
        if free == 0:
            break
    return pairs[::-1]


def story_scores(total: float, *, predictions: int, references: int) -> Scores:
    """Precision, recall and F of a matched total: per prediction, per reference, and their harmonic mean."""
    precision = total / predictions if predictions else 0.0
    recall = total / references if references else 0.0
    return precision, recall, f_measure(precision, recall)


def soda(cases: Sequence[Case], protocol: Protocol, tokens: Mapping[str, str], align: Align) -> SodaResult:
    """SODA over all videos; only type d where METEOR is unavailable.

    Means of P, R and F are over videos (macro), then over reference sets. A video without predictions counts 0; one
    that the predictions lack counts as the protocol says.
    """
    by_set: dict[int, list[dict[str, Scores]]] = {}
    per_video: dict[str, dict[str, Scores]] = {}
    for case in cases:
        if case.missing and protocol.missing_video_in_soda == "skip":
            continue
        stories = _stories(case, protocol)
        found = [story_soda(case.all_predictions, story, protocol, tokens, align) for story in stories]
        if protocol.soda_references == "best":
            found = [_best(found)]
        means = [{kind: _mean_scores(scores) for kind, scores in story.items()} for story in found]
        per_video[case.video] = _mean(means)
        numbers = case.sets if protocol.soda_references == "each" else (0,)
        for number, scores in zip(numbers, means, strict=True):
            by_set.setdefault(number, []).append(scores)
    return SodaResult(means=_mean([_mean(scores) for scores in by_set.values()]), per_video=per_video)


def _stories(case: Case, protocol: Protocol) -> Sequence[Story]:
    if protocol.soda_references == "merged":
        return [tuple(event for story in case.references for event in story)]
    return case.references


def _best(found: Sequence[Mapping[str, Sequence[Scores]]]) -> dict[str, list[Scores]]:
    """By type and threshold, the scores against the reference set that gives the best F."""
    by_set = {kind: zip(*(story[kind] for story in found), strict=True) for kind in _common(found)}
    return {kind: [max(several, key=lambda scores: scores[2]) for several in by_set[kind]] for kind in by_set}


def _mean(found: Sequence[Mapping[str, Scores]]) -> dict[str, Scores]:
    if not found:
        return dict.fromkeys(TYPES, (0.0, 0.0, 0.0))
    return {kind: _mean_scores([scores[kind] for scores in found]) for kind in _common(found)}


def _common(found: Sequence[Mapping[str, object]]) -> list[str]:
    """Types that all have; METEOR may have failed on the way."""
    return [kind for kind in TYPES if all(kind in scores for scores in found)]


def _mean_scores(found: Sequence[Scores]) -> Scores:
    precision, recall, f = (float(value) for value in np.mean(found, axis=0))
    return precision, recall, f


def story_soda(
    predicted: Story, told: Story, protocol: Protocol, tokens: Mapping[str, str], align: Align
) -> dict[str, list[Scores]]:
    """Scores of one story against another by type, several for type a; only type d where METEOR is unavailable."""
    predicted = tuple(sorted(predicted, key=lambda event: event.start_seconds))
    if protocol.soda_sorts_references:
        told = tuple(sorted(told, key=lambda event: event.start_seconds))
    swap = protocol.end_points == "sorted"
    tious = tiou_matrix(spans(told, sort_end_points=swap), spans(predicted, sort_end_points=swap))
    best, matched = match_in_order(tious)
    totals = {"d": [best]}
    kept = [match_in_order(np.where(tious < threshold, 0.0, tious))[1] for threshold in protocol.thresholds]
    read = {*matched, *itertools.chain(*kept), *((int(row), int(column)) for row, column in np.argwhere(tious > 0))}
    texts = {(row, column): (tokens[told[row].text], tokens[predicted[column].text]) for row, column in sorted(read)}
    alignments = align(texts.values())
    if alignments is not None:
        meteor = {cell: pair_score(alignments[pair]) for cell, pair in texts.items()}
        weighted = np.zeros_like(tious)
        for cell, score in meteor.items():
            weighted[cell] = tious[cell] * score
        totals["a"] = [sum(meteor[cell] for cell in cells) for cells in kept]
        totals["b"] = [sum(meteor[cell] for cell in matched)]
        totals["c"] = [match_in_order(weighted)[0]]
    counts = {"predictions": len(predicted), "references": len(told)}
    return {kind: [story_scores(total, **counts) for total in totals[kind]] for kind in TYPES if kind in totals}
