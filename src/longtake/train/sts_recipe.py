"""What a recipe of an STS model, or of a global baseline, says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtake.errors import ConfigError
from longtake.methods.baselines import WholeVideoConfig
from longtake.train.recipe import Recipe, Stage


@dataclass(frozen=True, kw_only=True)
class STSStage(Stage):
    """One stage of its training."""

    data: Literal["frames", "videos"]
    """``frames``: single moments with what is in the picture; ``videos``: whole videos with their events."""
    learning_rate: float = 1e-3
    encoder_scale: float = 1.0
    """Learning rate of encoder and bottleneck in units of ``learning_rate``; 0 freezes them."""
    ssm_scale: float = 0.3
    """Learning rate of A and dt in units of ``learning_rate``."""
    warmup_steps: int = 100
    final_scale: float = 0.02
    feature_noise: float = 0.05
    """Noise on the bottleneck's tokens in units of their standard deviation (``videos`` only)."""
    min_seconds: float = 40.0
    max_seconds: float = 120.0
    """Length of the videos (``videos`` only)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_span("seconds")


@dataclass(frozen=True, kw_only=True)
class STSRecipe(Recipe):
    """A whole training run of an STS model."""

    method: Literal["sts"] = "sts"
    whole_video: WholeVideoConfig | None = None
    """A global baseline to train in the place of the stack; times then need the ``video`` encoding."""
    frames_per_video: int = 0
    """Frames spread evenly over each video (the paper's 16 to 256); 0: all frames of the model's time grid."""
    stages: tuple[STSStage, ...] = ()
    start_parts: tuple[str, ...] = ()
    """Parts taken from ``start_from``, for example ``["encoder", "bottleneck"]``; empty: all."""
    evaluate_every: int = 500
    evaluate_videos: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.average:
            raise ConfigError(f"recipe {self.name}: average is {self.average}; STS training keeps no mean of weights")
        if self.frames_per_video < 0:
            raise ConfigError(f"recipe {self.name}: frames_per_video is {self.frames_per_video}, expected 0 or more")
        sampled = self.frames_per_video or self.whole_video
        if sampled and any(stage.data == "videos" and stage.encoder_scale for stage in self.stages):
            raise ConfigError(
                f"recipe {self.name}: whole_video and frames_per_video need encoder_scale = 0 in each stage"
            )
        if self.frames_per_video and any(stage.file_share for stage in self.stages):
            raise ConfigError(f"recipe {self.name}: frames_per_video are drawn, not read; set file_share = 0")
