"""The pre-norm transformer block of all our vision models: what is attended to may be more than what asks.

The bottleneck asks with a part of its tokens; MC-ViT lets a segment's tokens attend to themselves and to a memory.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from longtake.errors import ConfigError

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "relu": nn.ReLU,
}
"""Of the MLP, by name; ViViT has ``gelu_tanh``."""
FEW_KEYS = 2048
"""Up to so many keys plain products are faster than the fused kernel when training on a CPU, and fit."""


class Block(nn.Module):
    """Attention, then an MLP, each behind a layer norm and beside the identity.

    ``y = MCA(LN(queries), LN(tokens)) + queries``, ``MLP(LN(y)) + y``: equation 4 of MC-ViT, if ``tokens`` are the
    queries followed by a memory; equation 2 and 3 (ViViT) without one.
    """

    def __init__(
        self,
        *,
        dim: int,
        num_heads: int,
        mlp_dim: int,
        activation: str = "gelu",
        norm_eps: float = 1e-5,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__()
        if dim % num_heads:
            raise ConfigError(f"width {dim} of a block does not divide by its {num_heads} heads")
        if activation not in ACTIVATIONS:
            raise ConfigError(f"activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}")
        self.num_heads = num_heads
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.query = nn.Linear(dim, dim, bias=qkv_bias)
        self.key_value = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim, eps=norm_eps),
            nn.Linear(dim, mlp_dim),
            ACTIVATIONS[activation](),
            nn.Linear(mlp_dim, dim),
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

    torch 2.14's fused kernel is 2 to 5 times slower than plain products when it trains in bf16 on CPUs (3.3 times with
    288 queries and 432 keys; in float32 they are alike); to be removed once it is not.
    """
    if query.device.type == "cpu" and torch.is_grad_enabled() and key.shape[-2] <= FEW_KEYS:
        return ((query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)).softmax(-1) @ value
    return functional.scaled_dot_product_attention(query, key, value)
