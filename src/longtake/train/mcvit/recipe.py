"""What a recipe of an MC-ViT model says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtake.errors import ConfigError
from longtake.train.recipe import Recipe, Stage


@dataclass(frozen=True, kw_only=True)
class MCViTStage(Stage):
    """One stage of its training."""

    data: Literal["clips", "videos"]
    """``clips``: single segments with what is in the picture (the paper's pretraining on short clips); ``videos``:
    whole videos with their class and questions."""
    split: str = "routines"
    """Of Toybox; only ``routines`` has classes (``videos`` only)."""
    min_seconds: float = 40.0
    max_seconds: float = 40.0
    """Length of the videos (``videos`` only)."""
    min_frames: int = 64
    max_frames: int = 64
    """Frames spread evenly over a video: as many whole segments as are drawn for a step (``videos`` only)."""
    min_spacing: float = 0.125
    max_spacing: float = 0.7
    """Seconds from frame to frame (``clips`` only)."""
    questions: int = 0
    """Multiple-choice questions per video (``videos`` only, with a text tower)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("seconds", "frames", "spacing"):
            self.check_span(what)
        if self.questions < 0:
            raise ConfigError(f"stage {self.name}: questions is {self.questions}, expected 0 or more")


@dataclass(frozen=True, kw_only=True)
class MCViTRecipe(Recipe):
    """A whole training run of an MC-ViT model, or of any of its variants.

    Labels and vocabulary are Toybox's if ``model`` does not give them.
    """

    method: Literal["mcvit"] = "mcvit"
    looks_after: int = 3
    """Layers of the encoder under the heads that say what is in the picture: what is known there is what the memory
    of the layers above holds."""
    stages: tuple[MCViTStage, ...] = ()
    evaluate_videos: int = 48
    evaluate_frames: tuple[int, ...] = (64,)
    """Numbers of frames that validation videos are scored at."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluate_videos < 1:
            raise ConfigError(f"recipe {self.name}: evaluate_videos is {self.evaluate_videos}, expected 1 or more")
        if not self.evaluate_frames or min(self.evaluate_frames) < 1:
            raise ConfigError(f"recipe {self.name}: evaluate_frames is {self.evaluate_frames}, expected numbers from 1")
