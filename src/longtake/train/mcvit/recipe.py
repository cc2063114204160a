"""What a recipe of an MC-ViT model says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MCViTStage:
    """One stage of training on fresh Toybox material."""

    name: str
    data: Literal["clips", "videos"]
    """``clips``: single segments with what is in the picture (the paper's pretraining on short clips); ``videos``:
    whole videos with their class and questions."""
    steps: int
    batch_size: int
    """Clips or videos per step."""
    learning_rate: float = 2e-3
    warmup_steps: int = 50
    final_scale: float = 0.05
    """Learning rate at the end of the cosine, in units of ``learning_rate``."""
    weight_decay: float = 0.02
    label_weight: float = 1.0
    """Weight of what training's own heads learn beside the classes and questions (``videos`` only)."""
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
    file_share: float = 0.0
    """Share of the videos that go through an H.264 file and the reader, as a user's do (``videos`` only)."""

    def __post_init__(self) -> None:
        if self.data not in ("clips", "videos"):
            raise ConfigError(f"stage {self.name}: data is {self.data!r}, expected 'clips' or 'videos'")
        for name in ("steps", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"stage {self.name}: {name} is {getattr(self, name)}, expected more than 0")
        for name in ("warmup_steps", "questions"):
            if getattr(self, name) < 0:
                raise ConfigError(f"stage {self.name}: {name} is {getattr(self, name)}, expected 0 or more")
        if not 0 <= self.file_share <= 1:
            raise ConfigError(f"stage {self.name}: file_share is {self.file_share}, expected 0 to 1")
        for name in ("seconds", "frames", "spacing"):
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if not 0 < least <= most:
                raise ConfigError(f"stage {self.name}: {name} from {least} to {most}, expected 0 < min <= max")


@dataclass(frozen=True, kw_only=True)
class MCViTRecipe:
    """A whole training run of an MC-ViT model, or of any of its variants."""

    name: str
    method: Literal["mcvit"] = "mcvit"
    seed: int = 0
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of ``MCViTConfig`` that differ from its defaults; labels and vocabulary are Toybox's if not given."""
    looks_after: int = 3
    """Layers of the encoder under the heads that say what is in the picture: what is known there is what the memory
    of the layers above holds."""
    stages: tuple[MCViTStage, ...] = ()
    start_from: str = ""
    """Run, model folder or bundled name whose weights are taken where names and shapes agree."""
    average: float = 0.0
    """Decay per step of the running mean of the weights, which is scored and written; 0 takes them as they are."""
    evaluate_every: int = 250
    """Steps between scores on validation videos."""
    evaluate_videos: int = 48
    evaluate_frames: tuple[int, ...] = (64,)
    """Numbers of frames that validation videos are scored at."""
    save_seconds: float = 120.0
    """Wall-clock seconds between resumable checkpoints."""
    workers: int = 1
    """Processes that draw videos beside the one that trains."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError(f"recipe {self.name} has no stages; add at least one [[stages]] table")
        if not 0 <= self.average < 1:
            raise ConfigError(f"recipe {self.name}: average is {self.average}, expected 0 to below 1")
        for name in ("evaluate_every", "evaluate_videos", "save_seconds", "workers", "seed"):
            least = 1 if name.startswith("evaluate") else 0
            if not getattr(self, name) >= least:
                raise ConfigError(f"recipe {self.name}: {name} is {getattr(self, name)}, expected {least} or more")
        if not self.evaluate_frames or min(self.evaluate_frames) < 1:
            raise ConfigError(f"recipe {self.name}: evaluate_frames is {self.evaluate_frames}, expected numbers from 1")
        if len({stage.name for stage in self.stages}) < len(self.stages):
            raise ConfigError(f"recipe {self.name}: two stages have one name; their material would be the same")
