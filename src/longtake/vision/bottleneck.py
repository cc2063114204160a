"""The bottleneck transformer (STS, section 3.4): of all tokens of a frame only the last few go on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class BottleneckConfig:
    """Sizes of the bottleneck."""

    num_tokens: int = 16
    """Tokens kept per frame (the paper's N)."""
    dim: int = 128
    """Width of the kept tokens."""
    num_layers: int = 1
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
        self.kept = nn.Parameter(torch.randn(config.num_tokens, config.dim) * 0.5)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, tokens: Float[Tensor, "batch tokens input_dim"]) -> Float[Tensor, "batch kept dim"]:
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


class Block(nn.Module):
    """Pre-norm transformer block whose queries may be a part of the tokens it attends to."""

    def __init__(self, config: BottleneckConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.norm = nn.LayerNorm(config.dim)
        self.query = nn.Linear(config.dim, config.dim)
        self.key_value = nn.Linear(config.dim, 2 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.mlp = nn.Sequential(
            nn.LayerNorm(config.dim),
            nn.Linear(config.dim, config.mlp_ratio * config.dim),
            nn.GELU(),
            nn.Linear(config.mlp_ratio * config.dim, config.dim),
        )

    def forward(
        self, queries: Float[Tensor, "batch queries dim"], tokens: Float[Tensor, "batch tokens dim"]
    ) -> Float[Tensor, "batch queries dim"]:
        attended = attend(*self.heads(queries, tokens))
        queries = queries + self.out(attended.transpose(1, 2).flatten(2))
        return queries + self.mlp(queries)

    def heads(self, queries: Tensor, tokens: Tensor) -> list[Float[Tensor, "batch heads length head_dim"]]:
        """Queries, keys and values of each head."""
        query = self.query(self.norm(queries))
        key, value = self.key_value(self.norm(tokens)).chunk(2, dim=-1)
        return [part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (query, key, value)]


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Scaled dot-product attention.

    torch 2.14's fused kernel is 5 times slower backward than plain products on CPUs in bf16 (640 frames, 16 queries, 80
    keys); to be removed once it is not.
    """
    if query.device.type == "cpu" and torch.is_grad_enabled():
        return ((query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)).softmax(-1) @ value
    return functional.scaled_dot_product_attention(query, key, value)
