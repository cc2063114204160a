"""Frames to tubelet tokens with a learned place in space and time (MC-ViT, equation 1).

The table of places covers ``position_frames`` frames. Videos may be longer, or end nowhere: a place in time is any
number, and what lies between two rows of the table is taken linearly from both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TubeletConfig:
    """How frames are cut into tokens."""

    size: int = 64
    """Height and width of a frame in pixels."""
    time: int = 2
    """Frames per tubelet."""
    patch: int = 8
    """Height and width of a tubelet in pixels."""
    position_frames: int = 16
    """Frames that the table of learned positions covers."""
    class_token: bool = False
    """A learned token before those of each segment, as ViViT has it."""
    pixel_scale: float = 1 / 127.5
    pixel_offset: float = -1.0
    """A pixel from 0 to 255 is taken in as ``pixel * pixel_scale + pixel_offset``."""

    def __post_init__(self) -> None:
        if self.size % self.patch:
            raise ConfigError(f"frames of {self.size} pixels do not divide into patches of {self.patch}")
        if self.position_frames % self.time or self.position_frames < 1:
            raise ConfigError(
                f"position_frames is {self.position_frames}, expected a multiple of the {self.time} frames of a tubelet"
            )

    @property
    def space(self) -> int:
        """Tokens per tubelet time."""
        return (self.size // self.patch) ** 2

    def num_times(self, num_frames: int) -> int:
        """Tubelets along time; frames that do not fill the last one count as a whole."""
        return -(-num_frames // self.time)


class TubeletEmbedding(nn.Module):
    """Non-overlapping tubelets, each by one linear map, plus the learned position."""

    def __init__(self, config: TubeletConfig, dim: int) -> None:
        super().__init__()
        self.config = config
        self.project = nn.Linear(3 * config.time * config.patch**2, dim)
        times = config.position_frames // config.time
        self.position = nn.Parameter(torch.randn(times, config.space, dim) * 0.02)
        self.class_token = nn.Parameter(torch.randn(1, dim) * 0.02) if config.class_token else None

    def forward(
        self, frames: UInt8[Tensor, "batch time 3 height width"], places: Float[Tensor, " times"]
    ) -> Float[Tensor, "batch tokens dim"]:
        """Tokens in order of time, then row, then column; no class token.

        Args:
            frames: If they do not fill the last tubelet, the last frame stands still in what is left.
            places: Row of the table for each tubelet time, between rows too (``places_in`` gives them).
        """
        tokens = self.project(self.tubelets(frames)) + self.positions_at(places)
        return tokens.flatten(1, 2)

    def tubelets(self, frames: UInt8[Tensor, "batch time 3 height width"]) -> Float[Tensor, "batch times space values"]:
        """Scaled pixels of each tubelet, ordered channel, time, row, column."""
        config = self.config
        missing = -frames.shape[1] % config.time
        if missing:
            frames = torch.cat([frames, frames[:, -1:].expand(-1, missing, -1, -1, -1)], dim=1)
        cut = frames.unflatten(4, (-1, config.patch)).unflatten(3, (-1, config.patch)).unflatten(1, (-1, config.time))
        # batch times time channel rows patch columns patch
        values = cut.permute(0, 1, 4, 6, 3, 2, 5, 7).flatten(4, 7).flatten(2, 3)
        return values.to(self.position.dtype) * config.pixel_scale + config.pixel_offset

    def positions_at(self, places: Float[Tensor, " times"]) -> Float[Tensor, "times space dim"]:
        """Rows of the table, linearly interpolated; beyond its ends the outermost row stays."""
        table = self.position
        places = places.clamp(0, table.shape[0] - 1)
        lower = places.floor().long()
        upper = (lower + 1).clamp(max=table.shape[0] - 1)
        share = (places - lower).to(table.dtype)[:, None, None]
        return table[lower] * (1 - share) + table[upper] * share


def places_in(
    config: TubeletConfig, *, first_frame: int, num_frames: int, total_frames: int, device: torch.device | None = None
) -> Float[Tensor, " times"]:
    """Rows of the table of positions for the frames from ``first_frame`` on.

    A video of known length has the whole table stretched or squeezed over it, as linear interpolation along time does
    (section 3.3). A stream without one (``total_frames`` 0) goes through the table at its own pace and begins it anew
    at its end: the paper's repetition, which it found to serve as well.
    """
    rows = config.position_frames // config.time
    starts = torch.arange(config.num_times(num_frames), dtype=torch.float64, device=device)
    starts = starts + first_frame / config.time
    if not total_frames:
        return starts % rows
    return (starts + 0.5) * (rows / config.num_times(total_frames)) - 0.5
