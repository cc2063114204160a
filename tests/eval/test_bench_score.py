"""``bench score`` measures a whole evaluation beside the public way; its made-up data are those of any run."""

from __future__ import annotations

import random

import pytest

from longtake.eval import TextTools, bench_score


def test_made_up_stories_are_the_same_each_time() -> None:
    first, again = (bench_score.story(random.Random(1), 3) for _ in range(2))
    assert first == again
    assert len(first) == 3
    assert all(event.start_seconds < event.end_seconds for event in first)
    assert all(7 <= len(event.text.split()) <= 18 for event in first)


def test_ours_and_the_public_way_are_timed(tools: TextTools, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tools.unavailable == {}
    monkeypatch.setattr(bench_score, "LONG_STORY", 5)
    monkeypatch.setattr(bench_score, "SAMPLE", 1)
    found = bench_score.measure_score(2)
    assert found["raw"]["metrics"]["meteor"] > 0
    assert found["raw"]["long_story"]["soda_c"] > 0
    assert found["raw"]["public_videos"] == 1
    assert found["ratios"]["public_over_ours"] > 0
