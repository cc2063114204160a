"""What is true at given times, toy kind by toy kind: the training targets of the vision side.

Axis words: time, kind (order of ``KINDS``), counted (order of ``COUNTED``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float32, Int64

from longtake.data.toybox.motion import Pose, Stretch, Track, pose_at, tracks
from longtake.data.toybox.world import (
    ACTIONS,
    COLOURS,
    COUNTED,
    KINDS,
    RADIUS,
    TICK_SECONDS,
    Box,
    Script,
    Span,
)

SHOWING = 0.75
"""A toy counts as visible while its middle is less than this many radii outside the frame."""
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameLabels:
    """Labels for each of the times asked for and each kind; kinds that are not in the cast are all zeros."""

    visible: Bool[np.ndarray, "time kind"]
    """On stage and drawn, also while faint in a blink; False in the box."""
    x: Float32[np.ndarray, "time kind"]
    """Middle of the toy, in [0, 1] while it is visible (clipped), 0 otherwise."""
    y: Float32[np.ndarray, "time kind"]
    colour: Int64[np.ndarray, "time kind"]
    """Index into ``COLOURS``; -1 if the kind is not in the cast of the current act."""
    scale: Float32[np.ndarray, "time kind"]
    """1 for a toy of normal size; 0 while it is not visible."""
    action: Int64[np.ndarray, "time kind"]
    """Index into ``ACTIONS``; the partner of a swap swaps too, the partner of a bump is bumped from the touch on."""
    elapsed_ticks: Float32[np.ndarray, "time kind"]
    """Ticks since the action began, 0 at its first frame; 0 while idle."""
    counts: Int64[np.ndarray, "time kind counted"]
    """How often the toy has begun each counted action, one in progress included."""
    seen_before: Bool[np.ndarray, "time kind"]
    """The toy has been visible at this time or earlier."""
    at_home: Bool[np.ndarray, "time kind"]
    """On the place where it first stood after it last came on stage (or when the video began)."""
    in_box: Bool[np.ndarray, "time kind"]
    """Hidden in the box."""


def frame_labels(script: Script, times: Sequence[float] | np.ndarray) -> FrameLabels:
    """Labels at ``times`` (seconds, in any order)."""
    seconds = np.asarray(times, dtype=float)
    shape = (len(seconds), len(KINDS))
    labels = FrameLabels(
        visible=np.zeros(shape, dtype=bool),
        x=np.zeros(shape, dtype=np.float32),
        y=np.zeros(shape, dtype=np.float32),
        colour=np.full(shape, -1, dtype=np.int64),
        scale=np.zeros(shape, dtype=np.float32),
        action=np.zeros(shape, dtype=np.int64),
        elapsed_ticks=np.zeros(shape, dtype=np.float32),
        counts=np.zeros((*shape, len(COUNTED)), dtype=np.int64),
        seen_before=np.zeros(shape, dtype=bool),
        at_home=np.zeros(shape, dtype=bool),
        in_box=np.zeros(shape, dtype=bool),
    )
    for timeline in _timelines(script):
        _fill(labels, timeline, seconds, script.box)
    return labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Timeline:
    """One toy's track in the form in which many times are looked up at once."""

    kind: int
    colour: int
    track: Track
    starts: np.ndarray
    counted_starts: tuple[np.ndarray, ...]
    first_seen: float
    presence: tuple[Span, ...]
    """Acts in which the toy is in the cast."""


@lru_cache(maxsize=16)
def _timelines(script: Script) -> tuple[_Timeline, ...]:
    members: list[_Timeline] = []
    acts = [*script.acts[:-1], (script.acts[-1][0], np.inf)]
    for index, (toy, track) in enumerate(zip(script.cast, tracks(script), strict=True)):
        own = [event for event in script.events if event.toy == index]
        arrivals = [event.start_seconds + TICK_SECONDS for event in own if event.action == "enters"]
        members.append(
            _Timeline(
                kind=KINDS.index(toy.kind),
                colour=COLOURS.index(toy.colour),
                track=track,
                starts=np.array(track.starts),
                counted_starts=tuple(
                    np.array([event.start_seconds for event in own if event.action == action]) for action in COUNTED
                ),
                first_seen=0.0 if toy.start is not None else min(arrivals, default=np.inf),
                presence=tuple(acts[act] for act in (range(len(acts)) if toy.idle else toy.acts)),
            )
        )
    return tuple(members)


def _fill(labels: FrameLabels, timeline: _Timeline, seconds: np.ndarray, box: Box) -> None:
    kind = timeline.kind
    present = np.zeros(len(seconds), dtype=bool)
    for start, end in timeline.presence:
        present |= (seconds >= start - _EPSILON) & (seconds < end - _EPSILON)
    if not present.any():
        return
    labels.colour[present, kind] = timeline.colour
    labels.seen_before[present, kind] = seconds[present] >= timeline.first_seen - _EPSILON
    for slot, starts in enumerate(timeline.counted_starts):
        labels.counts[present, kind, slot] = np.searchsorted(starts, seconds[present] + _EPSILON, side="right")
    which = np.maximum(np.searchsorted(timeline.starts, seconds + _EPSILON, side="right") - 1, 0)
    for index in np.unique(which[present]):
        rows = np.flatnonzero(present & (which == index))
        _fill_stretch(labels, timeline.track.stretches[index], kind, rows, seconds[rows], box)


def _fill_stretch(
    labels: FrameLabels, stretch: Stretch, kind: int, rows: np.ndarray, seconds: np.ndarray, box: Box
) -> None:
    if stretch.where == "off":
        return
    if stretch.where == "box":
        labels.in_box[rows, kind] = True
        return
    pose = pose_at(stretch, seconds, box)
    shown = np.broadcast_to(_shows(pose), rows.shape)
    labels.visible[rows, kind] = shown
    labels.x[rows, kind] = np.where(shown, np.clip(pose.x, 0.0, 1.0), 0.0)
    labels.y[rows, kind] = np.where(shown, np.clip(pose.y, 0.0, 1.0), 0.0)
    labels.scale[rows, kind] = np.where(shown, pose.scale, 0.0)
    labels.at_home[rows, kind] = stretch.at_home
    if stretch.event is not None:
        labels.action[rows, kind] = ACTIONS.index(stretch.action)
        labels.elapsed_ticks[rows, kind] = (seconds - stretch.action_start_seconds) / TICK_SECONDS


def _shows(pose: Pose) -> np.ndarray | np.bool_:
    margin = SHOWING * RADIUS * np.asarray(pose.scale)
    x = np.asarray(pose.x)
    return (x > -margin) & (x < 1.0 + margin)
