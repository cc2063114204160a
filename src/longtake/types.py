"""The nouns of longtake: what flows from a video to an answer. No logic beyond self-checks.

Times are seconds from the video's first frame, taken from the demuxer's presentation timestamps; they are never an
index divided by a frame rate. ``Event.to_dict`` is the JSON line of the command line and the message of the server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from jaxtyping import UInt8
from torch import Tensor

from longtake.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """One picture of the video, upright, 8-bit RGB."""

    rgb: UInt8[np.ndarray, "height width 3"]
    pts_seconds: float
    """Seconds from the video's first frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSpec:
    """What a model wants from ``video/``: how many frames per ``advance``, how often, and how large."""

    num_frames: int
    """Frames per segment; only the last segment of a video may be shorter."""
    fps: float
    """Frames per second of the sampling grid."""
    height: int
    """Pixels."""
    width: int
    """Pixels."""

    def __post_init__(self) -> None:
        for name in ("num_frames", "fps", "height", "width"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"segment spec: {name} is {getattr(self, name)}, expected a number above 0")

    @property
    def seconds(self) -> float:
        """Length of a full segment on the sampling grid."""
        return self.num_frames / self.fps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """The frames taken in by one ``advance``."""

    pixels: UInt8[Tensor, "time 3 height width"]
    pts_seconds: tuple[float, ...]
    """True time of each frame's picture, one per frame, never decreasing (a held frame keeps its time)."""
    index: int
    """Number of the segment in its stream, from 0."""
    start_seconds: float
    """Grid time at which the segment begins."""
    end_seconds: float
    """Grid time just after the segment's last frame; the next segment starts here unless there is a gap."""
    total_seconds: float | None = None
    """Length of the source if it is known; advice only."""

    def __post_init__(self) -> None:
        if not self.pixels.shape[0] == len(self.pts_seconds) > 0:
            raise ConfigError(
                f"segment {self.index}: {self.pixels.shape[0]} frames with {len(self.pts_seconds)} timestamps; "
                "expected one timestamp per frame and at least one frame"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """Ask for the events that ended in the segment just taken in (a decoding point)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask a question in words."""

    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """Ask a multiple-choice question."""

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify:
    """Ask for the most probable labels."""

    labels: tuple[str, ...] = ()
    """Empty: the labels the model was trained with."""
    top: int = 5
    prompt: str | None = None
    """What is said of a label when it is compared as text, ``{}`` in its place; None: the model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """Ask for one vector for what has been seen."""


Request: TypeAlias = Caption | Ask | Choose | Classify | Embed


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, with its true time span."""

    start_seconds: float
    end_seconds: float
    text: str
    score: float = 1.0
    """Probability the model gives to this event's words, in [0, 1]."""
    start_clamped: bool = False
    """The event began before the earliest start the model can express, or states an earlier one than can be."""
    end_clamped: bool = False
    """The model states a later end than can be."""

    def to_dict(self, video: str) -> dict[str, object]:
        """The event as the JSON line of the command line."""
        line: dict[str, object] = {
            "video": video,
            "start": round(self.start_seconds, 3),
            "end": round(self.end_seconds, 3),
            "sentence": self.text,
            "score": round(self.score, 4),
        }
        flags = {"start_clamped": self.start_clamped, "end_clamped": self.end_clamped}
        return line | {name: True for name, is_set in flags.items() if is_set}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to ``Ask`` or ``Choose``."""

    text: str
    choice: int | None = None
    """Index of the chosen option, for ``Choose``."""
    probabilities: tuple[float, ...] = ()
    """One per option, for ``Choose``."""
    at_seconds: float = 0.0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One class with its probability."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embedding:
    """A vector for the stretch of video from ``start_seconds`` to ``end_seconds``."""

    vector: Tensor
    start_seconds: float
    end_seconds: float


Response: TypeAlias = Event | Answer | Label | Embedding


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a session stands; a terminal bar, a JSON line and a web gauge are three renderings of it."""

    seen_seconds: float
    """Video time taken in so far."""
    lag_seconds: float = 0.0
    """How far the session is behind a live source; 0 for files."""
    realtime_factor: float = 0.0
    """Video seconds taken in per second of work."""
    state_bytes: int = 0
    dropped_frames: int = 0
    total_seconds: float | None = None
    """Length of the source if it is known (advice only)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What the reader saw in one source; ``longtake probe`` prints it. Final only once the source has ended."""

    frames: int
    first_pts: float
    """Always 0.0: times count from the first frame shown."""
    last_pts: float
    start_time: float
    """Media time of the first frame, as the container has it."""
    duration: float | None
    """Seconds the container declares; None if it declares none."""
    width: int
    """Pixels after rotation."""
    height: int
    rotation: int
    """Degrees clockwise that were applied."""
    lost_frames: int = 0
    warnings: tuple[str, ...] = field(default=())
