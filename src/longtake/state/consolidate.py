"""Memory consolidation (MC-ViT, section 3.2): a segment's activations become few, and a memory holds those of many.

Two choices that combine freely. How ``count`` tokens stand for a segment: ``random``, ``kmeans``, ``coreset``. What is
kept of all segments: everything (``concatenated``), the last ones (``last``), or a uniform sample (``sampled``; the
paper's "global"). All are pure functions on values: the same seed gives the same result.

Axes: ``layers`` transformer layers, ``batch`` streams, ``points`` tokens of one segment, ``kept`` tokens in memory.
Draws are made per layer and shared by the streams of a batch, so a stream never depends on its neighbours. No gradient
flows through any of this: what is kept is detached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

KMEANS_ITERATIONS = 5
"""Of Lloyd's algorithm, as in the paper."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """Consolidated activations of past segments, oldest first."""

    tokens: Float[Tensor, "layers batch kept dim"]
    keys: Float64[Tensor, " sampled"]
    """The number drawn for each kept token; only ``sampled`` draws."""
    lengths: tuple[int, ...] = ()
    """Tokens kept of each segment; only ``last`` needs and fills it."""


def empty_memory(like: Float[Tensor, "layers batch zero dim"]) -> Memory:
    """The memory of a stream of which nothing has been seen, with the sizes, type and device of ``like``."""
    return Memory(tokens=like, keys=torch.zeros(0, dtype=torch.float64, device=like.device))


# --- one segment: many tokens to few


def random(
    points: Float[Tensor, "layers batch points dim"], count: int, *, seed: int
) -> Float[Tensor, "layers batch chosen dim"]:
    """``count`` different tokens drawn uniformly, in their order of time; all of them if there are no more.

    Equation: 5.
    """
    points = points.detach()
    if points.shape[2] <= count:
        return points
    return _take(points, _draw(points, count, seed).sort(-1).values)


def kmeans(
    points: Float[Tensor, "layers batch points dim"],
    count: int,
    *,
    seed: int,
    iterations: int = KMEANS_ITERATIONS,
) -> Float[Tensor, "layers batch chosen dim"]:
    """The centroids of ``count`` clusters after some iterations of Lloyd's from a random start.

    It starts from ``random``'s tokens. A centroid that no token is nearest to stays where it was, so inertia never
    grows. With no more tokens than ``count`` the tokens themselves come back.

    Source: section 3.2, MC-ViT-KM.
    """
    centroids = random(points, count, seed=seed)
    if points.shape[2] <= count:
        return centroids
    rows, starts = points.detach().flatten(0, 1), centroids.flatten(0, 1)
    for _ in range(iterations):
        starts = _means(rows, nearest(rows, starts), starts)
    return starts.view_as(centroids)


def coreset(
    points: Float[Tensor, "layers batch points dim"], count: int, *, seed: int
) -> Float[Tensor, "layers batch chosen dim"]:
    """``count`` different tokens, each the farthest from those chosen before it; the first is drawn.

    Equation: 6 and 7 (greedy farthest point).
    """
    points = points.detach()
    if points.shape[2] <= count:
        return points
    first = _draw(points, 1, seed).flatten(0, 1)
    # one row after the other: on a CPU a row stays in the cache, all of them do not
    chosen = [farthest(row, start, count) for row, start in zip(points.flatten(0, 1), first, strict=True)]
    return _take(points, torch.stack(chosen).view(*points.shape[:2], count))


def farthest(
    points: Float[Tensor, "*rows points dim"], first: Int64[Tensor, "*rows 1"], count: int
) -> Int64[Tensor, "*rows count"]:
    """Places of ``count`` points, each the farthest from those before it, in their order of time; of fewer, some again.

    Equation: 6 and 7, as matrix-vector products.
    """
    squares = points.square().sum(-1)
    newest, chosen, distance = first, [first], torch.full_like(squares, torch.inf)
    for _ in range(count - 1):
        product = (points @ _take(points, newest).mT).squeeze(-1)
        to_newest = squares - 2 * product + squares.gather(-1, newest)
        # rounding can make a distance negative; -1 is kept for what is chosen already
        distance = torch.minimum(distance, to_newest.clamp(min=0)).scatter(-1, newest, -1.0)
        newest = distance.argmax(-1, keepdim=True)
        chosen.append(newest)
    return torch.cat(chosen, dim=-1).sort().values


def nearest(
    points: Float[Tensor, "rows points dim"], centroids: Float[Tensor, "rows clusters dim"]
) -> Int64[Tensor, "rows points"]:
    """Which centroid each point is nearest to; |point|^2 is the same for all of them and is left out."""
    halves = centroids.square().sum(-1).mul_(-0.5).unsqueeze(1)
    return torch.baddbmm(halves, points, centroids.transpose(1, 2)).argmax(-1)


# --- all segments: what is kept


def concatenated(memory: Memory, fresh: Float[Tensor, "layers batch chosen dim"]) -> Memory:
    """Everything: grows with the stream."""
    return replace(memory, tokens=torch.cat([memory.tokens, fresh], dim=2))


def last(memory: Memory, fresh: Float[Tensor, "layers batch chosen dim"], *, segments: int) -> Memory:
    """What was consolidated of the last ``segments`` segments (table 1)."""
    lengths = (*memory.lengths, fresh.shape[2])[-segments:]
    tokens = torch.cat([memory.tokens, fresh], dim=2)
    return replace(memory, tokens=tokens[:, :, tokens.shape[2] - sum(lengths) :].clone(), lengths=lengths)


def sampled(memory: Memory, fresh: Float[Tensor, "layers batch chosen dim"], *, capacity: int, seed: int) -> Memory:
    """A uniform sample of at most ``capacity`` of all tokens ever offered, in their order of time (table 1, "global").

    Each token draws a number once and those with the smallest numbers stay: a reservoir that is exactly uniform,
    whatever the segments' lengths. ``seed`` must differ from segment to segment.
    """
    tokens = torch.cat([memory.tokens, fresh], dim=2)
    keys = torch.cat([memory.keys, _uniform((fresh.shape[2],), seed).to(memory.keys.device)])
    if keys.shape[0] > capacity:
        stay = keys.topk(capacity, largest=False).indices.sort().values
        tokens, keys = tokens[:, :, stay], keys[stay]
    return replace(memory, tokens=tokens, keys=keys)


# --- draws and sums


def _uniform(shape: tuple[int, ...], seed: int) -> Tensor:
    """Numbers in [0, 1), drawn on the CPU, so that every device gets the same ones."""
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _draw(points: Tensor, count: int, seed: int) -> Int64[Tensor, "layers batch count"]:
    """``count`` different places per layer, the same for all streams of the batch."""
    layers, batch, num_points = points.shape[:3]
    places = _uniform((layers, num_points), seed).topk(count).indices
    return places.to(points.device).unsqueeze(1).expand(-1, batch, -1)


def _take(points: Float[Tensor, "*rows points dim"], places: Int64[Tensor, "*rows count"]) -> Tensor:
    return points.gather(-2, places.unsqueeze(-1).expand(*places.shape, points.shape[-1]))


def _means(points: Tensor, labels: Tensor, before: Tensor) -> Tensor:
    """The mean of each cluster's points; an empty cluster keeps its centroid."""
    rows, clusters, dim = before.shape
    places = (labels + clusters * torch.arange(rows, device=labels.device).unsqueeze(1)).flatten()
    sums = points.new_zeros(rows * clusters, dim).index_add_(0, places, points.flatten(0, 1))
    sizes = torch.bincount(places, minlength=rows * clusters).view(rows, clusters, 1)
    return torch.where(sizes > 0, sums.view_as(before) / sizes.clamp(min=1), before)
