"""The nouns of Toybox: what a script says. No logic beyond look-ups.

Places and lengths are fractions of the frame's side, x to the right and y downwards; times are seconds; every event
starts and ends on a tick of a quarter of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

TOYBOX_VERSION = "1"
"""Changes whenever the same seed would give another script or other pixels."""

TICK_SECONDS = 0.25
FPS = 8

KINDS = (
    "car",
    "ball",
    "star",
    "fish",
    "kite",
    "cup",
    "key",
    "boat",
    "tree",
    "house",
    "hat",
    "bell",
    "duck",
    "mushroom",
    "rocket",
    "umbrella",
)
COLOURS = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
COUNTED = ("jumps", "spins", "blinks")
"""Actions whose sentence says for which time this toy does it."""
ACTIONS = (
    "idle",
    "enters",
    "leaves",
    *COUNTED,
    "grows",
    "shrinks",
    "bumps",
    "swaps",
    "hides",
    "comes out",
    "is carried",
    "slides",
    "shakes",
    "nods",
    "is bumped",
)
"""Index 0 is rest; ``is bumped`` is the passive side of ``bumps`` and is never an event of its own."""
ORDINALS = ("first", "second", "third", "fourth")
BACKDROPS = ("room", "meadow", "tiles", "night")

RADIUS = 0.11
"""Of a toy of normal size."""
BIG = 1.35
"""Scale of a toy that has grown."""
BOX_WIDTH, BOX_HEIGHT = 0.26, 0.25
BOX_TOP = 0.985 - BOX_HEIGHT

Point: TypeAlias = tuple[float, float]
Span: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """One toy of a video; its kind is its own among the toys of the same act."""

    kind: str
    colour: str
    idle: bool = False
    """It stands there for the whole video and never acts."""
    start: Point | None = None
    """Where it stands when the video begins; None if it enters later."""
    acts: tuple[int, ...] = (0,)
    """Indices into ``Script.acts``: when the toy is in the cast. An idle toy is always."""

    @property
    def name(self) -> str:
        return f"{self.colour} {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWord:
    """Words of a sentence that are true or false depending on what was seen before the event."""

    kind: str
    """``first_back`` (enters or comes back), ``count`` (first to fourth time) or ``place`` (new place or back)."""
    word: str
    """The answer, one of the kind's alternatives."""
    start_char: int
    end_char: int
    needs_memory: bool
    """True where the words would be false without something seen before (counted conservatively: ``first`` is not)."""
    reach_seconds: float = 0.0
    """From the end of the most recent needed evidence to the start of the event; 0 where nothing is needed."""
    evidence: tuple[Span, ...] = ()
    """What must have been seen, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyEvent:
    """Something a toy does, with the sentence that tells it."""

    start_seconds: float
    end_seconds: float
    action: str
    toy: int
    """Index into ``Script.cast``."""
    sentence: str
    partner: int | None = None
    direction: str | None = None
    """``left`` or ``right`` where the sentence says so."""
    memory: tuple[MemoryWord, ...] = ()
    origin: Point
    """Where the toy stands (or comes from) at the start."""
    goal: Point
    """Where it stands (or has gone) at the end; for a bump, where the partner stands."""
    scales: tuple[float, float] = (1.0, 1.0)
    """Before and after."""
    beats: int = 0
    """Hops of a jump; signed turns of a spin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The open box in a bottom corner."""

    right: bool
    colour: tuple[int, int, int]

    @property
    def x(self) -> float:
        """Of its middle."""
        return 1.0 - 0.015 - BOX_WIDTH / 2 if self.right else 0.015 + BOX_WIDTH / 2

    @property
    def mouth(self) -> Point:
        """Where a toy's centre is just before it goes in."""
        return self.x, BOX_TOP - 0.10

    @property
    def inside(self) -> Point:
        """Where a hidden toy's centre is."""
        return self.x, BOX_TOP + 0.14


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Backdrop, light and camera."""

    backdrop: str
    hue: float
    """In [0, 1]: varies the backdrop's colours."""
    seed: int
    """Of the backdrop's details, the light drift and the camera noise."""
    noise: float
    """Standard deviation of the camera noise at 128 pixels, in grey levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole video as a value: cast, stage and events, in order of their start."""

    seed: int
    split: str
    seconds: float
    cast: tuple[Toy, ...]
    box: Box
    look: Look
    events: tuple[ToyEvent, ...]
    acts: tuple[Span, ...]
    """Spans with one cast each; a video up to 150 s has one."""
    fps: int = FPS
    tick_seconds: float = TICK_SECONDS
    label: str | None = None
    """Class of a routine; None in other splits."""
