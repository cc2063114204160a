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
    thinned: float = 0.0
    """Share of the tokens that is left out among those that show no toy (``videos`` only)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_span("length")
        if self.questions < 1:
            raise ConfigError(f"stage {self.name}: questions is {self.questions}, expected 1 or more")
        if not 0 <= self.thinned <= 1:
            raise ConfigError(f"stage {self.name}: thinned is {self.thinned}, expected a share from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class VLMRecipe(Recipe):
    """A whole training run of a small video VLM."""

    method: Literal["vlm"] = "vlm"
    stages: tuple[VLMStage, ...] = ()
