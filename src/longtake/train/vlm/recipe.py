"""What a recipe of a small video VLM says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class VLMStage:
    """One stage of training on fresh Toybox material."""

    name: str
    data: Literal["clips", "videos"]
    """``clips``: single steps with what is in the picture; ``videos``: whole videos with questions."""
    steps: int
    batch_size: int
    """Clips or videos per step."""
    learning_rate: float = 2e-3
    vision_scale: float = 1.0
    """Learning rate of the vision tower in units of ``learning_rate``; 0 freezes it."""
    warmup_steps: int = 50
    final_scale: float = 0.05
    """Learning rate at the end of the cosine, in units of ``learning_rate``."""
    weight_decay: float = 0.02
    label_weight: float = 1.0
    """Weight of the losses on what is true at each token beside the answers'."""
    min_length: int = 8
    """Steps of the videos, at least (``videos`` only)."""
    max_length: int = 16
    questions: int = 32
    """Per video."""
    file_share: float = 0.0
    """Share of the batches that go through an H.264 file and the reader, as a user's videos do."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "learning_rate", "min_length", "questions"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"stage {self.name}: {name} is {getattr(self, name)}, expected more than 0")
        if self.max_length < self.min_length:
            raise ConfigError(f"stage {self.name}: lengths {self.min_length} to {self.max_length}, expected min <= max")


@dataclass(frozen=True, kw_only=True)
class VLMRecipe:
    """A whole training run of a small video VLM."""

    name: str
    method: Literal["vlm"] = "vlm"
    seed: int = 0
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of ``VLMConfig`` that differ from its defaults."""
    stages: tuple[VLMStage, ...] = ()
    start_from: str = ""
    """Run, model folder or bundled name whose weights are taken where names and shapes agree."""
    average: float = 0.0
    """Decay per step of the running mean of the weights, which is scored and written; 0 takes them as they are."""
    evaluate_every: int = 250
    """Steps between scores on validation videos."""
    evaluate_videos: int = 12
    save_seconds: float = 120.0
    """Wall-clock seconds between resumable checkpoints."""
    workers: int = 1
    """Processes that draw videos beside the one that trains."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError(f"recipe {self.name} has no stages; add at least one [[stages]] table")
        if not 0 <= self.average < 1:
            raise ConfigError(f"recipe {self.name}: average is {self.average}, expected 0 to below 1")
        if len({stage.name for stage in self.stages}) < len(self.stages):
            raise ConfigError(f"recipe {self.name}: two stages have one name; their material would be the same")
