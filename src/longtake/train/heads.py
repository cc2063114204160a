"""Losses of training's own heads on what is true of the toy at each token (``Truth``)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from longtake.data.toybox.recall import HOW_OFTEN
from longtake.data.toybox.story import REGIONS
from longtake.data.toybox.world import ACTIONS, COLOURS, KINDS
from longtake.train.truth import IGNORED, MOST_COUNTS, MOST_VISITS, Truth

SIZES = {
    "kind": len(KINDS) + 1,
    "colour": len(COLOURS),
    "action": len(ACTIONS),
    "offset": 2,
    "region": len(REGIONS),
    "begins": len(ACTIONS),
    "before": len(ACTIONS),
    "counts": len(HOW_OFTEN) * MOST_COUNTS,
    "visits": MOST_VISITS,
    "done": len(ACTIONS),
}
"""Outputs of each head."""
WEIGHTS = {
    "kind": 1.0,
    "colour": 1.0,
    "action": 1.0,
    "offset": 2.0,
    "region": 0.5,
    "begins": 1.0,
    "before": 1.0,
    "counts": 3.0,
    "visits": 0.5,
    "done": 3.0,
}
EMPTY_WEIGHT = 0.2
"""Of tokens that show no toy in the loss on kinds: they are most of them."""


def width(heads: tuple[str, ...]) -> int:
    """Outputs of all ``heads`` together."""
    return sum(SIZES[name] for name in heads)


def token_losses(said: Float[Tensor, "*batch token said"], truth: Truth, heads: tuple[str, ...]) -> dict[str, Tensor]:
    """Weighted loss of each head; ``said`` holds their outputs side by side."""
    losses: dict[str, Tensor] = {}
    there = truth.kind < len(KINDS)
    for name, part in zip(heads, said.float().split([SIZES[name] for name in heads], dim=-1), strict=True):
        target = getattr(truth, name)
        if name == "offset":
            loss = functional.smooth_l1_loss(part[there], target[there], beta=0.1)
        elif name == "done":
            loss = functional.binary_cross_entropy_with_logits(part[there], target[there])
        elif name == "kind":
            weight = torch.ones(len(KINDS) + 1, device=part.device)
            weight[-1] = EMPTY_WEIGHT
            loss = functional.cross_entropy(part.flatten(0, -2), target.flatten(), weight=weight)
        else:
            if name == "counts":
                part = part.unflatten(-1, (len(HOW_OFTEN), -1))
            loss = functional.cross_entropy(part.flatten(0, -2), target.flatten(), ignore_index=IGNORED)
        losses[name] = WEIGHTS[name] * loss
    return losses
