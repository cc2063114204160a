"""MeMViT's memory (MC-ViT, appendix C): past activations pooled by a learned convolution instead of consolidated."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class MemoryPool(nn.Module):
    """One layer's depth-wise convolution over a segment's tubelets whose stride is its kernel.

    It begins as the mean. Gradients reach its weights through the segments that read the memory, and end there: what is
    pooled is detached. For an equal-size comparison set ``memory.size`` of the ``mc-*`` variants to this variant's
    ``MCViTConfig.kept_per_segment``.
    """

    def __init__(self, dim: int, kernel: tuple[int, int, int]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((*kernel, dim), 1 / (kernel[0] * kernel[1] * kernel[2])))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(
        self, tokens: Float[Tensor, "batch tokens dim"], times: int, side: int
    ) -> Float[Tensor, "batch pooled dim"]:
        """Pool a grid of ``times`` x ``side`` x ``side`` tokens; where it does not divide, its edge is repeated."""
        time, height, width = self.weight.shape[:3]
        grid = tokens.detach().unflatten(1, (times, side, side)).movedim(-1, 1)
        padding = (0, -side % width, 0, -side % height, 0, -times % time)
        cut = functional.pad(grid, padding, mode="replicate")
        cut = cut.unflatten(4, (-1, width)).unflatten(3, (-1, height)).unflatten(2, (-1, time))
        pooled = torch.einsum("bdtTrRcC,TRCd->btrcd", cut, self.weight) + self.bias
        return pooled.flatten(1, 3)
