"""What is true of the toy at each visual token: what training's own heads learn beside the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

from longtake.data.toybox import KINDS, Script, frame_labels
from longtake.data.toybox.recall import HOW_OFTEN, Deed, Recall
from longtake.data.toybox.story import ROW_BORDERS
from longtake.data.toybox.world import ACTIONS

IGNORED = -100
MOST_COUNTS = 6
"""Counts from 0 to 5; more are taken for 5."""
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
    counts: Int[Tensor, "*batch token counted"]
    """How often it has begun each action of ``HOW_OFTEN``."""
    begins: Int[Tensor, "*batch token"]
    """Action that it is first seen at here, 0 for none."""
    visits: Int[Tensor, "*batch token"]
    """How often it has come on stage."""
    region: Int[Tensor, "*batch token"]
    """Where it stands or moves, index into REGIONS."""
    done: Float[Tensor, "*batch token actions"]
    """1 for every action that it has ended, 0 for the others."""
    during: Int[Tensor, "*batch token"]
    """Number of what it is doing, among all that the toys of the video do."""
    ended: Int[Tensor, "*batch token"]
    """Number of what it has ended last; -1 for nothing."""
    offset: Float[Tensor, "*batch token 2"]
    """Its middle within the token, -0.5 to 0.5."""

    def of(self, tokens: Int[Tensor, "videos some"]) -> Truth:
        """From ``(videos, steps, tokens)`` to ``(videos, some)``: at some of the tokens of all steps."""
        video = torch.arange(len(tokens), device=tokens.device)[:, None]
        return Truth(**{field.name: getattr(self, field.name).flatten(1, 2)[video, tokens] for field in fields(Truth)})


def truth_at(script: Script, times: np.ndarray, side: int) -> Truth:
    """What is true at ``times`` (seconds) on a grid of ``side`` x ``side`` tokens."""
    labels = frame_labels(script, times)
    history = _history(script, times)
    regions = 2 * np.digitize(labels.y, ROW_BORDERS) + (labels.x >= 0.5)
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

    counts = [of_owner(np.minimum(begun, MOST_COUNTS - 1)) for begun in np.moveaxis(history.counts, -1, 0)]
    offset = np.stack([np.take_along_axis(part, safe, axis=1) for part in (dx, dy)], axis=-1)
    return Truth(
        kind=torch.from_numpy(np.where(owner >= 0, owner, len(KINDS)).astype(np.int64)),
        colour=of_owner(labels.colour),
        action=of_owner(labels.action),
        before=of_owner(history.before),
        counts=torch.stack(counts, dim=-1),
        begins=of_owner(np.where(_first_shown(history.during, labels.visible), labels.action, 0)),
        visits=of_owner(np.minimum(history.visits, MOST_VISITS - 1)),
        region=of_owner(regions),
        during=of_owner(history.during),
        ended=of_owner(history.ended),
        done=torch.from_numpy(np.take_along_axis(history.done, safe[..., None], axis=1).astype(np.float32)),
        offset=torch.from_numpy(offset.astype(np.float32)),
    )


def _first_shown(
    during: Int64[np.ndarray, "time kind"], visible: Bool[np.ndarray, "time kind"]
) -> Bool[np.ndarray, "time kind"]:
    """Where a toy is seen at something for the first time."""
    first = np.zeros(during.shape, bool)
    shown = np.where(visible, during, IGNORED)
    for number in np.unique(shown[shown != IGNORED]):
        first.flat[np.flatnonzero(shown == number)[0]] = True
    return first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _History:
    """Per time and kind; see ``Truth``."""

    before: np.ndarray
    counts: np.ndarray
    visits: np.ndarray
    done: np.ndarray
    during: np.ndarray
    ended: np.ndarray


def _history(script: Script, times: np.ndarray) -> _History:
    shape = (len(times), len(KINDS))
    history = _History(
        before=np.zeros(shape, int),
        counts=np.zeros((*shape, len(HOW_OFTEN)), int),
        visits=np.zeros(shape, int),
        done=np.zeros((*shape, len(ACTIONS)), bool),
        during=np.full(shape, IGNORED),
        ended=np.full(shape, -1),
    )
    acts = [*script.acts[:-1], (script.acts[-1][0], np.inf)]
    numbered = 0
    for member, deeds in zip(script.cast, Recall(script).deeds, strict=True):
        present = np.zeros(len(times), bool)
        for act in range(len(acts)) if member.idle else member.acts:
            present |= (times >= acts[act][0] - 1e-6) & (times < acts[act][1] - 1e-6)
        _fill(history, times, present, KINDS.index(member.kind), deeds, numbered)
        kind = KINDS.index(member.kind)
        for slot, action in enumerate(HOW_OFTEN):
            starts = np.array([deed.start_seconds for deed in deeds if deed.action == action])
            history.counts[present, kind, slot] = np.searchsorted(starts, times[present] + 1e-6, side="right")
        came = history.counts[present, kind, HOW_OFTEN.index("enters")]
        history.visits[present, kind] = came + (member.start is not None)
        numbered += len(deeds)
    return history


def _fill(
    history: _History, times: np.ndarray, present: np.ndarray, kind: int, deeds: Sequence[Deed], first: int
) -> None:
    """What one toy does, ``deeds`` numbered from ``first``."""
    actions = np.array([0, *(ACTIONS.index(deed.action) for deed in deeds)])
    over = np.searchsorted(np.array([deed.end_seconds for deed in deeds]), times[present] + 1e-6, side="right")
    history.before[present, kind] = actions[over]
    history.ended[present, kind] = np.where(over > 0, first + over - 1, -1)
    for number, deed in enumerate(deeds):
        history.done[present & (times >= deed.end_seconds - 1e-6), kind, ACTIONS.index(deed.action)] = True
        going_on = (times >= deed.start_seconds) & (times <= deed.end_seconds)
        history.during[present & going_on, kind] = first + number
