"""What an evaluation of captions found, as a value that becomes JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longtake.eval.memory import WordAccuracy

UNAVAILABLE = "unavailable"
"""Stands in a report for a score that could not be computed; never 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionReport:
    """Scores of one set of predictions under one protocol. All are fractions; CIDEr includes its factor 10."""

    protocol: str
    thresholds: tuple[float, ...]
    metrics: Mapping[str, float | None]
    """Headline numbers by name, averaged over videos and thresholds; None is unavailable.

    ``f1``: by the protocol's rule, for most the mean over thresholds of the F1 of video-averaged precision and recall.
    ``f1_of_means``: F1 of the two means over thresholds. ``miou``: mean over reference events of the best tIoU of any
    prediction, mean over videos, mean over reference sets (ProcNets). ``exact``: see ``longtake.eval.memory``.
    """
    per_threshold: Mapping[str, tuple[float, ...]]
    """In the order of ``thresholds``."""
    per_video: Mapping[str, Mapping[str, object]]
    soda: Mapping[str, tuple[float, float, float]]
    """Precision, recall and F of SODA by type (``soda_a`` to ``soda_d`` in ``metrics`` are the Fs)."""
    words: Mapping[str, WordAccuracy]
    """Memory words by kind; empty where the references mark none."""
    counts: Mapping[str, int]
    """Denominators: videos, events, predictions, matches, exact sentences."""
    missing_videos: tuple[str, ...]
    """In the references but not in the predictions."""
    extra_videos: tuple[str, ...]
    """In the predictions but in no reference; not scored."""
    tokenizer: str
    """``stanford`` or ``python``."""
    unavailable: Mapping[str, str]
    """Why a metric is unavailable."""

    def to_dict(self, *, per_video: bool = True) -> dict[str, object]:
        """The report as JSON data; unavailable metrics read ``unavailable``."""
        metrics: dict[str, object] = {
            name: UNAVAILABLE if value is None else value for name, value in self.metrics.items()
        }
        metrics["memory_words"] = {kind: words.accuracy for kind, words in self.words.items()}
        data: dict[str, object] = {
            "protocol": self.protocol,
            "thresholds": list(self.thresholds),
            "metrics": metrics,
            "per_threshold": {name: list(values) for name, values in self.per_threshold.items()},
            "soda": {
                kind: dict(zip(("precision", "recall", "f1"), scores, strict=True))
                for kind, scores in self.soda.items()
            },
            "memory_words": {kind: words.to_dict() for kind, words in self.words.items()},
            "counts": dict(self.counts),
            "missing_videos": list(self.missing_videos),
            "extra_videos": list(self.extra_videos),
            "tokenizer": self.tokenizer,
            "unavailable": dict(self.unavailable),
        }
        if per_video:
            data["per_video"] = {video: dict(scores) for video, scores in self.per_video.items()}
        return data
