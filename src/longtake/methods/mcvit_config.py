"""Every size of an MC-ViT model: encoder, memory, heads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from longtake.config import from_dict, to_dict
from longtake.errors import ConfigError
from longtake.language.text_encoder import TextConfig
from longtake.types import SegmentSpec
from longtake.vision import TubeletConfig, VideoTransformerConfig

Variant: TypeAlias = Literal["joint", "st", "ma", "mc-r", "mc-cs", "mc-km", "memvit", "late"]
MemoryKind: TypeAlias = Literal["concat", "last", "global"]


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """What a segment knows of those before it: the paper's variants, with the same encoder weights."""

    variant: Variant = "mc-km"
    """``joint``: all frames at once; ``st``: segments on their own; ``ma``: all past activations; ``mc-r``, ``mc-cs``
    and ``mc-km``: random, coreset and k-means consolidation; ``memvit``: learned pooling (a baseline); ``late``:
    segments on their own, then one perceiver layer over all their outputs (a baseline)."""
    kind: MemoryKind = "global"
    """What is kept of all segments: ``concat``: everything; ``last``: the last ``segments``; ``global``: a uniform
    sample as large. ``ma`` always keeps everything."""
    size: int = 128
    """Tokens that stand for a segment, the paper's K (``mc-*``)."""
    segments: int = 16
    """The paper's N: segments kept by ``last``, times ``size`` the tokens kept by ``global``."""
    mask: float = 0.0
    """Part of the tokens that are left out at random (``joint``); the paper has 0.25."""
    pool: tuple[int, int, int] = (4, 2, 2)
    """Tubelets along time, height and width that ``memvit`` pools to one token."""
    queries: int = 256
    """Learned queries of ``late``."""
    max_segments: int = 256
    """Longest stream of the variants whose state grows: ``joint``, ``ma``, ``late``, and memories of kind
    ``concat``."""
    seed: int = 0
    """Of all draws."""

    def __post_init__(self) -> None:
        if self.variant not in get_args(Variant):
            raise ConfigError(f"variant is {self.variant!r}, expected one of {', '.join(get_args(Variant))}")
        if self.kind not in get_args(MemoryKind):
            raise ConfigError(f"memory kind is {self.kind!r}, expected one of {', '.join(get_args(MemoryKind))}")
        for name in ("size", "segments", "queries", "max_segments"):
            if getattr(self, name) < 1:
                raise ConfigError(f"memory: {name} is {getattr(self, name)}, expected 1 or more")
        if min(self.pool) < 1:
            raise ConfigError(f"memory: pool is {self.pool}, expected numbers from 1 on")
        if not 0 <= self.mask < 1 or (self.mask and self.variant != "joint"):
            raise ConfigError(f"memory: mask is {self.mask} with {self.variant!r}, expected 0 to below 1, with 'joint'")

    @property
    def remembers(self) -> bool:
        """Whether layers attend to a memory."""
        return self.variant not in ("joint", "st", "late")

    @property
    def keeps_everything(self) -> bool:
        """Whether the memory holds something of every segment."""
        return self.variant == "ma" or (self.remembers and self.kind == "concat")

    @property
    def grows(self) -> bool:
        """Whether the state grows with the stream."""
        return self.keeps_everything or self.variant in ("joint", "late")


@dataclass(frozen=True, kw_only=True)
class MCViTConfig:
    """A whole MC-ViT model."""

    num_frames: int = 16
    """Frames per segment: as many as the encoder was pretrained with."""
    fps: float = 4.0
    encoder: VideoTransformerConfig = field(default_factory=VideoTransformerConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    positions: Literal["stretch", "repeat"] = "stretch"
    """``stretch``: the table of positions is stretched over a video of known length; ``repeat``: as in a stream without
    one, it is gone through at its own pace and begun anew at its end."""
    text: TextConfig | None = None
    """With a text tower the head is contrastive and labels are words; without one it is linear over ``labels``."""
    embed_dim: int = 128
    """Width of the vectors that video and text are compared by."""
    labels: tuple[str, ...] = ()
    """Classes the model was trained with; none and no text tower: it gives embeddings alone."""
    prompt: str = "{}"
    """What is said of a label when it is compared as text; ``{}`` stands for it."""

    def __post_init__(self) -> None:
        if self.num_frames < 1 or self.num_frames % self.encoder.tubelet.time:
            raise ConfigError(
                f"segments of {self.num_frames} frames do not divide into tubelets of {self.encoder.tubelet.time}"
            )
        if self.positions not in ("stretch", "repeat"):
            raise ConfigError(f"positions is {self.positions!r}, expected 'stretch' or 'repeat'")
        if "{}" not in self.prompt:
            raise ConfigError(f"prompt is {self.prompt!r}, expected a text with {{}} in it")
        if len(set(self.labels)) != len(self.labels):
            raise ConfigError(f"{len(self.labels)} labels have {len(set(self.labels))} different ones")

    @property
    def segment_spec(self) -> SegmentSpec:
        size = self.encoder.tubelet.size
        return SegmentSpec(num_frames=self.num_frames, fps=self.fps, height=size, width=size)

    @property
    def tokens_per_segment(self) -> int:
        """The paper's N: tubelets of a full segment, without the class token."""
        tubelet = self.encoder.tubelet
        return tubelet.num_times(self.num_frames) * tubelet.space

    @property
    def kept_per_segment(self) -> int:
        """Tokens that stand for a full segment in memory: set ``memory.size`` to ``memvit``'s for an equal size."""
        memory, tubelet = self.memory, self.encoder.tubelet
        if not memory.remembers:
            return 0
        if memory.variant == "memvit":
            times, side = tubelet.num_times(self.num_frames), tubelet.size // tubelet.patch
            return -(-times // memory.pool[0]) * -(-side // memory.pool[1]) * -(-side // memory.pool[2])
        return self.tokens_per_segment if memory.variant == "ma" else min(memory.size, self.tokens_per_segment)

    @property
    def capacity(self) -> int:
        """Most tokens that the memory of a layer ever holds."""
        memory = self.memory
        return self.kept_per_segment * (memory.max_segments if memory.keeps_everything else memory.segments)

    def to_dict(self) -> dict[str, Any]:
        return to_dict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> MCViTConfig:
        return from_dict(cls, fields)

    @classmethod
    def tiny(cls, **memory: Any) -> MCViTConfig:
        """A model of real classes small enough for tests, with these fields of its memory."""
        return cls(
            num_frames=4,
            encoder=VideoTransformerConfig(
                tubelet=TubeletConfig(size=16, patch=4, position_frames=4),
                dim=16,
                num_layers=2,
                num_heads=2,
                mlp_dim=32,
            ),
            memory=from_dict(MemoryConfig, {"size": 5, "segments": 3, "queries": 6} | memory),
            text=TextConfig(
                dim=16,
                num_layers=1,
                num_heads=2,
                mlp_dim=32,
                max_tokens=16,
                vocabulary=("red", "green", "blue", "which", "came", "most", "often", "?"),
            ),
            embed_dim=8,
            labels=("red", "green", "blue"),
        )
