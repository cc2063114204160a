"""Global baselines (tables 3 and 5): the whole video is read first, then all its captions are said at once.

Not a stream model: memory and the decoder's input grow with the video, and nothing is said before its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from longtake.errors import ConfigError
from longtake.methods.sts_config import StackConfig
from longtake.methods.sts_stack import STSStack


@dataclass(frozen=True, kw_only=True)
class WholeVideoConfig:
    """How the tokens of a whole video are mixed and which of them the decoder reads."""

    mixer: Literal["ssm", "transformer"] = "ssm"
    shown: Literal["all", "last-per-segment", "final-token"] = "all"
    """Table 5: all tokens, the last token of each segment, or the last token of the sequence."""
    num_heads: int = 4
    mlp_ratio: int = 2
    """Of the transformer's blocks, whose number is that of the stack's layers."""
    max_frames: int = 512
    """Longest video the transformer has positions for."""

    def __post_init__(self) -> None:
        if self.mixer not in ("ssm", "transformer"):
            raise ConfigError(f"baseline mixer is {self.mixer!r}, expected 'ssm' or 'transformer'")
        if self.shown not in ("all", "last-per-segment", "final-token"):
            raise ConfigError(f"baseline shown is {self.shown!r}, expected 'all', 'last-per-segment' or 'final-token'")


class WholeVideo(nn.Module):
    """Tokens of all frames of a video to the memory of one global decoder."""

    def __init__(self, config: WholeVideoConfig, stack: StackConfig, num_tokens: int, dim: int, segment: int) -> None:
        super().__init__()
        self.config = config
        self.segment = segment
        self.frame_position = nn.Parameter(torch.randn(config.max_frames, dim) * 0.1)
        self.token_position = nn.Parameter(torch.randn(num_tokens, dim) * 0.1)
        self.mixer: nn.Module
        if config.mixer == "ssm":
            self.mixer = STSStack(stack, dim)
        else:
            block = nn.TransformerEncoderLayer(
                dim, config.num_heads, config.mlp_ratio * dim, dropout=0.0, batch_first=True, norm_first=True
            )
            self.mixer = nn.TransformerEncoder(
                block, stack.num_layers, norm=nn.LayerNorm(dim), enable_nested_tensor=False
            )

    def forward(self, tokens: Float[Tensor, "batch time tokens dim"]) -> Float[Tensor, "batch time tokens dim"]:
        """Every token of a whole video with what it knows of the others.

        Raises:
            ConfigError: the video has more frames than there are positions.
        """
        batch, time, num_tokens = tokens.shape[:3]
        if time > self.config.max_frames:
            raise ConfigError(f"video has {time} frames, this baseline was made for at most {self.config.max_frames}")
        if isinstance(self.mixer, STSStack):
            return self.mixer(tokens, self.mixer.init_carried(batch, num_tokens))[0]
        placed = tokens + self.frame_position[:time, None] + self.token_position
        return self.mixer(placed.flatten(1, 2)).unflatten(1, (time, num_tokens))

    def show(self, outputs: Float[Tensor, "batch time tokens dim"]) -> Float[Tensor, "batch shown dim"]:
        """What the decoder reads (``WholeVideoConfig.shown``)."""
        time = outputs.shape[1]
        placed = outputs + self.frame_position[:time, None] + self.token_position
        if self.config.shown == "all":
            return placed.flatten(1, 2)
        last = placed[:, :, -1]
        if self.config.shown == "final-token":
            return last[:, -1:]
        ends = [*range(self.segment - 1, time - 1, self.segment), time - 1]
        return last[:, ends]
