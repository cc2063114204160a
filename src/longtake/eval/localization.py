"""Where events were found in time: tIoU, precision and recall, mean best tIoU, one-to-one matches.

Axis words: ``predictions`` and ``references`` are the events of one video.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from longtake.eval.annotations import TimedSentence

EPSILON_SECONDS = 1e-8
"""Added to the union by every public evaluator; an overlap of exactly one half therefore stays below 0.5."""


def spans(events: Sequence[TimedSentence], *, sort_end_points: bool = False) -> Float[np.ndarray, "events 2"]:
    """Start and end seconds of events as an array."""
    times = np.array([(event.start_seconds, event.end_seconds) for event in events], dtype=np.float64).reshape(-1, 2)
    return np.sort(times, axis=1) if sort_end_points else times


def tiou_matrix(
    predictions: Float[np.ndarray, "predictions 2"], references: Float[np.ndarray, "references 2"]
) -> Float[np.ndarray, "predictions references"]:
    """Temporal intersection over union of every prediction with every reference.

    Equation: max(0, min(ends) - max(starts)) / (min(hull, sum of lengths) + 1e-8); 0 for empty segments, even against
    themselves.
    """
    first, second = predictions[:, None, :], references[None, :, :]
    inner = np.minimum(first[..., 1], second[..., 1]) - np.maximum(first[..., 0], second[..., 0])
    hull = np.maximum(first[..., 1], second[..., 1]) - np.minimum(first[..., 0], second[..., 0])
    lengths = (first[..., 1] - first[..., 0]) + (second[..., 1] - second[..., 0])
    return np.maximum(inner, 0.0) / (np.minimum(hull, lengths) + EPSILON_SECONDS)


def precision_recall(hits: np.ndarray) -> tuple[float, float]:
    """Share of predictions that hit some reference, and of references hit by some prediction; not one-to-one."""
    if 0 in hits.shape:
        return 0.0, 0.0
    return float(hits.any(axis=1).mean()), float(hits.any(axis=0).mean())


def f_measure(precision: float, recall: float) -> float:
    """Harmonic mean; 0 when both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def mean_best_tiou(tious: Float[np.ndarray, "predictions references"]) -> float:
    """Mean over references of the best tIoU that any prediction has with it (mIoU as in ProcNets; not one-to-one)."""
    return float(tious.max(axis=0).mean()) if tious.size else 0.0


def match_one_to_one(
    tious: Float[np.ndarray, "predictions references"], *, at_least: float = 0.5
) -> list[tuple[int, int]]:
    """Pairs (prediction, reference), each used once: greedily by falling tIoU.

    Ties go to the earlier prediction, then to the earlier reference, in file order. The sentences play no part, so a
    wrong sentence cannot improve its score by choosing another partner.
    """
    free_predictions, free_references = set(range(tious.shape[0])), set(range(tious.shape[1]))
    matches: list[tuple[int, int]] = []
    for flat in np.argsort(-tious, axis=None, kind="stable"):
        prediction, reference = divmod(int(flat), tious.shape[1])
        if tious[prediction, reference] < at_least:
            break
        if prediction in free_predictions and reference in free_references:
            free_predictions.remove(prediction)
            free_references.remove(reference)
            matches.append((prediction, reference))
    return sorted(matches)
