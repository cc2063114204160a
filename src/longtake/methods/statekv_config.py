"""Every choice of a StateKV model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from longtake.errors import ConfigError
from longtake.state.kv import RULES
from longtake.state.retrieval import RETRIEVALS

CHOICES: dict[str, tuple[str, ...]] = {
    "policy": tuple(RULES),
    "select": ("kv-head", "layer"),
    "at_horizon": ("stop", "reanchor", "compact"),
    "detailed": ("memory", "int8", "disk"),
    "answer": ("whole", "bounded"),
    "retrieve": tuple(RETRIEVALS),
}
MOST = {
    "budget": 10_000_000,
    "fps": 60.0,
    "height": 8192,
    "width": 8192,
    "horizon_seconds": 1e8,
    "caption_seconds": 86_400.0,
    "max_new_tokens": 32_768,
    "answer_chunks": 1_000_000,
    "detailed_bytes": 1 << 50,
}
"""Beyond these a number is a slip of the hand."""
FREE_TO_CHANGE = (
    "detailed_bytes",
    "detailed_folder",
    "answer_chunks",
    "max_new_tokens",
    "caption_seconds",
    "caption_question",
)


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
    at_horizon: Literal["stop", "reanchor", "compact"] = "stop"
    """When the positions that the model serves are used: end the stream; let go of what lies before the oldest carried
    key (exact for the rest; for policies without sinks); or halve all distances (approximate)."""
    caption_seconds: float = 8.0
    """Between two decoding points."""
    caption_question: str = (
        "What happened between {start} and {end} seconds of the video? "
        "Answer in one short sentence. If nothing happened, say: nothing."
    )
    """Put at each decoding point, with the seconds since the one before."""
    max_new_tokens: int = 256
    detailed: Literal["memory", "int8", "disk"] = "memory"
    """Where the detailed cache is held, which answers are read from."""
    detailed_bytes: int = 8 << 30
    """Most that it may take, on disk too."""
    detailed_folder: str | None = None
    """``disk``: a folder of yours, whose files stay and which snapshots refer to; None: a temporary one."""
    answer: Literal["whole", "bounded"] = "whole"
    """Read all of it, or per layer the chunks that fit the question best, and the carried keys."""
    answer_chunks: int = 32
    """``bounded``: so many, beside the first chunk and the newest four."""
    retrieve: Literal["peaks", "mean"] = "peaks"
    """``bounded``: how well a chunk fits, by ``longtake.state.retrieval.RETRIEVALS``."""

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(allowed)}")
        for name, most in MOST.items():
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value}, expected more than 0")
            if value is not None and value > most:
                raise ConfigError(f"{name} is {value}, expected at most {most:.15g}")
        if self.fps < 1 / 60:
            raise ConfigError(f"fps is {self.fps}, expected at least one frame a minute (0.0167)")
        try:
            self.caption_question.format(start="0.0", end="8.0")
        except (LookupError, ValueError) as error:
            raise ConfigError(
                f"caption_question is {self.caption_question!r}, expected words with {{start}} and {{end}}"
            ) from error
        if not 0 <= self.sinks < self.budget:
            wanted = "0 or more" if self.sinks < 0 else f"fewer than the budget of {self.budget}"
            raise ConfigError(f"sinks is {self.sinks}, expected {wanted}")
        if self.detailed_folder is not None and self.detailed != "disk":
            raise ConfigError(f"detailed is {self.detailed!r} but a detailed_folder is given; say detailed = 'disk'")

    def of_states(self) -> dict[str, Any]:
        """The choices that a stream's state depends on; the others may change when it is resumed."""
        return {name: value for name, value in asdict(self).items() if name not in FREE_TO_CHANGE}
