"""A video transformer with joint space-time attention whose layers also attend to a memory (MC-ViT, section 3.2).

Without memory it is ViViT: every form of MC-ViT and its baselines share these weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from longtake.vision.block import Block
from longtake.vision.tubelet import TubeletConfig, TubeletEmbedding

Keep: TypeAlias = Callable[[Tensor, int], Tensor]
"""What is kept of one layer's inputs ``(batch, tokens, dim)``, class token left out; told the layer's number."""


@dataclass(frozen=True, kw_only=True)
class VideoTransformerConfig:
    """Sizes of the encoder."""

    tubelet: TubeletConfig = field(default_factory=TubeletConfig)
    dim: int = 192
    num_layers: int = 6
    num_heads: int = 3
    mlp_dim: int = 768
    activation: str = "gelu"
    """Of the MLPs: ``gelu``, ``gelu_tanh`` or ``relu``."""
    norm_eps: float = 1e-6
    qkv_bias: bool = True


class VideoTransformer(nn.Module):
    """Tubelet embedding, blocks, and a last layer norm."""

    def __init__(self, config: VideoTransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = TubeletEmbedding(config.tubelet, config.dim)
        self.blocks = nn.ModuleList(
            Block(
                dim=config.dim,
                num_heads=config.num_heads,
                mlp_dim=config.mlp_dim,
                activation=config.activation,
                norm_eps=config.norm_eps,
                qkv_bias=config.qkv_bias,
            )
            for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)

    def forward(
        self,
        frames: UInt8[Tensor, "batch time 3 height width"],
        places: Float[Tensor, " times"],
        *,
        memory: Float[Tensor, "layers batch memory dim"] | None = None,
        seen: Int64[Tensor, " seen"] | None = None,
        keep: Keep | None = None,
    ) -> tuple[Float[Tensor, "batch outputs dim"], list[Float[Tensor, "batch kept dim"]]]:
        """Outputs of all tokens, the class token's first if there is one, and what ``keep`` kept of each layer.

        Args:
            frames: One segment, or a whole video.
            places: Row of the table of positions for each tubelet time.
            memory: What each layer attends to beside the segment.
            seen: Which tokens go in; the others are masked. None: all.
            keep: Called before each layer, so that no layer's inputs need be held for longer than that. None: nothing.

        Equation: 4.
        """
        hidden = self.embed(frames, places)
        if seen is not None:
            hidden = hidden[:, seen]
        first = 0
        if self.embed.class_token is not None:
            first = 1
            hidden = torch.cat([self.embed.class_token.expand(hidden.shape[0], 1, -1), hidden], dim=1)
        kept: list[Tensor] = []
        for layer, block in enumerate(self.blocks):
            if keep is not None:
                kept.append(keep(hidden[:, first:], layer))
            hidden = block(hidden, hidden if memory is None else torch.cat([hidden, memory[layer]], dim=1))
        return self.norm(hidden), kept
