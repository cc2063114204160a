"""Frame encoders: 8-bit frames to a grid of visual tokens per frame.

Two kinds, one signature: a small convolutional one that also sees how the picture changed (``conv``, for models
trained from scratch on little compute), and any vision model of transformers by name or config (``transformers``; the
paper's ViT-L/16).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional

from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Which encoder, and its sizes."""

    kind: Literal["conv", "transformers"] = "conv"
    """``conv``: the small one; ``transformers``: any vision model of that library."""
    dim: int = 128
    """Width of the tokens."""
    stem_dim: int = 64
    """Channels before the second halving (``conv`` only)."""
    history: int = 2
    """Frames before the present one whose difference to it is part of the input (``conv`` only)."""
    depth: int = 2
    """Residual blocks at the final resolution (``conv`` only)."""
    model: str = ""
    """Hub id or folder whose config (``transformers`` only) is used when ``model_config`` is empty."""
    model_config: dict[str, Any] = field(default_factory=dict)
    """A transformers config as a dict with its ``model_type`` (``transformers`` only)."""

    def __post_init__(self) -> None:
        if self.kind not in ("conv", "transformers"):
            raise ConfigError(f"encoder kind is {self.kind!r}, expected 'conv' or 'transformers'")
        if self.kind == "transformers" and not (self.model or self.model_config):
            raise ConfigError("encoder kind 'transformers' needs `model` (hub id or folder) or `model_config`")
        if self.history < 0:
            raise ConfigError(f"encoder history is {self.history} frames, expected 0 or more")


def build_encoder(config: EncoderConfig, height: int, width: int) -> ConvEncoder | TransformersEncoder:
    """The encoder that ``config`` names, for frames of ``height`` x ``width`` pixels."""
    if config.kind == "conv":
        return ConvEncoder(config, height, width)
    return TransformersEncoder(config, height, width)


class Residual(nn.Module):
    """Two 3x3 convolutions beside the identity."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, dim)
        self.first = nn.Conv2d(dim, dim, 3, padding=1)
        self.second = nn.Conv2d(dim, dim, 3, padding=1)
        nn.init.zeros_(self.second.weight)

    def forward(self, inputs: Float[Tensor, "batch dim rows columns"]) -> Float[Tensor, "batch dim rows columns"]:
        return inputs + self.second(torch.relu(self.first(torch.relu(self.norm(inputs)))))


class ConvEncoder(nn.Module):
    """Frames and their differences to the frames before, through a small residual network at 1/8 of the size."""

    patch = 4

    def __init__(self, config: EncoderConfig, height: int, width: int) -> None:
        super().__init__()
        stride = 2 * self.patch
        if height % stride or width % stride:
            raise ConfigError(f"frames of {width}x{height} pixels do not divide by {stride}; use a multiple of it")
        self.history = config.history
        self.dim = config.dim
        self.num_tokens = (height // stride) * (width // stride)
        self.stem = nn.Sequential(
            nn.Conv2d(3 * (1 + config.history) * self.patch**2, config.stem_dim, 1),
            Residual(config.stem_dim),
            nn.Conv2d(config.stem_dim, config.dim, 3, stride=2, padding=1),
        )
        self.blocks = nn.Sequential(*(Residual(config.dim) for _ in range(config.depth)))
        self.position = nn.Parameter(torch.randn(self.num_tokens, config.dim) * 0.02)

    def forward(
        self, frames: UInt8[Tensor, "batch time 3 height width"], before: UInt8[Tensor, "batch history 3 height width"]
    ) -> Float[Tensor, "batch time tokens dim"]:
        batch, time = frames.shape[:2]
        inputs = self.with_differences(frames, before)
        grid = self.blocks(self.stem(inputs.flatten(0, 1)))
        tokens = grid.flatten(2).transpose(1, 2) + self.position
        return tokens.unflatten(0, (batch, time))

    def with_differences(
        self, frames: UInt8[Tensor, "batch time 3 height width"], before: UInt8[Tensor, "batch history 3 height width"]
    ) -> Float[Tensor, "batch time channels rows columns"]:
        """Patches of the present frame in [-1, 1] and, for each earlier one, what changed since (x2: changes are
        small)."""
        time = frames.shape[1]
        patches = functional.pixel_unshuffle(torch.cat([before, frames], dim=1), self.patch)
        whole = patches.to(self.position.dtype) / 127.5 - 1.0
        present = whole[:, self.history :]
        changes = [
            2.0 * (present - whole[:, self.history - back : self.history - back + time])
            for back in range(1, self.history + 1)
        ]
        return torch.cat([present, *changes], dim=2)


class TransformersEncoder(nn.Module):
    """Any vision model of transformers that returns ``last_hidden_state``; a class token, if any, is kept too."""

    history: int = 0
    """How many earlier frames the encoder must be given."""

    def __init__(self, config: EncoderConfig, height: int, width: int) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__()
        if config.model_config:
            fields = dict(config.model_config)
            model_config = AutoConfig.for_model(fields.pop("model_type"), **fields)
        else:
            model_config = AutoConfig.from_pretrained(config.model)
        model_config = getattr(model_config, "vision_config", model_config)
        if model_config.image_size not in (height, [height, width], (height, width)):
            raise ConfigError(
                f"encoder {config.model or model_config.model_type} takes {model_config.image_size} px, "
                f"the segment spec says {width}x{height}; set the same size in both"
            )
        # The pooler of a ViT is not used: captions need the tokens.
        extra = {"add_pooling_layer": False} if model_config.model_type == "vit" else {}
        self.model = AutoModel.from_config(model_config, **extra)
        self.dim: int = model_config.hidden_size
        patches = (height // model_config.patch_size) * (width // model_config.patch_size)
        self.num_tokens = patches + (
            1 if model_config.model_type in ("vit", "deit", "dinov2", "clip_vision_model") else 0
        )

    def forward(
        self, frames: UInt8[Tensor, "batch time 3 height width"], before: UInt8[Tensor, "batch history 3 height width"]
    ) -> Float[Tensor, "batch time tokens dim"]:
        batch, time = frames.shape[:2]
        dtype = next(self.model.parameters()).dtype
        pixels = frames.flatten(0, 1).to(dtype) / 127.5 - 1.0
        tokens = cast(Tensor, self.model(pixel_values=pixels).last_hidden_state)
        return tokens.unflatten(0, (batch, time))
