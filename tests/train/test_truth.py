"""What is true of the toys at each token, against the script that it comes from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from longtake.data.toybox import COLOURS, KINDS, make_script
from longtake.data.toybox.recall import HOW_OFTEN
from longtake.data.toybox.world import ACTIONS
from longtake.train.truth import IGNORED, truth_at

STEP = 1.25


@pytest.mark.parametrize("seed", range(4))
def test_what_is_begun_adds_up_to_the_counts(seed: int) -> None:
    script = make_script(seed, seconds=90, split="train")
    truth = truth_at(script, np.arange(0.5, 90, STEP), side=9)
    there = truth.kind < len(KINDS)
    name = truth.kind * len(COLOURS) + truth.colour
    agree: list[bool] = []
    for toy in torch.unique(name[there]):
        mine = there & (name == toy)
        for slot, action in enumerate(HOW_OFTEN):
            begun = ((truth.begins == ACTIONS.index(action)) & mine).any(1).int().cumsum(0)
            counted = torch.where(mine, truth.counts[..., slot], 0).amax(1)
            shown = mine.any(1)
            assert (begun[shown] <= counted[shown]).all()  # another toy may stand in front where it begins
            agree += (begun[shown] == counted[shown]).tolist()
    assert np.mean(agree) > 0.9


def test_nothing_begins_where_no_toy_is() -> None:
    truth = truth_at(make_script(5, seconds=60, split="train"), np.arange(0.5, 60, STEP), side=3)
    assert ((truth.begins == IGNORED) == (truth.kind == len(KINDS))).all()
    assert (truth.begins > 0).any()
