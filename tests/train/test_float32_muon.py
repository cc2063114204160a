"""Muon in float32: torch's own steps, as far as its bf16 goes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longtake.train.float32_muon import Float32Muon, orthogonal

SHAPES = ((6, 6), (6, 24), (24, 6), (6, 24))
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def stepped(kind: type[torch.optim.Muon], steps: int, **fields: Any) -> tuple[list[Tensor], dict[str, Any]]:
    torch.manual_seed(3)
    matrices = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    optimizer = kind(matrices, adjust_lr_fn="match_rms_adamw", **fields)
    for _ in range(steps):
        for matrix in matrices:
            matrix.grad = torch.randn_like(matrix)
        optimizer.step()
    return [matrix.detach() for matrix in matrices], optimizer.state_dict()


@pytest.mark.parametrize("fields", [{"lr": 0.1}, {"lr": 0.02, "weight_decay": 0.5, "momentum": 0.8}])
def test_steps_are_torchs(fields: dict[str, float]) -> None:
    ours, our_state = stepped(Float32Muon, 5, **fields)
    torchs, their_state = stepped(torch.optim.Muon, 5, **fields)
    for mine, other in zip(ours, torchs, strict=True):
        # what bf16 rounds off, five steps of it
        torch.testing.assert_close(mine, other, atol=0.15 * fields["lr"], rtol=0.0)
    for number in our_state["state"]:
        torch.testing.assert_close(our_state["state"][number], their_state["state"][number])
    assert our_state["param_groups"] == their_state["param_groups"]


def test_a_matrix_without_gradient_stays() -> None:
    matrix = nn.Parameter(torch.ones(2, 3))
    Float32Muon([matrix], lr=0.1).step()
    assert torch.equal(matrix, torch.ones(2, 3))


def test_closure_is_called_with_gradients() -> None:
    matrix = nn.Parameter(torch.eye(3))
    optimizer = Float32Muon([matrix], lr=0.1)

    def closure() -> float:
        loss = matrix.square().sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 3.0
    assert not torch.equal(matrix.detach(), torch.eye(3))


@pytest.mark.parametrize("shape", [(5, 5), (4, 9), (9, 4)])
def test_singular_values_are_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    found = orthogonal(torch.randn(3, *shape, dtype=torch.float64), COEFFICIENTS, 5, 1e-7)
    values = torch.linalg.svdvals(found)
    assert values.max() < 1.3
    assert values.mean() > 0.6
