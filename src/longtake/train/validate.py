"""Scores on validation videos while training: the same decoder and clock as in use, many decoding points at a time."""

from __future__ import annotations

from typing import Any

import torch

from longtake.data.toybox import Script
from longtake.data.toybox.annotate import captions_of
from longtake.eval.captions import caption_scores
from longtake.methods.sts_time import event_of
from longtake.train.caption_objective import CaptionObjective
from longtake.train.material import Batch
from longtake.types import Event


@torch.no_grad()
def caption_video(objective: CaptionObjective[Any], batch: Batch, *, spread: bool = False) -> list[Event]:
    """Events of one whole video (batch of one), as the stream would give them.

    ``spread``: its frames are spread evenly over the video instead of lying on the model's time grid.
    """
    model = objective.model
    tokens = batch.seen if batch.seen is not None else objective.see(batch.frames, whole_video=True)[1]
    said = objective.tell(tokens)
    num_frames, window = tokens.shape[1], model.config.time.num_buckets - 1
    size = model.config.num_frames if objective.whole is None else num_frames
    # The n-th of the frames that are spread over a video begins where the n-th of equal parts does.
    frame_seconds = batch.scripts[0].seconds / num_frames if spread else 1 / model.config.fps
    events: list[Event] = []
    for index, items in enumerate(said):
        border = min((index + 1) * size, num_frames)
        clock = tuple(frame * frame_seconds for frame in range(max(border - window, 0), border + 1))
        fresh, seconds = border - index * size, batch.scripts[0].seconds
        found = (event_of(item, model.config.time, clock, fresh, seconds) for item in items)
        events += [event for event in found if event]
    return events


def scores(pairs: list[tuple[Script, list[Event]]]) -> dict[str, float]:
    """Of several videos; see ``longtake.eval.captions.caption_scores`` for what each number is."""
    references = {str(number): captions_of(script) for number, (script, _) in enumerate(pairs)}
    predictions = {str(number): tuple(events) for number, (_, events) in enumerate(pairs)}
    return caption_scores(references, predictions)
