"""Tokens first or channels first: the copies between the two, which cost more than the mathematics between them.

torch copies a plain 2-d transpose by cache blocks and any other permutation element by element: *measured* 3.7 ms
against 33 ms for 256 x 128 tokens of 128 channels, one thread.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def channels_first(x: Float[Tensor, "batch dim time"]) -> Float[Tensor, "dim batch time"]:
    """Fast if ``x`` is a transposed "batch time dim" tensor."""
    batch, dim, time = x.shape
    if x.stride(1) != 1:
        return x.permute(1, 0, 2)
    return _transpose(x.transpose(1, 2).reshape(batch * time, dim)).view(dim, batch, time)


def channels_last(x: Float[Tensor, "dim batch time"]) -> Float[Tensor, "batch dim time"]:
    """A transposed "batch time dim" tensor."""
    dim, batch, time = x.shape
    return _transpose(x.reshape(dim, batch * time)).view(batch, time, dim).transpose(1, 2)


class _Transpose(torch.autograd.Function):
    """Transposed copy whose gradient is one too: torch copies plain 2-d transposes by cache blocks, and the matrix
    products of the backward pass would each copy a gradient that lies across their rows."""

    @staticmethod
    def forward(matrix: Float[Tensor, "row column"]) -> Float[Tensor, "column row"]:
        return matrix.t().contiguous()

    @staticmethod
    def setup_context(ctx: object, inputs: tuple[Tensor], output: Tensor) -> None:
        """Nothing is saved."""

    @staticmethod
    def backward(ctx: object, *grad_outputs: Tensor) -> Tensor:
        return _transpose(grad_outputs[0])


def _transpose(matrix: Float[Tensor, "row column"]) -> Float[Tensor, "column row"]:
    transposed: Tensor = _Transpose.apply(matrix)  # pyright: ignore[reportUnknownMemberType]
    return transposed
