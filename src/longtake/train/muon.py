"""A run with Muon for the matrices between hidden states, AdamW for everything else, and a running mean of the weights.

What VLM and MC-ViT training share; STS, whose state space wants rates of its own, has another.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from longtake.errors import ConfigError
from longtake.train.float32_muon import Float32Muon
from longtake.train.loop import Place, Run, has_fast_bf16, learning_rate
from longtake.train.recipe import Recipe

GAINS = ("q_norm.weight", "k_norm.weight")
GAIN_RATE = 10.0
"""Times the rate of all else: they bound how sharply attention can look, and at the common rate grow for hours."""


class MuonRun(Run):
    """One training run in a folder.

    Args:
        recipe: Whose ``average`` is the decay per step of the mean.
        folder: Of the run.
        objective: The model with its training heads.
        inner: Words in the names of modules whose matrices Muon takes.
        scaled: Beginnings or parts of names of what learns at a rate of its own (``descend``).
    """

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        objective: nn.Module,
        *,
        inner: tuple[str, ...],
        scaled: tuple[str, ...] = (),
    ) -> None:
        super().__init__(recipe, folder)
        matrices, rest = split_parameters(objective, inner, scaled)
        kind = torch.optim.Muon if has_fast_bf16() else Float32Muon
        muon = kind(matrices, lr=1.0, adjust_lr_fn="match_rms_adamw")
        adamw = torch.optim.AdamW(rest, lr=1.0, betas=(0.9, 0.98))
        self.objective, self.muon, self.adamw = self.accelerator.prepare(objective, muon, adamw)
        mean = get_ema_multi_avg_fn(recipe.average)
        self.averaged = AveragedModel(self.accelerator.unwrap_model(self.objective), multi_avg_fn=mean)
        self.accelerator.register_for_checkpointing(self.averaged)

    def descend(self, place: Place, losses: dict[str, Tensor], *, scale: float = 1.0) -> dict[str, float]:
        """One step down ``losses["loss"]``; all values for the log.

        Args:
            scale: Of the learning rate of what is ``scaled``.

        Raises:
            ConfigError: The loss is no number any more.
        """
        stage, rate = place.stage, learning_rate(place)
        for optimizer in (self.muon, self.adamw):
            for group in optimizer.param_groups:
                group["lr"] = rate * (scale if group["scaled"] else 1.0) * group["times"]
                group["weight_decay"] = stage.weight_decay
        self.accelerator.backward(losses["loss"])
        norm = self.accelerator.clip_grad_norm_(self.objective.parameters(), 1.0)
        if not torch.isfinite(losses["loss"]):
            raise ConfigError(
                f"loss became {losses['loss'].item()} at step {place.step}; lower learning_rate of {stage.name}"
            )
        for optimizer in (self.muon, self.adamw):
            optimizer.step()
            optimizer.zero_grad()
        self.averaged.update_parameters(self.accelerator.unwrap_model(self.objective))
        values = {name: round(value.item(), 5) for name, value in losses.items()}
        return values | {"gradient_norm": round(float(norm or 0.0), 4), "learning_rate": rate}


def split_parameters(
    objective: nn.Module, inner: tuple[str, ...], scaled: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Groups for Muon and for AdamW, what is ``scaled`` apart."""
    groups: dict[tuple[bool, bool, float], list[Tensor]] = defaultdict(list)
    for name, parameter in objective.named_parameters():
        is_matrix = parameter.ndim == 2 and any(word in name for word in inner)
        times = GAIN_RATE if name.endswith(GAINS) else 1.0
        groups[is_matrix, any(word in name for word in scaled), times].append(parameter)
    built = {key: {"params": found, "scaled": key[1], "times": key[2]} for key, found in groups.items()}
    matrices, rest = ([group for key, group in sorted(built.items()) if key[0] is kind] for kind in (True, False))
    return matrices, rest
