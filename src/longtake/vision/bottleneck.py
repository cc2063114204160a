"""The bottleneck transformer (STS, section 3.4): of all tokens of a frame only the last few go on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from longtake.errors import ConfigError
from longtake.vision.block import Block


@dataclass(frozen=True, kw_only=True)
class BottleneckConfig:
    """Sizes of the bottleneck."""

    num_tokens: int = 16
    """Tokens kept per frame (the paper's N)."""
    dim: int = 128
    """Width of the kept tokens."""
    num_layers: int = 1
    """0: no bottleneck; all tokens of a frame go on, brought to width ``dim``."""
    num_heads: int = 4
    mlp_ratio: int = 2
    """Width of the MLP in units of ``dim``."""

    def __post_init__(self) -> None:
        if self.dim % self.num_heads:
            raise ConfigError(f"bottleneck dim {self.dim} does not divide by num_heads {self.num_heads}")


class Bottleneck(nn.Module):
    """Learned tokens are appended to the frame's own, run through a transformer, and only they are kept.

    The last block computes queries for the kept tokens alone: the same result for less work.
    """

    def __init__(self, config: BottleneckConfig, input_dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(input_dim, config.dim) if input_dim != config.dim else nn.Identity()
        self.kept = nn.Parameter(torch.randn(config.num_tokens if config.num_layers else 0, config.dim) * 0.5)
        self.blocks = nn.ModuleList(
            Block(dim=config.dim, num_heads=config.num_heads, mlp_dim=config.mlp_ratio * config.dim)
            for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, tokens: Float[Tensor, "batch tokens input_dim"]) -> Float[Tensor, "batch kept dim"]:
        if not self.blocks:
            return self.norm(self.project(tokens))
        hidden, num_kept = self.before_last(tokens), self.kept.shape[0]
        return self.norm(self.blocks[-1](hidden[:, -num_kept:], hidden))

    def attention(
        self, tokens: Float[Tensor, "batch tokens input_dim"]
    ) -> Float[Tensor, "batch heads kept all_tokens"]:
        """Where the kept tokens look in the last block: over the frame's tokens, then over each other."""
        hidden, num_kept = self.before_last(tokens), self.kept.shape[0]
        query, key, _ = self.blocks[-1].heads(hidden[:, -num_kept:], hidden)  # pyright: ignore[reportCallIssue]
        return ((query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)).softmax(-1)

    def before_last(self, tokens: Float[Tensor, "batch tokens input_dim"]) -> Float[Tensor, "batch all_tokens dim"]:
        kept = self.kept.expand(tokens.shape[0], -1, -1)
        hidden = torch.cat([self.project(tokens), kept.to(tokens.dtype)], dim=1)
        for block in self.blocks[:-1]:
            hidden = block(hidden, hidden)
        return hidden
