"""The nouns of public data sets, as their annotations have them: no file is opened here.

Times are seconds from the start of the video, whatever unit a data set writes. Ids are text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["choice", "count", "yes-no", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a video's file may lie, and which part of it is meant."""

    path: str
    """The end of the file's path; its ending (``.mp4``, ``.mkv``) does not matter."""
    start_seconds: float = 0.0
    end_seconds: float | None = None
    """Frames later than this are not to be seen; None: to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """A video by its id in the annotations."""

    name: str
    places: tuple[Place, ...]
    """The first at which there is a file is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about a video."""

    key: str
    """Unique in the data set, as its result files name it."""
    video: str
    question: str
    kind: Kind = "choice"
    options: tuple[str, ...] = ()
    """Of a choice, without letters."""
    gold: int | None = None
    """Index of the right option; None: not public, or no choice."""
    answer: str = ""
    """The right answer as text: an option, a number, Yes or No, free words; empty: not public."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """What the data set tells questions apart by: ``type`` always, others as it has them."""
    at_seconds: float | None = None
    """Asked at this moment of the video, of which later frames must not be seen; None: at its end."""

    @property
    def type(self) -> str:
        return self.tags.get("type", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedText:
    """One annotated event."""

    start_seconds: float
    end_seconds: float | None
    """None: the end of the video, which the annotations do not say."""
    text: str
    """Empty where it is withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions about videos."""

    videos: tuple[Video, ...]
    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()
    """What was left out of the annotations, or is to be known about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captions:
    """What happens in videos, told by one annotator or by several."""

    videos: tuple[Video, ...]
    references: tuple[Mapping[str, tuple[TimedText, ...]], ...]
    """By annotator; not each has told of every video."""
    durations: Mapping[str, float]
    """Where the annotations say it."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Videos, each of one class."""

    videos: tuple[Video, ...]
    classes: tuple[str, ...]
    labels: Mapping[str, str]
    notes: tuple[str, ...] = ()


Samples: TypeAlias = Questions | Captions | Labels


def video_at(name: str, *paths: str) -> Video:
    """A video whose whole file lies at one of the paths; by default its name."""
    return Video(name=name, places=tuple(Place(path=path) for path in paths or (name,)))
