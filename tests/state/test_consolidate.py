"""Consolidation: what is kept, how well it stands for all, and how a memory holds many segments."""

from __future__ import annotations

import itertools
import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from longtake.state.consolidate import (
    Memory,
    concatenated,
    coreset,
    empty_memory,
    kmeans,
    last,
    nearest,
    random,
    sampled,
)

WAYS = {"random": random, "kmeans": kmeans, "coreset": coreset}
PICKS = {"random": random, "coreset": coreset}
sizes = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 24), st.integers(1, 5))


def cloud(layers: int, batch: int, points: int, dim: int, seed: int = 0, *, doubled: bool = False) -> Tensor:
    """Random points in float64; with ``doubled`` many of them are the same."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(layers, batch, points, dim, dtype=torch.float64, generator=generator)
    return found[:, :, torch.randint(0, (points + 2) // 3, (points,), generator=generator)] if doubled else found


def inertia(points: Tensor, centroids: Tensor) -> Tensor:
    """Sum of squared distances to the nearest centroid, for each layer and stream."""
    return torch.cdist(points, centroids).amin(-1).square().sum(-1)


def empty(layers: int = 1, batch: int = 1, dim: int = 1) -> Memory:
    return empty_memory(torch.zeros(layers, batch, 0, dim, dtype=torch.float64))


@given(sizes, st.integers(1, 24), st.integers(0, 2**40), st.booleans(), st.sampled_from(sorted(WAYS)))
def test_sizes_are_bounded_and_seeds_repeat(
    shape: tuple[int, int, int, int], count: int, seed: int, doubled: bool, way: str
) -> None:
    points = cloud(*shape, doubled=doubled)
    once, again = (WAYS[way](points, count, seed=seed) for _ in "ab")
    assert once.shape == (*shape[:2], min(count, shape[2]), shape[3])
    assert torch.equal(once, again)
    assert bool(once.isfinite().all())
    if shape[2] <= count:
        assert torch.equal(once, points)


@given(sizes, st.integers(1, 24), st.integers(0, 2**40), st.booleans(), st.sampled_from(sorted(PICKS)))
def test_kept_are_different_points_in_their_order(
    shape: tuple[int, int, int, int], count: int, seed: int, doubled: bool, way: str
) -> None:
    """A last coordinate that numbers the points, too small to matter for distances, tells which they are."""
    points = cloud(*shape, doubled=doubled)
    numbers = torch.arange(shape[2], dtype=torch.float64).view(1, 1, -1, 1).expand(*shape[:3], 1) * 1e-9
    kept = PICKS[way](torch.cat([points, numbers], dim=-1), count, seed=seed)
    places = (kept[..., -1] * 1e9).round().long()
    assert bool((places.diff(dim=-1) > 0).all())
    assert torch.equal(kept[..., :-1], points.gather(2, places.unsqueeze(-1).expand(*places.shape, shape[3])))


@given(sizes, st.integers(1, 12), st.integers(0, 100), st.booleans())
def test_inertia_never_increases(shape: tuple[int, int, int, int], count: int, seed: int, doubled: bool) -> None:
    points = cloud(*shape, seed, doubled=doubled)
    found = [inertia(points, kmeans(points, count, seed=seed, iterations=number)) for number in range(6)]
    for before, after in itertools.pairwise(found):
        assert bool((after <= before * (1 + 1e-9) + 1e-9).all())


def test_kmeans_starts_from_random_and_ends_at_means() -> None:
    points = cloud(2, 1, 30, 3)
    assert torch.equal(kmeans(points, 4, seed=5, iterations=0), random(points, 4, seed=5))
    centroids = kmeans(points, 4, seed=5, iterations=100)
    labels = nearest(points.flatten(0, 1), centroids.flatten(0, 1))
    for layer in range(2):
        for cluster in range(4):
            mean = points[layer, 0, labels[layer] == cluster].mean(0)
            torch.testing.assert_close(centroids[layer, 0, cluster], mean, rtol=1e-12, atol=1e-12)


def test_empty_cluster_keeps_its_centroid() -> None:
    """Two equal points: the second centroid never wins one."""
    points = torch.tensor([0.0, 0.0, 0.0, 5.0], dtype=torch.float64).view(1, 1, 4, 1)
    for seed in range(8):
        centroids = kmeans(points, 3, seed=seed)
        assert set(centroids.flatten().tolist()) <= {0.0, 5.0}


def test_kmeans_matches_scikit_learn() -> None:
    """From the same start: the same inertia within a hundredth."""
    cluster = pytest.importorskip("sklearn.cluster")
    generator = torch.Generator().manual_seed(3)
    centres = torch.randn(12, 16, generator=generator) * 2
    points = centres[torch.randint(0, 12, (600,), generator=generator)] + torch.randn(600, 16, generator=generator)
    points = points.double().view(1, 1, 600, 16)
    theirs = cluster.KMeans(
        24, init=random(points, 24, seed=1)[0, 0].numpy(), n_init=1, max_iter=5, tol=0.0, algorithm="lloyd"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations need not converge
        theirs.fit(points[0, 0].numpy())
    ours = float(inertia(points, kmeans(points, 24, seed=1)))
    assert ours == pytest.approx(theirs.inertia_, rel=0.01)


def test_coreset_matches_greedy_choice_written_out() -> None:
    points = cloud(1, 1, 40, 3)
    rows = points[0, 0]
    first = int((coreset(points, 1, seed=9)[0, 0] == rows).all(-1).nonzero())
    chosen = [first]
    while len(chosen) < 7:
        chosen.append(int(torch.cdist(rows, rows[chosen]).amin(-1).argmax()))
    assert torch.equal(coreset(points, 7, seed=9)[0, 0], rows[sorted(chosen)])


@pytest.mark.parametrize("way", sorted(WAYS))
def test_stream_does_not_depend_on_its_batch(way: str) -> None:
    points = cloud(3, 2, 20, 4)
    both = WAYS[way](points, 6, seed=2)
    alone = torch.cat([WAYS[way](points[:, row : row + 1], 6, seed=2) for row in range(2)], dim=1)
    torch.testing.assert_close(both, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_no_gradient_flows_through_consolidation(way: str) -> None:
    points = cloud(1, 1, 8, 2).requires_grad_()
    for count in (3, 8):
        assert not WAYS[way](points, count, seed=0).requires_grad


def test_random_draws_every_point_alike() -> None:
    points = torch.arange(10, dtype=torch.float64).view(1, 1, 10, 1)
    counts = torch.zeros(10, dtype=torch.float64)
    for seed in range(3000):
        counts[random(points, 4, seed=seed).flatten().long()] += 1
    assert chi_square(counts, 3000 * 0.4 * (1 - 0.4)) < CHI_SQUARE_9


# --- memories

segments = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def fed(lengths: list[int], step: str, *, limit: int, seed: int = 0) -> Memory:
    """A memory that was offered the numbers 0, 1, 2, ... in segments of these lengths."""
    memory, at = empty(), 0
    for index, length in enumerate(lengths):
        fresh = torch.arange(at, at + length, dtype=torch.float64).view(1, 1, length, 1)
        if step == "last":
            memory = last(memory, fresh, segments=limit)
        elif step == "sampled":
            memory = sampled(memory, fresh, capacity=limit, seed=seed * 1000 + index)
        else:
            memory = concatenated(memory, fresh)
        at += length
    return memory


@given(segments, st.integers(1, 20), st.integers(0, 2**30))
def test_memories_are_bounded_and_in_order(lengths: list[int], limit: int, seed: int) -> None:
    total = sum(lengths)
    everything = fed(lengths, "concat", limit=limit).tokens.flatten().tolist()
    assert everything == list(range(total))
    assert fed(lengths, "last", limit=limit).tokens.flatten().tolist() == everything[-sum(lengths[-limit:]) :]
    kept, again = (fed(lengths, "sampled", limit=limit, seed=seed) for _ in "ab")
    numbers = kept.tokens.flatten().tolist()
    assert len(numbers) == kept.keys.shape[0] == min(limit, total)
    assert numbers == sorted(set(numbers))
    assert torch.equal(kept.tokens, again.tokens)
    assert total > limit or numbers == everything


def test_memory_does_not_hold_on_to_what_it_dropped() -> None:
    memory = fed([4] * 10, "last", limit=2)
    assert memory.tokens.untyped_storage().nbytes() == 8 * 8


CHI_SQUARE_9, CHI_SQUARE_23 = 27.88, 49.73
"""Exceeded once in a thousand times, with 9 and with 23 degrees of freedom."""


def chi_square(counts: Tensor, variance: float) -> float:
    """For counts of draws without replacement; their mean must be right as well."""
    expected = float(counts.mean())
    freedom = (counts.shape[0] - 1) / counts.shape[0]
    return float(((counts - expected) ** 2).sum() * freedom / variance)


def test_sample_of_a_stream_is_uniform() -> None:
    """Uneven segments; each of 24 tokens must stay equally often."""
    counts, trials, capacity = torch.zeros(24, dtype=torch.float64), 3000, 6
    for seed in range(trials):
        counts[fed([1, 7, 3, 2, 8, 3], "sampled", limit=capacity, seed=seed).tokens.flatten().long()] += 1
    assert float(counts.sum()) == trials * capacity
    share = capacity / 24
    assert chi_square(counts, trials * share * (1 - share)) < CHI_SQUARE_23
    assert math.isclose(float(counts.mean()), trials * share)
