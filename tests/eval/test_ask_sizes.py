"""Equal cost: what is counted, and the budget that it pays for."""

from __future__ import annotations

from fractions import Fraction

import pytest

from longtake.errors import ConfigError
from longtake.eval.ask import Marked
from longtake.eval.ask_data import AskedQuestion
from longtake.eval.ask_sizes import LARGE, LARGE_FULL, SMALL, Cost, SizesReport, markdown, trials_of


def cost(layers: int, chunks: int = 40) -> Cost:
    return Cost(
        first=layers * (1000 + 4 * 100), per_key=layers * 4 * 10, chunk_tokens=10, chunks=chunks, vision=7, parameters=5
    )


def test_full_attention_counts_every_pair_that_is_seen() -> None:
    one = cost(1)
    tokens = one.tokens
    assert one.at(None) == 40 * 1000 + 4 * tokens * (tokens + 1) // 2
    assert one.at(tokens) == one.at(None)
    assert one.at(0) == 40 * (1000 + 4 * 55)


@pytest.mark.parametrize("layers", [4, 5])
def test_the_budget_is_the_largest_that_costs_no_more(layers: int) -> None:
    small, large = cost(layers), cost(6)
    budget = large.budget_for(small.at(None))
    assert large.at(budget) <= small.at(None) < large.at(budget + 1)
    wanted = trials_of(small, large)
    assert wanted[LARGE][0].share == Fraction(budget, large.tokens)
    assert wanted[LARGE][1] == large.at(budget)
    assert wanted[LARGE_FULL][1] == large.at(None)


def test_a_small_model_that_pays_for_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="take longer videos"):
        trials_of(cost(1, chunks=4), cost(6, chunks=4))


def test_the_table_says_what_each_costs() -> None:
    question = AskedQuestion(type="local", question="?", answer="yes")
    right, wrong = (Marked(video="a", question=question, said=said) for said in ("yes", "no"))
    wanted = trials_of(cost(5), cost(6))
    report = SizesReport(
        small=cost(5),
        large=cost(6),
        marks={SMALL: [wrong], LARGE: [right], LARGE_FULL: [right]},
        operations={name: operations for name, (_, operations) in wanted.items()},
        share=wanted[LARGE][0].share,
        blind=[wrong],
    )
    told = markdown(report, "a test")
    assert "| small, full | 0.000 (0.000 to 0.000) | 0.00 | 1.00 | 1.00 |" in told
    assert "+1.000" in told
    assert f"{report.budget} of 400 tokens" in told
