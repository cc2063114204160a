"""Late temporal fusion (MC-ViT, appendix C): one perceiver layer over the outputs of all segments."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from longtake.vision.block import Block


class LateFusion(nn.Module):
    """Learned queries attend to all output tokens and to each other; their mean stands for the video."""

    def __init__(self, *, dim: int, num_heads: int, mlp_dim: int, queries: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(queries, dim) * 0.02)
        self.block = Block(dim=dim, num_heads=num_heads, mlp_dim=mlp_dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, outputs: Float[Tensor, "batch outputs dim"]) -> Float[Tensor, "batch dim"]:
        queries = self.queries.expand(outputs.shape[0], -1, -1)
        return self.norm(self.block(queries, torch.cat([outputs, queries], dim=1))).mean(1)
