"""Where every toy is at any time: one track per toy, a chain of rests and events.

Speeds are constant and stops are sharp: at the exact end of an event the toy is already at rest. Axis words: time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, pi
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from longtake.data.toybox.world import RADIUS, TICK_SECONDS, Box, Point, Script, ToyEvent

Number: TypeAlias = float | Float[np.ndarray, " time"]

HOP = 0.115
SHAKE = 0.055
NOD_RADIANS = 0.5
WOBBLE = 0.09
FAINT = 0.2
LIFT = 0.035
HAND_ABOVE = 0.15
SWAP_BOW = 0.17
TOUCH = 0.19
"""Distance of the centres when one toy bumps into another."""
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    """Numbers for one time, or arrays for many."""

    x: Number
    y: Number
    scale: Number
    angle: Number = 0.0
    """Radians, clockwise."""
    alpha: Number = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a track: a rest or an event."""

    start_seconds: float
    where: str
    """``off``, ``stage`` or ``box``."""
    rest: Pose
    event: ToyEvent | None = None
    passive: bool = False
    """The toy is the event's partner."""
    action: str = "idle"
    action_start_seconds: float = 0.0
    at_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One toy over the whole video."""

    starts: tuple[float, ...]
    stretches: tuple[Stretch, ...]

    def at(self, seconds: float) -> Stretch:
        return self.stretches[max(0, bisect_right(self.starts, seconds + _EPSILON) - 1)]


def pose_at(stretch: Stretch, seconds: Number, box: Box) -> Pose:
    """The pose during ``stretch``; ``seconds`` must lie in it."""
    event = stretch.event
    if event is None:
        return stretch.rest
    elapsed = np.maximum(seconds - event.start_seconds, 0.0)
    if stretch.passive and event.action == "swaps":
        return _swaps(event, elapsed, box, passive=True)
    if stretch.passive:
        return _is_bumped(event, elapsed, stretch)
    return _MOTIONS[event.action](event, elapsed, box)


def _part(event: ToyEvent, elapsed: Number) -> Number:
    return elapsed / (event.end_seconds - event.start_seconds)


def _beat(elapsed: Number) -> Number:
    """+1 and -1 in turn, one tick each."""
    return 1.0 - 2.0 * (np.floor(elapsed / TICK_SECONDS + _EPSILON) % 2.0)


def _along(start: Point, end: Point, part: Number) -> tuple[Number, Number]:
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part


def _travels(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    x, y = _along(event.origin, event.goal, _part(event, elapsed))
    return Pose(x=x, y=y, scale=event.scales[0])


def _carried(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    x, y = _along(event.origin, event.goal, _part(event, elapsed))
    return Pose(x=x, y=y - LIFT, scale=event.scales[0])


def _jumps(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    height = HOP * np.abs(np.sin(pi * event.beats * _part(event, elapsed)))
    return Pose(x=event.origin[0], y=event.origin[1] - height, scale=event.scales[0])


def _spins(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    x, y = event.origin
    return Pose(x=x, y=y, scale=event.scales[0], angle=2.0 * pi * event.beats * _part(event, elapsed))


def _blinks(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    x, y = event.origin
    alpha = (1.0 + FAINT) / 2.0 - (1.0 - FAINT) / 2.0 * _beat(elapsed)
    return Pose(x=x, y=y, scale=event.scales[0], alpha=alpha)


def _grows(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    before, after = event.scales
    wobble = WOBBLE * np.sin(2.0 * pi * elapsed) * (1.0 if after > before else -1.0)
    x, y = event.origin
    return Pose(x=x, y=y, scale=before + (after - before) * _part(event, elapsed) + wobble)


def _bumps(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    away = hypot(event.goal[0] - event.origin[0], event.goal[1] - event.origin[1])
    reach = 1.0 - TOUCH / away
    x, y = _along(event.origin, event.goal, reach * (1.0 - np.abs(1.0 - 2.0 * _part(event, elapsed))))
    return Pose(x=x, y=y, scale=event.scales[0])


def _is_bumped(event: ToyEvent, elapsed: Number, stretch: Stretch) -> Pose:
    """Jerks from the touch, half way, to the end."""
    rest = stretch.rest
    dx, dy = event.goal[0] - event.origin[0], event.goal[1] - event.origin[1]
    jerk = _beat(np.maximum(elapsed - (stretch.start_seconds - event.start_seconds), 0.0)) * SHAKE / hypot(dx, dy)
    return Pose(x=rest.x + dx * jerk, y=rest.y + dy * jerk, scale=rest.scale, angle=0.3 * jerk / SHAKE)


def _swaps(event: ToyEvent, elapsed: Number, box: Box, *, passive: bool = False) -> Pose:
    """The two go round each other, each bowing out to its own side of the line between the places."""
    start, end = (event.goal, event.origin) if passive else (event.origin, event.goal)
    part = _part(event, elapsed)
    x, y = _along(start, end, part)
    dx, dy = end[0] - start[0], end[1] - start[1]
    bow = SWAP_BOW * np.sin(pi * part) / hypot(dx, dy)
    x, y = x + dy * bow, y - dx * bow
    return Pose(x=np.clip(x, RADIUS, 1 - RADIUS), y=np.clip(y, RADIUS, 1 - RADIUS), scale=event.scales[0])


def _hides(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    return _through_mouth(event.origin, box, event.scales[0], _part(event, elapsed))


def _comes_out(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    return _through_mouth(event.goal, box, event.scales[0], 1.0 - _part(event, elapsed))


def _through_mouth(place: Point, box: Box, scale: float, part: Number) -> Pose:
    """Straight to above the box, then straight down into it, at one speed; big toys squeeze in."""
    mouth, inside = box.mouth, box.inside
    across = hypot(mouth[0] - place[0], mouth[1] - place[1])
    bend = across / (across + inside[1] - mouth[1])
    first, second = np.minimum(part / bend, 1.0), np.maximum(part - bend, 0.0) / (1.0 - bend)
    x, y = _along(place, mouth, first)
    return Pose(x=x, y=y + (inside[1] - mouth[1]) * second, scale=scale + (min(scale, 0.95) - scale) * second)


def _shakes(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    return Pose(x=event.origin[0] + SHAKE * _beat(elapsed), y=event.origin[1], scale=event.scales[0])


def _nods(event: ToyEvent, elapsed: Number, box: Box) -> Pose:
    x, y = event.origin
    return Pose(x=x, y=y, scale=event.scales[0], angle=NOD_RADIANS * _beat(elapsed))


_MOTIONS: dict[str, Callable[[ToyEvent, Number, Box], Pose]] = {
    "enters": _travels,
    "leaves": _travels,
    "jumps": _jumps,
    "spins": _spins,
    "blinks": _blinks,
    "grows": _grows,
    "shrinks": _grows,
    "bumps": _bumps,
    "swaps": _swaps,
    "hides": _hides,
    "comes out": _comes_out,
    "is carried": _carried,
    "slides": _travels,
    "shakes": _shakes,
    "nods": _nods,
}


def tracks(script: Script) -> tuple[Track, ...]:
    """One track per member of the cast, in the order of the cast."""
    builders = [_TrackBuilder(toy.start) for toy in script.cast]
    for event in script.events:
        builders[event.toy].add(event)
        if event.partner is not None:
            builders[event.partner].add(event, passive=True)
    return tuple(builder.track() for builder in builders)


class _TrackBuilder:
    """Strings one toy's events together."""

    def __init__(self, start: Point | None) -> None:
        self.place = start
        self.home = start
        self.scale = 1.0
        self.where = "off" if start is None else "stage"
        self.stretches = [self._rest(0.0)]

    def _rest(self, seconds: float) -> Stretch:
        x, y = self.place or (-1.0, 0.5)
        at_home = self.where == "stage" and self.place == self.home
        rest = Pose(x=x, y=y, scale=self.scale)
        return Stretch(
            start_seconds=seconds, where=self.where, rest=rest, at_home=at_home, action_start_seconds=seconds
        )

    def add(self, event: ToyEvent, *, passive: bool = False) -> None:
        swaps = event.action == "swaps"
        start = event.start_seconds
        action = event.action
        if passive and not swaps:
            start = touch_seconds(event)
            action = "is bumped"
        in_place = action not in ("enters", "leaves", "swaps", "hides", "comes out", "is carried", "slides", "bumps")
        x, y = self.place or event.origin
        self.stretches.append(
            Stretch(
                start_seconds=start,
                where="stage",
                rest=Pose(x=x, y=y, scale=self.scale),
                event=event,
                passive=passive,
                action=action,
                action_start_seconds=start,
                at_home=in_place and self.place == self.home,
            )
        )
        if not passive:
            self.scale = event.scales[1]
        self._move(event, passive=passive)
        self.stretches.append(self._rest(event.end_seconds))

    def _move(self, event: ToyEvent, *, passive: bool) -> None:
        if event.action in ("bumps", "is bumped"):
            return
        self.place = event.origin if passive else event.goal
        if event.action == "enters":
            self.home = event.goal
        self.where = {"leaves": "off", "hides": "box"}.get(event.action, "stage")

    def track(self) -> Track:
        return Track(starts=tuple(s.start_seconds for s in self.stretches), stretches=tuple(self.stretches))


def touch_seconds(event: ToyEvent) -> float:
    """When a bump touches its partner: half way, on a tick."""
    ticks = (event.end_seconds - event.start_seconds) / TICK_SECONDS
    return event.start_seconds + (ticks // 2) * TICK_SECONDS


def hand_at(event: ToyEvent, pose: Pose) -> Point:
    """Where the hand is that carries the toy."""
    return float(pose.x), float(pose.y) - HAND_ABOVE * event.scales[0]


def goes_through_mouth(stretch: Stretch) -> bool:
    """The toy must be drawn behind the front of the box."""
    return stretch.action in ("hides", "comes out")
