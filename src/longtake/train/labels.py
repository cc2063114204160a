"""What is true at each frame of a Toybox video, per kind of toy: what training's heads learn beside the captions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from longtake.data.toybox import KINDS, Script, frame_labels
from longtake.data.toybox.world import ACTIONS
from longtake.methods.sts_config import CaptionerConfig

IGNORED = -100
MEMORY_ANSWERS = (
    "enters",
    "comes back",
    "first",
    "second",
    "third",
    "fourth",
    "to a new place",
    "back to where it started",
    "to the left",
    "to the right",
)
MOST_COUNTS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """What is true at each frame of each kind of toy; integer labels are IGNORED where nothing is to be learned."""

    visible: Float[Tensor, "batch time kinds"]
    colour: Int[Tensor, "batch time kinds"]
    action: Int[Tensor, "batch time kinds"]
    place: Float[Tensor, "batch time kinds 3"]
    """x, y and scale."""
    cell: Int[Tensor, "batch time rows columns"]
    """Kind of the toy whose middle lies there, ``len(KINDS)`` for none."""
    elapsed: Int[Tensor, "batch time kinds"]
    """Ticks since the present action began."""
    counts: Int[Tensor, "batch time kinds counted"]
    home: Int[Tensor, "batch time kinds"]
    ended: Int[Tensor, "batch time kinds"]
    """Action of the event that ended at this frame, 0 for none."""
    length: Int[Tensor, "batch time kinds"]
    """Ticks that event took."""
    memory: Int[Tensor, "batch time kinds"]
    """Index into MEMORY_ANSWERS of the words of that event's sentence."""


def labels_of(script: Script, times: np.ndarray, model: CaptionerConfig) -> Labels:
    truth = frame_labels(script, times)
    visible = truth.visible.astype(bool)
    present = truth.colour >= 0

    def where(values: np.ndarray, mask: np.ndarray) -> Tensor:
        return torch.from_numpy(np.where(mask, values, IGNORED).astype(np.int64))[None]

    ended, length, memory = ended_labels(script, times, model.fps)
    place = np.stack([truth.x, truth.y, truth.scale], axis=-1).astype(np.float32)
    counts = np.minimum(truth.counts, MOST_COUNTS)
    return Labels(
        visible=torch.from_numpy(visible.astype(np.float32))[None],
        colour=where(truth.colour, visible),
        action=where(truth.action, present),
        place=torch.from_numpy(place)[None],
        cell=torch.from_numpy(cells(truth.x, truth.y, visible, model.size // 8))[None],
        elapsed=where(np.minimum(truth.elapsed_ticks, 31), present & (truth.action > 0)),
        counts=where(counts, np.broadcast_to(present[..., None], counts.shape)),
        home=where(truth.at_home, visible),
        ended=where(ended, present),
        length=where(length, ended > 0),
        memory=where(memory, memory >= 0),
    )


def ended_labels(script: Script, times: np.ndarray, fps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At the first frame of rest after an event: its action, its length in ticks, and its memory words' index or -1."""
    shape = (len(times), len(KINDS))
    ended, length, memory = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    for event in script.events:
        at = int(np.searchsorted(times, event.end_seconds - 1e-6))
        if times[0] <= event.end_seconds and at < len(times):
            kind = KINDS.index(script.cast[event.toy].kind)
            ended[at, kind] = ACTIONS.index(event.action)
            length[at, kind] = min(round((event.end_seconds - event.start_seconds) * fps), 31)
            if event.memory:
                memory[at, kind] = MEMORY_ANSWERS.index(event.memory[0].word)
    return ended, length, memory


def cells(x: np.ndarray, y: np.ndarray, visible: np.ndarray, side: int) -> np.ndarray:
    """Kind of toy per cell of a ``side`` x ``side`` grid."""
    grid = np.full((x.shape[0], side, side), len(KINDS), np.int64)
    time, kind = np.nonzero(visible & (x >= 0) & (x < 1) & (y >= 0) & (y < 1))
    column, row = (x[time, kind] * side).astype(int), (y[time, kind] * side).astype(int)
    grid[time, row, column] = kind
    return grid
