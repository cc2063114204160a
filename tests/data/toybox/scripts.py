"""Scripts for the tests of Toybox, made once: writing one under shape checks takes tens of milliseconds."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from hypothesis import strategies as st

from longtake.data.toybox import Script, make_script

Recipe: TypeAlias = tuple[int, float | None]
"""Seed and length of a script."""

USUAL = st.tuples(st.integers(0, 11), st.none())
RECIPES = st.tuples(st.integers(0, 11), st.sampled_from((None, 10, 40, 200)))
"""Scripts of all lengths; the last has two acts. Hypothesis wants them written in the test, not in the strategy."""


@cache
def write_script(seed: int, seconds: float | None = None, split: str = "train") -> Script:
    return make_script(seed, seconds=seconds, split=split)


def many_scripts(count: int = 100, *, seconds: float | None = None) -> list[Script]:
    """Enough for statistics."""
    return [write_script(seed, seconds, "test") for seed in range(count)]
