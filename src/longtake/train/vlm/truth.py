"""What is true of the toy at each visual token: what training's own heads learn beside the answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from longtake.data.toybox import KINDS, Script, frame_labels
from longtake.data.toybox.recall import Recall
from longtake.data.toybox.world import ACTIONS

IGNORED = -100
MOST_COUNTS = 5
"""Counts from 0 to 4; more are taken for 4."""
MOST_VISITS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """Of the toy whose middle lies under the token, IGNORED where there is none. ``token``: row by row."""

    kind: Int[Tensor, "*batch token"]
    """Index into KINDS; ``len(KINDS)`` where no toy is."""
    colour: Int[Tensor, "*batch token"]
    action: Int[Tensor, "*batch token"]
    before: Int[Tensor, "*batch token"]
    """Action that it has ended last, 0 for none."""
    counts: Int[Tensor, "*batch token 3"]
    """Jumps, spins and blinks begun."""
    visits: Int[Tensor, "*batch token"]
    """How often it has come on stage."""
    offset: Float[Tensor, "*batch token 2"]
    """Its middle within the token, -0.5 to 0.5."""


def truth_at(script: Script, times: np.ndarray, side: int) -> Truth:
    """What is true at ``times`` (seconds) on a grid of ``side`` x ``side`` tokens."""
    labels = frame_labels(script, times)
    before, visits = _history(script, times)
    column, row = (np.clip((at * side).astype(int), 0, side - 1) for at in (labels.x, labels.y))
    owner = np.full((len(times), side * side), -1)
    nearest = np.full(owner.shape, np.inf)
    dx, dy = labels.x * side - column - 0.5, labels.y * side - row - 0.5
    for kind in range(len(KINDS)):
        step = np.flatnonzero(labels.visible[:, kind])
        token, apart = (row * side + column)[step, kind], (dx**2 + dy**2)[step, kind]
        closer = apart < nearest[step, token]
        owner[step[closer], token[closer]] = kind
        nearest[step[closer], token[closer]] = apart[closer]
    safe = np.maximum(owner, 0)

    def of_owner(values: np.ndarray) -> Tensor:
        found = np.take_along_axis(values, safe, axis=1)
        return torch.from_numpy(np.where(owner >= 0, found, IGNORED).astype(np.int64))

    counts = [
        of_owner(np.minimum(labels.counts[..., slot], MOST_COUNTS - 1)) for slot in range(labels.counts.shape[-1])
    ]
    offset = np.stack([np.take_along_axis(part, safe, axis=1) for part in (dx, dy)], axis=-1)
    return Truth(
        kind=torch.from_numpy(np.where(owner >= 0, owner, len(KINDS)).astype(np.int64)),
        colour=of_owner(labels.colour),
        action=of_owner(labels.action),
        before=of_owner(before),
        counts=torch.stack(counts, dim=-1),
        visits=of_owner(np.minimum(visits, MOST_VISITS - 1)),
        offset=torch.from_numpy(offset.astype(np.float32)),
    )


def _history(script: Script, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per time and kind: the last action that had ended, and how often it had come on stage."""
    before, visits = np.zeros((len(times), len(KINDS)), int), np.zeros((len(times), len(KINDS)), int)
    acts = [*script.acts[:-1], (script.acts[-1][0], np.inf)]
    for toy, (member, deeds) in enumerate(zip(script.cast, Recall(script).deeds, strict=True)):
        kind = KINDS.index(member.kind)
        present = np.zeros(len(times), bool)
        for act in range(len(acts)) if member.idle else member.acts:
            present |= (times >= acts[act][0] - 1e-6) & (times < acts[act][1] - 1e-6)
        ends = np.array([deed.end_seconds for deed in deeds])
        actions = np.array([0, *(ACTIONS.index(deed.action) for deed in deeds)])
        entries = np.array([deed.start_seconds for deed in deeds if deed.action == "enters"])
        before[present, kind] = actions[np.searchsorted(ends, times[present] + 1e-6, side="right")]
        on_stage = script.cast[toy].start is not None
        visits[present, kind] = on_stage + np.searchsorted(entries, times[present] + 1e-6, side="right")
    return before, visits
