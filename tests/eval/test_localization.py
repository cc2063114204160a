"""tIoU, precision and recall, best tIoU and one-to-one matches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.eval.dvc_fixtures import read, units

from longtake.eval.annotations import TimedSentence
from longtake.eval.localization import (
    f_measure,
    match_one_to_one,
    mean_best_tiou,
    precision_recall,
    spans,
    tiou_matrix,
)

TOLERANCE = 1e-12


def events(*times: tuple[float, float]) -> list[TimedSentence]:
    return [TimedSentence(start_seconds=start, end_seconds=end, text="") for start, end in times]


def tiou(first: tuple[float, float], second: tuple[float, float], *, sort_end_points: bool = False) -> float:
    spanned = (spans(events(time), sort_end_points=sort_end_points) for time in (first, second))
    return float(tiou_matrix(*spanned)[0, 0])


@pytest.mark.parametrize("path", units("iou"))
def test_tiou_matches_public_evaluators(path: Path) -> None:
    for item in read(path)["items"]:
        first, second = tuple(map(float, item["a"])), tuple(map(float, item["b"]))
        assert tiou(first, second) == pytest.approx(item["pdvc"], abs=TOLERANCE, rel=0)
        assert tiou(first, second, sort_end_points=True) == pytest.approx(item["scenic"], abs=TOLERANCE, rel=0)


def test_an_overlap_of_one_half_is_just_below_one_half() -> None:
    assert 0.499999 < tiou((0.0, 100.0), (0.0, 50.0)) < 0.5


def test_inverted_and_empty_segments_overlap_nothing() -> None:
    assert tiou((10.0, 0.0), (0.0, 10.0)) == 0.0
    assert tiou((3.0, 3.0), (3.0, 3.0)) == 0.0
    assert tiou((10.0, 0.0), (0.0, 10.0), sort_end_points=True) == pytest.approx(1.0)


def test_precision_and_recall_are_not_one_to_one() -> None:
    hits = np.array([[True, False, False], [True, False, False]])
    assert precision_recall(hits) == (1.0, pytest.approx(1 / 3))
    assert precision_recall(np.zeros((0, 3), dtype=bool)) == (0.0, 0.0)


def test_f_measure_of_nothing_is_zero() -> None:
    assert f_measure(0.0, 0.0) == 0.0
    assert f_measure(1.0, 0.5) == pytest.approx(2 / 3)


def test_mean_best_tiou_looks_at_each_reference() -> None:
    assert mean_best_tiou(np.array([[0.2, 0.0], [0.8, 0.4]])) == pytest.approx(0.6)
    assert mean_best_tiou(np.zeros((0, 2))) == 0.0


def test_matches_are_taken_greedily_by_tiou() -> None:
    tious = np.array([[0.6, 0.9], [0.55, 0.8]])
    assert match_one_to_one(tious) == [(0, 1), (1, 0)]
    assert match_one_to_one(tious, at_least=0.6) == [(0, 1)]
    assert match_one_to_one(np.zeros((0, 2))) == []


def test_equal_tious_go_to_the_earlier_pair() -> None:
    assert match_one_to_one(np.full((3, 2), 0.7)) == [(0, 0), (1, 1)]


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=6))
def test_matches_use_each_event_once_and_none_below_the_bar(rows: list[list[float]]) -> None:
    tious = np.array(rows)
    matches = match_one_to_one(tious)
    assert all(len({match[side] for match in matches}) == len(matches) for side in (0, 1))
    assert all(tious[match] >= 0.5 for match in matches)
    left_rows = set(range(len(rows))) - {row for row, _ in matches}
    left_columns = set(range(4)) - {column for _, column in matches}
    assert all(tious[row, column] < 0.5 for row in left_rows for column in left_columns)
