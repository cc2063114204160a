"""Order-preserving matching against the public numbers, against brute force, and on long stories."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tests.eval.dvc_fixtures import read, units

from longtake.eval.soda import match_in_order, story_scores

TOLERANCE = 1e-12


@pytest.mark.parametrize("path", units("dp"))
def test_matching_matches_public_numbers(path: Path) -> None:
    for item in read(path)["items"]:
        best, pairs = match_in_order(np.array(item["matrix"]))
        assert best == pytest.approx(item["max_score"], abs=TOLERANCE, rel=0)
        assert [list(pair) for pair in pairs] == item["pairs"]


def best_by_trying_everything(scores: np.ndarray) -> float:
    rows, columns = scores.shape
    return max(
        sum(scores[row, column] for row, column in zip(chosen_rows, chosen_columns, strict=True))
        for size in range(min(rows, columns) + 1)
        for chosen_rows in combinations(range(rows), size)
        for chosen_columns in combinations(range(columns), size)
    )


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=4), elements=st.floats(0, 1)))
def test_matching_is_the_best_that_keeps_the_order(scores: np.ndarray) -> None:
    best, pairs = match_in_order(scores)
    assert best == pytest.approx(best_by_trying_everything(scores))
    assert pairs == sorted(pairs)
    assert all(len({pair[side] for pair in pairs}) == len(pairs) >= 1 for side in (0, 1))


def test_crossing_pairs_are_not_both_taken() -> None:
    assert match_in_order(np.array([[0.0, 1.0], [0.9, 0.0]]))[0] == 1.0


def test_thousands_of_events_need_no_recursion() -> None:
    scores = np.eye(3000, 2000)
    best, pairs = match_in_order(scores)
    assert best == 2000.0
    assert pairs[:2] == [(0, 0), (1, 1)]


def test_no_events_match_nothing() -> None:
    assert match_in_order(np.zeros((3, 0))) == (0.0, [])
    assert story_scores(0.0, predictions=0, references=3) == (0.0, 0.0, 0.0)
    assert story_scores(1.0, predictions=2, references=4) == (0.5, 0.25, pytest.approx(1 / 3))
