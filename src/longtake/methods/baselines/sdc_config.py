"""Every size of a Streaming DVC model, and its preset."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from longtake.config import from_dict
from longtake.errors import ConfigError
from longtake.methods.sts_config import CaptionerConfig, STSConfig, sts_large
from longtake.vision import BottleneckConfig


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """The memory of cluster centres."""

    size: int = 128
    """Most centres (the paper's K)."""
    iterations: int = 2
    """Of k-means for each frame."""
    place_weight: float = 0.0
    """How far apart one time bucket puts two tokens, in their own units; 0: only what they are tells them apart."""

    def __post_init__(self) -> None:
        if self.size < 1 or self.iterations < 1:
            raise ConfigError(f"memory: size {self.size} and iterations {self.iterations}, expected 1 or more of each")
        if not self.place_weight >= 0:
            raise ConfigError(f"memory place_weight is {self.place_weight}, expected 0 or more")


@dataclass(frozen=True, kw_only=True)
class SDCConfig(CaptionerConfig):
    """A whole Streaming DVC model."""

    memory: ClusterConfig = field(default_factory=ClusterConfig)
    prefix_tokens: int = 96
    """Most tokens of earlier captions that the decoder is given; 0: none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prefix_tokens < 0:
            raise ConfigError(f"prefix_tokens is {self.prefix_tokens}, expected 0 or more")

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> SDCConfig:
        return from_dict(cls, fields)

    @classmethod
    def tiny(cls) -> SDCConfig:
        """A model of real classes small enough for tests."""
        return cls(**_shared(STSConfig.tiny()), memory=ClusterConfig(size=8), prefix_tokens=20)


def sdc_large() -> SDCConfig:
    """SDC with the encoder and decoder of ``sts-large``: all tokens of a frame, a memory of those of two frames.

    K, two iterations of k-means and no bottleneck are those of the authors' released recipe for ViTT.
    """
    per_frame = (sts_large().size // 16) ** 2 + 1
    shared: dict[str, Any] = _shared(sts_large()) | {"bottleneck": BottleneckConfig(num_layers=0, dim=1024)}
    return SDCConfig(
        **shared,
        memory=ClusterConfig(size=2 * per_frame),
        prefix_tokens=256,
    )


def _shared(config: STSConfig) -> dict[str, Any]:
    return {part.name: getattr(config, part.name) for part in fields(CaptionerConfig)}
