"""Evaluation of captions with times: one call from references and predictions to a report.

``evaluate_captions`` scores by a named protocol; ``caption_scores`` is the quick version for training, without Java.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import numpy as np

from longtake.errors import ConfigError
from longtake.eval.annotations import Stories, TimedSentence, predictions_from, references_from
from longtake.eval.dense import (
    Case,
    best_tious,
    caption_pairs,
    caption_scores_of,
    localization,
    make_case,
    start_localization,
)
from longtake.eval.localization import f_measure
from longtake.eval.memory import Wording, wording
from longtake.eval.protocols import Protocol, protocol_named
from longtake.eval.report import CaptionReport
from longtake.eval.soda import TYPES, SodaResult, soda
from longtake.eval.text_tools import TextTools

PerThreshold = dict[str, list[list[float]]]
"""By metric: one row per video, one column per threshold."""


def evaluate_captions(
    references: object,
    predictions: object,
    *,
    protocol: str | Protocol = "pdvc2021",
    tools: TextTools | None = None,
) -> CaptionReport:
    """Score predictions against one or several reference sets.

    Args:
        references: ActivityNet's layout ``{video: {"timestamps", "sentences"}}``, or what ``read_references`` gives; a
            list of these for several annotators.
        predictions: ActivityNet's layout, ``{video: [Event, ...]}``, or what ``read_predictions`` gives.
        protocol: A name from ``PROTOCOLS``, or rules of your own.
        tools: Tokeniser and METEOR to share between calls; by default started and ended here.

    Raises:
        ConfigError: the data has another layout, or the protocol is unknown.
    """
    rules = protocol_named(protocol) if isinstance(protocol, str) else protocol
    reference_sets = _reference_sets(references)
    predicted = _stories(predictions) or predictions_from(predictions)
    with TextTools() if tools is None else nullcontext(tools) as shared:
        return _evaluate(reference_sets, predicted, rules, shared)


def caption_scores(references: object, predictions: object) -> dict[str, float]:
    """The numbers worth watching during training, without Java and in milliseconds per video.

    f1, precision, recall, miou, cider (by our own tokeniser), soda_d, exact, and ``memory_<kind>`` for each kind of
    memory word.
    """
    with TextTools(java=False) as tools:
        report = evaluate_captions(references, predictions, protocol="longtake", tools=tools)
    scores = {name: value for name, value in report.metrics.items() if value is not None}
    return scores | {f"memory_{kind}": words.accuracy for kind, words in report.words.items()}


def _reference_sets(references: object) -> list[Stories]:
    several = references if isinstance(references, list | tuple) else [references]
    if not several:
        raise ConfigError("got no references, expected at least one set")
    return [_stories(each) or references_from(each) for each in several]


def _stories(data: object) -> Stories | None:
    """The data itself if it has been read already."""
    if not isinstance(data, Mapping) or not all(isinstance(story, tuple) for story in data.values()):
        return None
    read = all(isinstance(event, TimedSentence) for story in data.values() for event in story)
    return data if read else None


def _evaluate(
    reference_sets: Sequence[Stories], predicted: Stories, rules: Protocol, tools: TextTools
) -> CaptionReport:
    videos = list(dict.fromkeys(video for told in reference_sets for video in told))
    known = set(videos)
    if not known & predicted.keys():
        raise ConfigError(
            f"none of the {len(predicted)} predicted videos is among the {len(videos)} reference videos "
            f"(such as {videos[0]!r}); expected the same names in both"
        )
    cases = [
        make_case(video, predicted.get(video), [told.get(video) for told in reference_sets], rules)
        for video in videos
        if rules.missing_video == "zero" or video in predicted
    ]
    values, stories = _scores(cases, rules, tools)
    said = wording(cases)
    per_threshold = {name: tuple(float(value) for value in np.mean(rows, axis=0)) for name, rows in values.items()}
    per_threshold["f1"] = tuple(map(f_measure, per_threshold["precision"], per_threshold["recall"]))
    return CaptionReport(
        protocol=rules.name,
        thresholds=rules.thresholds,
        metrics=_headlines(cases, values, per_threshold, stories, rules) | {"exact": said.exact_rate},
        per_threshold=per_threshold,
        per_video=_per_video(cases, values, stories, said),
        soda=stories.means,
        words=said.words,
        counts=_counts(cases, said, reference_sets, predicted),
        missing_videos=tuple(video for video in videos if video not in predicted),
        extra_videos=tuple(video for video in predicted if video not in known),
        tokenizer=tools.tokenizer,
        unavailable=tools.unavailable | dict.fromkeys(("soda_a", "soda_b", "soda_c"), "needs METEOR")
        if tools.unavailable
        else {},
    )


def _scores(cases: Sequence[Case], rules: Protocol, tools: TextTools) -> tuple[PerThreshold, SodaResult]:
    """Scores by video and threshold, and SODA. All captions are tokenised in one go, and so are pairs aligned."""
    pairs = [[caption_pairs(case, threshold, rules) for threshold in rules.thresholds] for case in cases]
    texts = {event.text for case in cases for story in (case.all_predictions, *case.references) for event in story}
    texts |= {text for of_video in pairs for of_threshold in of_video for pair in of_threshold for text in pair}
    tokens = tools.tokens(sorted(texts))
    flat = (pair for of_video in pairs for of_threshold in of_video for pair in of_threshold)
    alignments = tools.align((tokens[hypothesis], tokens[reference]) for hypothesis, reference in flat)
    values: PerThreshold = {}
    for case, of_video in zip(cases, pairs, strict=True):
        precisions, recalls = localization(case, rules.thresholds)
        values.setdefault("precision", []).append(precisions)
        values.setdefault("recall", []).append(recalls)
        scored = [caption_scores_of(of_threshold, tokens, alignments) for of_threshold in of_video]
        for name in scored[0]:
            values.setdefault(name, []).append([scores[name] for scores in scored])
    return values, soda(cases, rules, tokens, tools.align)


def _headlines(
    cases: Sequence[Case],
    values: PerThreshold,
    per_threshold: Mapping[str, tuple[float, ...]],
    stories: SodaResult,
    rules: Protocol,
) -> dict[str, float | None]:
    means = {name: float(np.mean(each)) for name, each in per_threshold.items()}
    if rules.f1 == "per_video":
        by_video = zip(np.mean(values["precision"], axis=1), np.mean(values["recall"], axis=1), strict=True)
        means["f1"] = float(np.mean([f_measure(precision, recall) for precision, recall in by_video]))
    metrics: dict[str, float | None] = {name: means[name] for name in ("f1", "precision", "recall")}
    metrics["f1_of_means"] = f_measure(means["precision"], means["recall"])
    metrics["miou"] = _miou(cases)
    for name in ("cider", "meteor", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l"):
        metrics[name] = means.get(name)
    for kind in TYPES:
        metrics[f"soda_{kind}"] = stories.means[kind][2] if kind in stories.means else None
    return metrics | _start_headlines(cases, rules)


def _start_headlines(cases: Sequence[Case], rules: Protocol) -> dict[str, float]:
    if not rules.start_distances_seconds:
        return {}
    found = np.array([start_localization(case, rules.start_distances_seconds) for case in cases]).mean(axis=0)
    metrics: dict[str, float] = {}
    for distance, precision, recall in zip(rules.start_distances_seconds, *found.tolist(), strict=True):
        metrics[f"precision_start_{distance:g}s"] = precision
        metrics[f"recall_start_{distance:g}s"] = recall
        metrics[f"f1_start_{distance:g}s"] = f_measure(precision, recall)
    return metrics


def _miou(cases: Sequence[Case]) -> float:
    by_set: dict[int, list[float]] = {}
    for case in cases:
        for number, tiou in best_tious(case).items():
            by_set.setdefault(number, []).append(tiou)
    return float(np.mean([np.mean(tious) for tious in by_set.values()]))


def _per_video(
    cases: Sequence[Case], values: PerThreshold, stories: SodaResult, said: Wording
) -> dict[str, dict[str, object]]:
    rows: dict[str, dict[str, object]] = {}
    for number, case in enumerate(cases):
        row: dict[str, object] = {name: list(each[number]) for name, each in values.items()}
        row |= {f"soda_{kind}": scores[2] for kind, scores in stories.per_video.get(case.video, {}).items()}
        row["miou"] = float(np.mean(list(best_tious(case).values())))
        row["matches"], row["exact"] = said.per_video[case.video]
        rows[case.video] = row
    return rows


def _counts(
    cases: Sequence[Case], said: Wording, reference_sets: Sequence[Stories], predicted: Stories
) -> dict[str, int]:
    return {
        "videos": len(cases),
        "reference_sets": len(reference_sets),
        "reference_events": sum(len(story) for case in cases for story in case.references),
        "predictions": sum(len(case.predictions) for case in cases),
        "predictions_not_read": sum(len(case.all_predictions) - len(case.predictions) for case in cases),
        "predicted_videos": len(predicted),
        "matches": said.matches,
        "exact": said.exact,
    }
