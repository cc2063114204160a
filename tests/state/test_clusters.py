"""The memory of cluster centres: room first, then weighted k-means, frame by frame."""

from __future__ import annotations

import pytest
import torch

from longtake.state.clusters import Clusters, merged, no_clusters, shifted


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def filled(count: int, batch: int = 1, dim: int = 5) -> Clusters:
    """A memory with uneven weights."""
    weights = torch.arange(1.0, count + 1, dtype=torch.float64).expand(batch, -1)
    places = torch.linspace(0, 9, count, dtype=torch.float64).expand(batch, -1)
    return Clusters(tokens=tokens(batch, count, dim, seed=1), weights=weights, places=places)


def by_hand(
    points: torch.Tensor, weights: torch.Tensor, count: int, iterations: int
) -> tuple[list[torch.Tensor], list[float]]:
    """Weighted Lloyd's for one stream, written out."""
    centres, sizes = [point.clone() for point in points[:count]], weights[:count].tolist()
    for _ in range(iterations):
        apart = torch.stack([(points - centre).square().sum(-1) for centre in centres])
        labels = apart.argmin(0).tolist()
        for centre in range(count):
            own = [index for index, label in enumerate(labels) if label == centre]
            sizes[centre] = sum(float(weights[index]) for index in own)
            if own:
                centres[centre] = sum(weights[index] * points[index] for index in own) / sizes[centre]
    return centres, sizes


def test_everything_is_kept_while_there_is_room() -> None:
    memory = no_clusters(2, tokens(5))
    memory = merged(memory, tokens(2, 3, 5), 4.0, count=6, iterations=2)
    memory = merged(memory, tokens(2, 3, 5, seed=1), 5.0, count=6, iterations=2)
    assert torch.equal(memory.tokens, torch.cat([tokens(2, 3, 5), tokens(2, 3, 5, seed=1)], dim=1))
    assert memory.places.tolist() == [[4.0] * 3 + [5.0] * 3] * 2
    assert memory.weights.unique().tolist() == [1.0]


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_merging_matches_weighted_kmeans_written_out(iterations: int) -> None:
    memory, frame = filled(6), tokens(1, 9, 5)
    after = merged(memory, frame, 7.0, count=6, iterations=iterations)
    weights = torch.cat([memory.weights[0], torch.ones(9, dtype=torch.float64)])
    centres, sizes = by_hand(torch.cat([memory.tokens[0], frame[0]]), weights, 6, iterations)
    torch.testing.assert_close(after.tokens[0], torch.stack(centres), rtol=1e-10, atol=1e-10)
    assert after.weights[0].tolist() == pytest.approx(sizes)


def test_weights_and_their_mean_place_are_those_of_all_tokens_ever_seen() -> None:
    memory = no_clusters(1, tokens(5))
    for number in range(30):
        memory = merged(memory, tokens(1, 4, 5, seed=number), float(number), count=7, iterations=2)
    assert float(memory.weights.sum()) == 30 * 4
    assert float((memory.weights * memory.places).sum() / memory.weights.sum()) == pytest.approx(sum(range(30)) / 30)


def test_what_was_seen_often_moves_little() -> None:
    still, frame = tokens(1, 1, 5), tokens(1, 1, 5, seed=1)
    shares = []
    for weight in (1.0, 99.0):
        one = torch.full((1, 1), weight, dtype=torch.float64)
        after = merged(Clusters(tokens=still, weights=one, places=0 * one), frame, 0.0, count=1, iterations=2)
        shares.append(float((after.tokens - still).norm() / (frame - still).norm()))
    assert shares == pytest.approx([1 / 2, 1 / 100])


def test_streams_of_a_batch_do_not_know_each_other() -> None:
    both, frame = filled(6, batch=2), tokens(2, 9, 5)
    after = merged(both, frame, 1.0, count=6, iterations=2)
    for row in range(2):
        part = Clusters(tokens=both.tokens[row, None], weights=both.weights[row, None], places=both.places[row, None])
        alone = merged(part, frame[row, None], 1.0, count=6, iterations=2)
        torch.testing.assert_close(after.tokens[row], alone.tokens[0], rtol=1e-10, atol=1e-10)


def test_place_keeps_equal_tokens_of_other_times_apart_where_it_counts() -> None:
    early, late = tokens(1, 1, 5), tokens(1, 1, 5) + 0.1
    for weight, places in ((0.0, [0.0, 10.5]), (3.0, [0.5, 10.0])):
        memory = no_clusters(1, early)
        for place, frame in ((0.0, early), (10.0, late), (11.0 if weight == 0 else 1.0, late)):
            memory = merged(memory, frame, place, count=2, iterations=2, place_weight=weight)
        assert memory.places.tolist()[0] == pytest.approx(places)


def test_centre_that_nothing_is_nearest_to_stays_and_weighs_nothing() -> None:
    same = tokens(1, 1, 5)
    memory = merged(no_clusters(1, same), same.expand(-1, 3, -1), 0.0, count=2, iterations=2)
    torch.testing.assert_close(memory.tokens, same.expand(-1, 2, -1), rtol=1e-12, atol=1e-12)
    assert memory.weights.tolist() == [[3.0, 0.0]]


def test_places_move_and_end_at_0() -> None:
    assert shifted(filled(4), -2).places.tolist() == [[0.0, 1.0, 4.0, 7.0]]


def test_gradients_reach_the_tokens_through_the_means() -> None:
    frame = tokens(1, 9, 5).requires_grad_()
    merged(filled(6), frame, 7.0, count=6, iterations=2).tokens.sum().backward()
    assert frame.grad is not None
    assert frame.grad.abs().sum() > 0
