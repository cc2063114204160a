"""Dense-captioning scores of one video: where events were found, and the caption pairs that text metrics are run on.

The rules are those of the densevid_eval family (2018 on): at a threshold every (prediction, reference event) pair with
tIoU >= t is scored, over all reference sets together and many-to-many; a prediction that matches nothing is scored
against a filler sentence.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from longtake.eval.annotations import Story
from longtake.eval.localization import mean_best_tiou, precision_recall, spans, tiou_matrix
from longtake.eval.meteor import Pair, Statistics, corpus_score
from longtake.eval.ngrams import bleu, cider, rouge_l
from longtake.eval.protocols import Protocol

FIXED_FILLER = "abc123!@#"
_FILLER_LETTERS = 16
TEXT_METRICS = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider")
"""Those that need no Java."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One video to be scored: what was predicted and what each reference set that knows the video says."""

    video: str
    predictions: Story
    """As many as the protocol reads, in file order."""
    all_predictions: Story
    references: tuple[Story, ...]
    """By set; sets without this video are left out here."""
    sets: tuple[int, ...]
    """Which sets those are."""
    tious: tuple[Float[np.ndarray, "predictions _references"], ...]
    """By set."""
    missing: bool
    """The predictions lack this video altogether."""


def make_case(video: str, prediction: Story | None, reference_sets: Sequence[Story | None], protocol: Protocol) -> Case:
    """Bring one video's predictions and references together; None where a file lacks the video."""
    told = [(number, story) for number, story in enumerate(reference_sets) if story is not None]
    read = (prediction or ())[: protocol.max_proposals]
    swap = protocol.end_points == "sorted"
    times = spans(read, sort_end_points=swap)
    return Case(
        video=video,
        predictions=read,
        all_predictions=prediction or (),
        references=tuple(story for _, story in told),
        sets=tuple(number for number, _ in told),
        tious=tuple(tiou_matrix(times, spans(story, sort_end_points=swap)) for _, story in told),
        missing=prediction is None,
    )


def localization(case: Case, thresholds: Sequence[float]) -> tuple[list[float], list[float]]:
    """Precision and recall at each threshold (tIoU > t); with several sets the best of each, separately."""
    precisions, recalls = [], []
    for threshold in thresholds:
        found = [precision_recall(tiou > threshold) for tiou in case.tious]
        precisions.append(max(precision for precision, _ in found))
        recalls.append(max(recall for _, recall in found))
    return precisions, recalls


def start_localization(case: Case, distances_seconds: Sequence[float]) -> tuple[list[float], list[float]]:
    """Precision and recall by start times closer than each distance; with several sets the best of each, separately."""
    starts = np.array([event.start_seconds for event in case.predictions])
    gaps = [
        np.abs(starts[:, None] - np.array([event.start_seconds for event in story])[None, :])
        for story in case.references
    ]
    precisions, recalls = [], []
    for distance in distances_seconds:
        found = [precision_recall(gap < distance) for gap in gaps]
        precisions.append(max(precision for precision, _ in found))
        recalls.append(max(recall for _, recall in found))
    return precisions, recalls


def best_tious(case: Case) -> dict[int, float]:
    """Mean best tIoU against each set that knows the video."""
    return {number: mean_best_tiou(tiou) for number, tiou in zip(case.sets, case.tious, strict=True)}


def caption_pairs(case: Case, threshold: float, protocol: Protocol) -> list[Pair]:
    """(Predicted sentence, reference or filler sentence) pairs that are scored at one threshold, untokenised."""
    pairs: list[Pair] = []
    for row, event in enumerate(case.predictions):
        partners = [
            story[column].text
            for story, tiou in zip(case.references, case.tious, strict=True)
            for column in np.flatnonzero(tiou[row] >= threshold)
        ]
        pairs += [(event.text, partner) for partner in partners or [_filler(event.text, protocol)]]
    return pairs


def _filler(sentence: str, protocol: Protocol) -> str:
    """What an unmatched prediction is compared with.

    The public evaluators draw random letters. Letters from a digest of the prediction have the same effect, are the
    same in every run, and no prediction can contain its own.
    """
    if protocol.filler == "fixed":
        return FIXED_FILLER
    digest = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()
    return "".join(string.ascii_lowercase[byte % 26] for byte in digest[:_FILLER_LETTERS])


def caption_scores_of(
    pairs: Sequence[Pair], tokens: Mapping[str, str], alignments: Mapping[Pair, Statistics] | None
) -> dict[str, float]:
    """Scores of one video at one threshold; all 0 without predictions. No ``meteor`` without alignments."""
    tokenised = [(tokens[hypothesis], tokens[reference]) for hypothesis, reference in pairs]
    scores: dict[str, float] = dict.fromkeys(TEXT_METRICS, 0.0)
    if tokenised:
        scores |= {f"bleu_{order}": score for order, score in enumerate(bleu(tokenised), start=1)}
        scores["rouge_l"] = float(np.mean([rouge_l(hypothesis, reference) for hypothesis, reference in tokenised]))
        scores["cider"] = float(np.mean(cider(tokenised)))
    if alignments is not None:
        scores["meteor"] = corpus_score([alignments[pair] for pair in tokenised])
    return scores
