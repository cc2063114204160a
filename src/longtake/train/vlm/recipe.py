"""What a recipe of a small video VLM says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtake.errors import ConfigError
from longtake.train.recipe import Recipe, Stage


@dataclass(frozen=True, kw_only=True)
class VLMStage(Stage):
    """One stage of its training."""

    data: Literal["clips", "videos"]
    """``clips``: single steps with what is in the picture; ``videos``: whole videos with questions."""
    vision_scale: float = 1.0
    """Learning rate of the vision tower in units of ``learning_rate``; 0 freezes it."""
    min_length: int = 8
    """Steps of the videos, at least (``videos`` only)."""
    max_length: int = 16
    questions: int = 32
    """Per video."""
    spread: int = 0
    """Positions are spread over up to so many, with gaps between steps, as if the video were that long; 0: as they
    come."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_span("length")
        if self.questions < 1:
            raise ConfigError(f"stage {self.name}: questions is {self.questions}, expected 1 or more")
        if self.spread < 0:
            raise ConfigError(f"stage {self.name}: spread is {self.spread}, expected 0 or more positions")


@dataclass(frozen=True, kw_only=True)
class VLMRecipe(Recipe):
    """A whole training run of a small video VLM."""

    method: Literal["vlm"] = "vlm"
    stages: tuple[VLMStage, ...] = ()
