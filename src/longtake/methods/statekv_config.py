"""Every choice of a StateKV model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtake.errors import ConfigError
from longtake.state.kv import RULES


@dataclass(frozen=True, kw_only=True)
class StateKVConfig:
    """How a frozen video model is run over a stream."""

    policy: Literal["statekv", "sink-recency", "recency", "random", "full"] = "statekv"
    """Which keys go on from frame to frame."""
    select: Literal["kv-head", "layer"] = "kv-head"
    """``statekv``: one selection per KV head, or one per layer for all of them."""
    sinks: int = 0
    """``statekv``: first tokens of the stream that are always kept."""
    per_query: bool = False
    """``statekv``: divide what a key received by the number of queries that could see it."""
    budget: int = 4096
    """Keys carried per layer and KV head."""
    fps: float = 1.0
    """Frames per second of the sampling grid."""
    height: int | None = None
    """Pixels of frames; None: the family's usual size."""
    width: int | None = None
    horizon_seconds: float | None = None
    """How long the stream may become; None: what the model was trained for. Rotary scaling is fixed by it."""
    caption_seconds: float = 8.0
    """Between two decoding points."""
    caption_question: str = (
        "What happened between {start} and {end} seconds of the video? "
        "Answer in one short sentence. If nothing happened, say: nothing."
    )
    """Put at each decoding point, with the seconds since the one before."""
    max_new_tokens: int = 256
    detailed_bytes: int = 8 << 30
    """Most that the detailed cache, which answers are read from, may take."""

    def __post_init__(self) -> None:
        if self.policy not in RULES:
            raise ConfigError(f"policy is {self.policy!r}, expected one of {', '.join(RULES)}")
        if self.select not in ("kv-head", "layer"):
            raise ConfigError(f"select is {self.select!r}, expected 'kv-head' or 'layer'")
        for name in ("budget", "fps", "caption_seconds", "max_new_tokens", "detailed_bytes"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected more than 0")
        try:
            self.caption_question.format(start="0.0", end="8.0")
        except (LookupError, ValueError) as error:
            raise ConfigError(
                f"caption_question is {self.caption_question!r}, expected words with {{start}} and {{end}}"
            ) from error
        if not 0 <= self.sinks < self.budget:
            raise ConfigError(f"sinks is {self.sinks}, expected 0 or more and fewer than the budget of {self.budget}")
        if self.horizon_seconds is not None and not self.horizon_seconds > 0:
            raise ConfigError(f"horizon_seconds is {self.horizon_seconds}, expected more than 0")
