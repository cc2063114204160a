"""How to read a source; the same for frames and for segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from longtake.errors import ConfigError

OnDamage: TypeAlias = Literal["raise", "skip", "hold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Checked before anything is opened."""

    on_damage: OnDamage = "skip"
    """Damaged data: "raise" a SourceError, "skip" it (counted as lost), or "hold" the frame before in its place."""
    timeout_seconds: float = 10.0
    """Longest wait for the source without a sign of life."""
    image_fps: float = 25.0
    """Frames per second of a folder of images, which carry no time."""
    live: bool | None = None
    """Treat the source as live or not; None goes by its kind (an HTTP stream is live only on request)."""
    max_outage_seconds: float = 60.0
    """Live sources: how long to try to connect again before giving up."""

    def __post_init__(self) -> None:
        if self.on_damage not in ("raise", "skip", "hold"):
            raise ConfigError(f"on_damage is {self.on_damage!r}, expected raise, skip or hold")
        for name in ("timeout_seconds", "image_fps"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected a number above 0")
        if not self.max_outage_seconds >= 0:
            raise ConfigError(f"max_outage_seconds is {self.max_outage_seconds}, expected 0 or more")
