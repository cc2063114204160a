"""What every recipe file says: the stages of a run, one after the other, and how it is watched and kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints

from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of training on fresh Toybox material; methods add what theirs need, ``data`` first of all."""

    name: str
    steps: int
    batch_size: int
    """Videos, or single moments of videos, per step."""
    learning_rate: float = 2e-3
    warmup_steps: int = 50
    final_scale: float = 0.05
    """Learning rate at the end of the cosine, in units of ``learning_rate``."""
    weight_decay: float = 0.02
    label_weight: float = 1.0
    """Weight of what training's own heads learn beside what is said (``videos`` only)."""
    file_share: float = 0.0
    """Share that goes through an H.264 file and the reader, as a user's videos do (``videos`` only)."""

    def __post_init__(self) -> None:
        kinds, data = get_args(get_type_hints(type(self)).get("data")), getattr(self, "data", None)
        if kinds and data not in kinds:
            raise ConfigError(f"stage {self.name}: data is {data!r}, expected {' or '.join(map(repr, kinds))}")
        for name in ("steps", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"stage {self.name}: {name} is {getattr(self, name)}, expected more than 0")
        if self.warmup_steps < 0:
            raise ConfigError(f"stage {self.name}: warmup_steps is {self.warmup_steps}, expected 0 or more")
        if not 0 <= self.file_share <= 1:
            raise ConfigError(f"stage {self.name}: file_share is {self.file_share}, expected 0 to 1")

    def check_span(self, what: str) -> None:
        """Raise ConfigError unless ``min_what`` and ``max_what`` are above 0 and in order."""
        least, most = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
        if not 0 < least <= most:
            raise ConfigError(f"stage {self.name}: {what} from {least} to {most}, expected 0 < min <= max")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole training run; methods say what their stages are."""

    name: str
    seed: int = 0
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of the model's config that differ from its defaults."""
    stages: tuple[Stage, ...] = ()
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
        if len({stage.name for stage in self.stages}) < len(self.stages):
            raise ConfigError(f"recipe {self.name}: two stages have one name; their material would be the same")
        if not 0 <= self.average < 1:
            raise ConfigError(f"recipe {self.name}: average is {self.average}, expected 0 to below 1")
        for name in ("evaluate_every", "evaluate_videos", "save_seconds", "workers", "seed"):
            least = 1 if name == "evaluate_every" else 0
            if not getattr(self, name) >= least:
                raise ConfigError(f"recipe {self.name}: {name} is {getattr(self, name)}, expected {least} or more")
