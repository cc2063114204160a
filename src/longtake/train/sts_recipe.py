"""What a recipe of an STS model, or of one of its baselines, says."""

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
class CaptionRecipe(Recipe):
    """A whole training run of a captioner of any method."""

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
            raise ConfigError(
                f"recipe {self.name}: average is {self.average}; training of captioners keeps no mean of weights"
            )
        if self.frames_per_video < 0:
            raise ConfigError(f"recipe {self.name}: frames_per_video is {self.frames_per_video}, expected 0 or more")
        if self.frames_per_video:
            self.check_frozen("frames_per_video")
        if self.frames_per_video and any(stage.file_share for stage in self.stages):
            raise ConfigError(f"recipe {self.name}: frames_per_video are drawn, not read; set file_share = 0")

    def check_frozen(self, what: str) -> None:
        """Raise ConfigError unless the encoder is frozen wherever whole videos are taken."""
        if any(stage.data == "videos" and stage.encoder_scale for stage in self.stages):
            raise ConfigError(f"recipe {self.name}: {what} needs encoder_scale = 0 in each stage")


@dataclass(frozen=True, kw_only=True)
class STSRecipe(CaptionRecipe):
    """A whole training run of an STS model."""

    method: Literal["sts"] = "sts"
    whole_video: WholeVideoConfig | None = None
    """A global baseline to train in the place of the stack; times then need the ``video`` encoding."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.whole_video:
            self.check_frozen("whole_video")


@dataclass(frozen=True, kw_only=True)
class SDCRecipe(CaptionRecipe):
    """A whole training run of a Streaming DVC model."""

    method: Literal["sdc"] = "sdc"
    prefix_dropout: float = 0.5
    """Share of earlier captions left out of a prefix in training, since in use they may be missing or wrong."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.prefix_dropout <= 1:
            raise ConfigError(f"recipe {self.name}: prefix_dropout is {self.prefix_dropout}, expected 0 to 1")
