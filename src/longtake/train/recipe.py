"""What a recipe file says: the model, the stages of its training, and the seeds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from longtake.errors import ConfigError
from longtake.methods.baselines import WholeVideoConfig


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """One stage of training on fresh Toybox material."""

    name: str
    data: Literal["frames", "videos"]
    """``frames``: single moments with what is in the picture; ``videos``: whole videos with their events."""
    steps: int
    batch_size: int
    """Moments or videos per step."""
    learning_rate: float = 1e-3
    encoder_scale: float = 1.0
    """Learning rate of encoder and bottleneck in units of ``learning_rate``; 0 freezes them."""
    ssm_scale: float = 0.3
    """Learning rate of A and dt in units of ``learning_rate``."""
    warmup_steps: int = 100
    final_scale: float = 0.02
    """Learning rate at the end of the cosine, in units of ``learning_rate``."""
    weight_decay: float = 0.02
    label_weight: float = 1.0
    """Weight of the loss on per-frame labels beside the captions' (``videos`` only)."""
    feature_noise: float = 0.05
    """Noise on the bottleneck's tokens in units of their standard deviation (``videos`` only)."""
    file_share: float = 0.0
    """Share of the videos that go through an H.264 file and the reader, as a user's do (``videos`` only)."""
    min_seconds: float = 40.0
    max_seconds: float = 120.0
    """Length of the videos (``videos`` only)."""

    def __post_init__(self) -> None:
        if self.data not in ("frames", "videos"):
            raise ConfigError(f"stage {self.name}: data is {self.data!r}, expected 'frames' or 'videos'")
        for name in ("steps", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"stage {self.name}: {name} is {getattr(self, name)}, expected a number above 0")
        if self.warmup_steps < 0:
            raise ConfigError(f"stage {self.name}: warmup_steps is {self.warmup_steps}, expected 0 or more")
        if not 0 < self.min_seconds <= self.max_seconds:
            raise ConfigError(
                f"stage {self.name}: lengths {self.min_seconds} to {self.max_seconds} s, expected 0 < min <= max"
            )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole training run."""

    name: str
    method: Literal["sts"] = "sts"
    whole_video: WholeVideoConfig | None = None
    """A global baseline to train in the place of the stack; times then need the ``video`` encoding."""
    frames_per_video: int = 0
    """Frames spread evenly over each video (the paper's 16 to 256); 0: all frames of the model's time grid."""
    seed: int = 0
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of the method's config that differ from its defaults."""
    stages: tuple[StageConfig, ...] = ()
    start_from: str = ""
    """Run, checkpoint folder or bundled name whose weights are taken where names and shapes agree."""
    start_parts: tuple[str, ...] = ()
    """Parts taken from there, for example ``["encoder", "bottleneck"]``; empty: all."""
    evaluate_every: int = 500
    """Steps between scores on the validation videos."""
    evaluate_videos: int = 24
    save_seconds: float = 120.0
    """Wall-clock seconds between resumable checkpoints."""
    workers: int = 1
    """Processes that draw videos beside the one that trains."""

    def __post_init__(self) -> None:
        sampled = self.frames_per_video or self.whole_video
        if sampled and any(stage.data == "videos" and stage.encoder_scale for stage in self.stages):
            raise ConfigError(
                f"recipe {self.name}: whole_video and frames_per_video need encoder_scale = 0 in each stage"
            )
        for name in ("evaluate_every", "save_seconds", "workers", "seed", "evaluate_videos", "frames_per_video"):
            least = 1 if name == "evaluate_every" else 0
            if not getattr(self, name) >= least:
                raise ConfigError(f"recipe {self.name}: {name} is {getattr(self, name)}, expected {least} or more")
        if len({stage.name for stage in self.stages}) < len(self.stages):
            raise ConfigError(f"recipe {self.name}: two stages have one name; their material would be the same")
        if self.frames_per_video and any(stage.file_share for stage in self.stages):
            raise ConfigError(f"recipe {self.name}: frames_per_video are drawn, not read; set file_share = 0")
        if not self.stages:
            raise ConfigError(f"recipe {self.name} has no stages; add at least one [[stages]] table")
