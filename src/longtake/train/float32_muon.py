"""Muon for machines without fast bf16, where torch's own would spend most of a training step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


class Float32Muon(torch.optim.Muon):
    """``torch.optim.Muon`` with ``adjust_lr_fn="match_rms_adamw"`` and Nesterov momentum, orthogonalised in float32.

    torch rounds the Newton-Schulz iteration to bf16, which processors without such products do a hundred times more
    slowly than float32. Matrices of one shape are done in one batch. Fields and state are those of torch's.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            alike = defaultdict[torch.Size, list[Tensor]](list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for shape, matrices in alike.items():
                updates = torch.stack([self._update(matrix, group["momentum"]) for matrix in matrices])
                moves = orthogonal(updates, group["ns_coefficients"], group["ns_steps"], group["eps"])
                rate = 0.2 * math.sqrt(max(shape)) * group["lr"]
                for matrix, move in zip(matrices, moves, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(move, alpha=-rate)
        return loss

    def _update(self, matrix: Tensor, momentum: float) -> Tensor:
        state, gradient = self.state[matrix], matrix.grad
        assert gradient is not None
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        state["momentum_buffer"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(state["momentum_buffer"], momentum)


def orthogonal(
    matrices: Float[Tensor, "batch rows columns"], coefficients: tuple[float, float, float], steps: int, eps: float
) -> Float[Tensor, "batch rows columns"]:
    """Each matrix with its singular values near 1: the quintic Newton-Schulz iteration of Muon (Jordan 2024)."""
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    found = matrices.mT if tall else matrices
    found = found / found.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if tall else found
