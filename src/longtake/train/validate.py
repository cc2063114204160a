"""Scores on validation videos while training: the same decoder and clock as in use, many decoding points at a time."""

from __future__ import annotations

import numpy as np
import torch

from longtake.data.toybox import Script
from longtake.eval.annotations import TimedSentence
from longtake.eval.localization import f_measure, match_one_to_one, precision_recall, spans, tiou_matrix
from longtake.methods.sts import STS
from longtake.train.objective import STSObjective, shown_segments
from longtake.train.toybox import MEMORY_ANSWERS, Batch
from longtake.types import Event

THRESHOLDS = (0.3, 0.5, 0.7, 0.9)


@torch.no_grad()
def caption_video(objective: STSObjective, batch: Batch) -> list[Event]:
    """Events of one whole video (batch of one), as the stream would give them."""
    model: STS = objective.model
    _, tokens = objective.see(batch.frames, whole_video=True)
    memory, visible = shown_segments(model, objective.scan(tokens))
    said = model.decoder.generate(memory, model.tokenizer, visible, event_bias=model.config.event_bias)
    num_frames, size, window = batch.frames.shape[1], model.config.num_frames, model.config.time.num_buckets - 1
    events: list[Event] = []
    for index, items in enumerate(said):
        border = min((index + 1) * size, num_frames)
        clock = tuple(frame / model.config.fps for frame in range(max(border - window, 0), border + 1))
        found = (model.to_event(item, clock, border - index * size, num_frames / model.config.fps) for item in items)
        events += [event for event in found if event]
    return events


def quick_scores(pairs: list[tuple[Script, list[Event]]]) -> dict[str, float]:
    """Mean F1, exact sentences among matches and memory words right among matches (tIoU >= 0.5)."""
    precision, recall = np.zeros((len(pairs), 4)), np.zeros((len(pairs), 4))
    exact: list[bool] = []
    words: dict[str, list[bool]] = {}
    for row, (script, events) in enumerate(pairs):
        truth = [event for event in script.events if event.end_seconds < script.seconds]
        timed = [
            TimedSentence(start_seconds=e.start_seconds, end_seconds=e.end_seconds, text=e.sentence) for e in truth
        ]
        said = [TimedSentence(start_seconds=e.start_seconds, end_seconds=e.end_seconds, text=e.text) for e in events]
        tious = tiou_matrix(spans(said), spans(timed))
        for column, threshold in enumerate(THRESHOLDS):
            precision[row, column], recall[row, column] = precision_recall(tious > threshold)
        for guess, right in match_one_to_one(tious):
            text = events[guess].text
            exact.append(text == truth[right].sentence)
            for word in truth[right].memory:
                answer = next((other for other in MEMORY_ANSWERS if other in text), "")
                words.setdefault(word.kind, []).append(answer == word.word)
    f1 = [f_measure(p, r) for p, r in zip(precision.mean(0), recall.mean(0), strict=True)]
    scores = {"f1": float(np.mean(f1)), "exact": float(np.mean(exact or [0.0]))}
    scores |= {f"f1_{threshold}": value for threshold, value in zip(THRESHOLDS, f1, strict=True)}
    return scores | {f"words_{kind}": float(np.mean(values)) for kind, values in words.items()}
