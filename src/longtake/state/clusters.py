"""A memory of at most so many cluster centres, into which each frame's tokens are merged (Streaming DVC).

A centre weighs as much as the tokens that it stands for, so what was seen often moves little. Frames are merged one by
one, so the memory does not depend on where a stream is cut into segments. Gradients flow through the means.

Axes: ``clusters`` centres in memory, ``points`` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from longtake.state.consolidate import nearest
from longtake.state.ssm import full_precision


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """What a stream is remembered by."""

    tokens: Float[Tensor, "batch clusters dim"]
    weights: Float[Tensor, "batch clusters"]
    """How many tokens each centre is the mean of."""
    places: Float[Tensor, "batch clusters"]
    """The mean of their places in time, in whatever unit they were given."""


def no_clusters(batch: int, like: Float[Tensor, "*axes dim"]) -> Clusters:
    """The memory of streams of which nothing has been seen, with the width, type and device of ``like``."""
    nothing = like.new_zeros(batch, 0)
    return Clusters(tokens=like.new_zeros(batch, 0, like.shape[-1]), weights=nothing, places=nothing)


def merged(
    memory: Clusters,
    frame: Float[Tensor, "batch points dim"],
    place: float,
    *,
    count: int,
    iterations: int,
    place_weight: float = 0.0,
) -> Clusters:
    """The memory with the tokens of one more frame in it: all of them while there is room, then weighted k-means.

    It starts from the centres that there are. One that nothing is nearest to stays where it was and weighs nothing.

    Args:
        place: Of the frame in time.
        count: Most centres.
        iterations: Of Lloyd's algorithm.
        place_weight: How far apart one unit of time puts two tokens; 0: they are told apart by what they are alone.
    """
    fresh = frame.new_ones(frame.shape[:2])
    rows = torch.cat([frame, place * fresh.unsqueeze(-1)], dim=-1)
    rows = torch.cat([torch.cat([memory.tokens, memory.places.unsqueeze(-1)], dim=-1), rows], dim=1)
    weights = torch.cat([memory.weights, fresh], dim=1)
    if rows.shape[1] > count:
        with full_precision(rows):
            rows, weights = _lloyd(rows, weights, count, iterations, place_weight)
    return Clusters(tokens=rows[..., :-1], weights=weights, places=rows[..., -1])


def shifted(memory: Clusters, by: float) -> Clusters:
    """All places moved by ``by``, none below 0."""
    return replace(memory, places=(memory.places + by).clamp(min=0))


def _lloyd(
    points: Float[Tensor, "batch points width"],
    weights: Float[Tensor, "batch points"],
    count: int,
    iterations: int,
    place_weight: float,
) -> tuple[Float[Tensor, "batch clusters width"], Float[Tensor, "batch clusters"]]:
    """Centres and their weights; the last column of a point is its place."""
    scale = points.new_ones(points.shape[-1])
    scale[-1] = place_weight
    centres, sizes = points[:, :count], weights[:, :count]
    for _ in range(iterations):
        labels = nearest((points * scale).detach(), (centres * scale).detach())
        sizes = torch.zeros_like(sizes).scatter_add(1, labels, weights)
        owners = labels.unsqueeze(-1).expand(-1, -1, points.shape[-1])
        sums = torch.zeros_like(centres).scatter_add(1, owners, points * weights.unsqueeze(-1))
        whole = sizes.unsqueeze(-1)
        centres = torch.where(whole > 0, sums / whole.clamp(min=1), centres)
    return centres, sizes
