"""The stage while a script is being written: who stands where, until when, and what each toy has done so far.

Times here are whole ticks. Nothing outside ``moves.py``, ``schedule.py`` and ``routines.py`` uses this mutable state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from longtake.data.toybox.dice import Dice
from longtake.data.toybox.world import RADIUS, Box, Point

COLUMNS = (0.13, 0.375, 0.625, 0.87)
ROWS = (0.21, 0.51, 0.82)
NUM_SEATS = len(COLUMNS) * len(ROWS)
JITTER = 0.012
MAX_ON_STAGE = 5
REST_TICKS = 4
"""A toy rests at least this long between two events of its own, so that one does not run into the next."""

TickSpan = tuple[int, int]


@dataclass(slots=True)
class Actor:
    """One toy as the script's author sees it at the moment of writing."""

    toy: int
    name: str
    where: str = "off"
    """``off``, ``stage`` or ``box``, as it will be once its last event has ended."""
    seat: int | None = None
    point: Point = (0.0, 0.0)
    scale: float = 1.0
    busy_until: int = -REST_TICKS
    home: tuple[int, Point] | None = None
    """Seat and point where it stood when it last came on stage."""
    home_span: TickSpan | None = None
    """When it was last at home; None while it is there."""
    settled: int = 0
    """When it came to its present place."""
    visited: set[int] = field(default_factory=set)
    """Seats it has stood on since it came on stage."""
    done: dict[str, list[TickSpan]] = field(default_factory=dict)
    """Spans of the counted actions, oldest first."""
    patience: dict[str, int] = field(default_factory=dict)
    """Per counted action and for ``leaves``: the tick before which it is not followed up, so that memories age."""
    left: TickSpan | None = None
    """When it last left the stage."""
    seen: bool = False

    def is_free(self, tick: int) -> bool:
        return tick >= self.busy_until + REST_TICKS

    def displaced(self) -> bool:
        return self.home_span is not None


@dataclass(slots=True)
class Stage:
    """All toys of the act, idle ones included, and the seats."""

    box: Box
    actors: list[Actor] = field(default_factory=list)
    idle_seats: set[int] = field(default_factory=set)
    vacant_from: dict[int, int] = field(default_factory=dict)
    """Tick from which a seat that was given up is really empty."""
    box_free_from: int = 0
    pace: float = 1.0
    """Below 1 in a short video: memories are followed up sooner."""

    def on_stage(self) -> int:
        return len(self.idle_seats) + sum(actor.where == "stage" for actor in self.actors)

    def taken(self) -> set[int]:
        return self.idle_seats | {actor.seat for actor in self.actors if actor.seat is not None}

    def box_seat(self) -> int:
        return NUM_SEATS - 1 if self.box.right else NUM_SEATS - len(COLUMNS)

    def free_seats(self, tick: int, actor: Actor, *, keep_homes: bool = True) -> list[int]:
        """Seats that are empty at ``tick``, where ``actor`` has not stood since it came, and no one's home."""
        taken = self.taken() | {self.box_seat()} | actor.visited
        if keep_homes:
            taken |= {a.home[0] for a in self.actors if a.home is not None and a.where != "off" and a is not actor}
        return [s for s in range(NUM_SEATS) if s not in taken and self.vacant_from.get(s, 0) <= tick]

    def home_is_free(self, actor: Actor, tick: int) -> bool:
        home = actor.home
        return home is not None and home[0] not in self.taken() and self.vacant_from.get(home[0], 0) <= tick

    def roomy(self, seats: list[int]) -> list[int]:
        """Those of ``seats`` with no one right beside them, or all if there are none."""
        taken = self.taken() | {self.box_seat()}
        return [s for s in seats if not any(n in taken for n in neighbours(s))] or seats

    def give_up(self, actor: Actor, tick: int) -> None:
        """The actor's seat is empty from ``tick`` on."""
        if actor.seat is not None:
            self.vacant_from[actor.seat] = tick
        actor.seat = None


def neighbours(seat: int) -> Iterator[int]:
    """Seats to the left and right in the same row."""
    row, column = divmod(seat, len(COLUMNS))
    for beside in (column - 1, column + 1):
        if 0 <= beside < len(COLUMNS):
            yield row * len(COLUMNS) + beside


def seat_point(seat: int, dice: Dice) -> Point:
    row, column = divmod(seat, len(COLUMNS))
    return COLUMNS[column] + dice.uniform(-JITTER, JITTER), ROWS[row] + dice.uniform(-JITTER, JITTER)


def same_row(seat: int, other: int) -> bool:
    return seat // len(COLUMNS) == other // len(COLUMNS)


def outside(side: str, y: float, scale: float) -> Point:
    """Just out of sight on one side."""
    margin = RADIUS * scale + 0.01
    return (-margin if side == "left" else 1.0 + margin), y
