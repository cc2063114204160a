"""Writing a script: which move comes when.

The author goes forward in time and keeps a running account of what has happened; the further a kind of move is behind
its share, the likelier it comes next. Long videos are played in acts: the stage is cleared and a new cast comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp

from longtake.data.toybox.dice import Dice, seed_of
from longtake.data.toybox.moves import Move, draw_ticks, perform, possible_moves
from longtake.data.toybox.stage import Actor, Stage, seat_point
from longtake.data.toybox.world import (
    BACKDROPS,
    COLOURS,
    COUNTED,
    KINDS,
    TICK_SECONDS,
    Box,
    Look,
    Script,
    Span,
    Toy,
    ToyEvent,
)

DEFAULT_SECONDS = (40.0, 120.0)
ONE_ACT_SECONDS = 150.0
MEAN_ACT_SECONDS = 115.0
CLEARING_TICKS = 64
TOYS_KEPT = 2
"""So many toys of an act are in the cast of the next one, too."""
TAIL_TICKS = 2
"""Nothing happens in the last half second."""

SHARES = {"count": 0.445, "enter": 0.225, "leave": 0.17, "away": 0.04, "back": 0.13, "other": 0.16}
ANSWER_SHARES = {
    "count": {"first": 0.20, "second": 0.26, "third": 0.27, "fourth": 0.27},
    "enter": {"enters": 0.36, "comes back": 0.64},
}
OTHER_SHARES = {
    "grows": 0.2,
    "shrinks": 0.8,
    "bumps": 0.14,
    "swaps": 0.16,
    "hides": 0.17,
    "comes out": 2.0,
    "shakes": 0.1,
    "nods": 0.1,
}
UNHURRIED_SECONDS = 80.0
CATEGORY_PULL, ANSWER_PULL = 1.2, 2.5
OVERLAP_CHANCE = 0.085
MAX_OVERLAPPING = 0.2
ZERO_GAP, SHORT_GAP, LONG_GAP = 0.10, 0.86, 0.04


@dataclass(slots=True)
class Account:
    """What has happened so far, against what should."""

    categories: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    first_entries: float = 1.0
    """Weight of toys that enter for the first time; low in a short video, which leaves them no time to come back."""

    def note(self, move: Move) -> None:
        self.categories[move.category] += 1
        self.answers.setdefault(move.category, Counter())[move.answer] += 1

    def choose(self, moves: list[Move], dice: Dice) -> Move:
        """One of ``moves``: first what kind of move, then which answer of its memory kind, then who."""
        urges: dict[str, dict[str, float]] = {}
        for move in moves:
            urges.setdefault(move.category, {}).setdefault(move.answer, self._answer_urge(move))
        weights = {name: self._category_urge(name) * min(4.0, max(urges[name].values())) for name in sorted(urges)}
        category = dice.pick(list(weights), list(weights.values()))
        answers = {name: _share(category, name) * urges[category][name] for name in sorted(urges[category])}
        answer = dice.pick(list(answers), list(answers.values()))
        moves = [move for move in moves if move.category == category and move.answer == answer]
        return dice.pick(moves, [move.weight for move in moves])

    def _category_urge(self, name: str) -> float:
        behind = SHARES[name] * (sum(self.categories.values()) + 1) - self.categories[name]
        return SHARES[name] * exp(CATEGORY_PULL * behind)

    def _answer_urge(self, move: Move) -> float:
        """Above 1 if the answer has come too rarely so far, near 0 if it has come too often."""
        if move.category not in ANSWER_SHARES:
            return 1.0
        so_far = self.answers.get(move.category, Counter())
        behind = _share(move.category, move.answer) * (sum(so_far.values()) + 1) - so_far[move.answer]
        return exp(ANSWER_PULL * behind) * (self.first_entries if move.answer == "enters" else 1.0)


def _share(category: str, answer: str) -> float:
    return ANSWER_SHARES[category][answer] if category in ANSWER_SHARES else OTHER_SHARES.get(answer, 1.0)


class Author:
    """Writes one script from the first tick to the last.

    Args:
        dice: Decides everything.
        seconds: Length of the video; drawn from 40 to 120 s if None.
        routine: Actions that one toy, which does nothing else, does in this order, one in each equal part of the video;
            no other toy does any of them, nor any counted action.
    """

    def __init__(self, dice: Dice, seconds: float | None, routine: Sequence[str] = ()) -> None:
        self.dice = dice
        length = dice.integer(int(DEFAULT_SECONDS[0]), int(DEFAULT_SECONDS[1])) if seconds is None else seconds
        self.total_ticks = round(length / TICK_SECONDS)
        self.events: list[ToyEvent] = []
        self.cast: list[Toy] = []
        self.used: Counter[tuple[str, str]] = Counter()
        self.actors: dict[tuple[str, str], Actor] = {}
        self.acts: list[Span] = []
        self.overlapping: set[int] = set()
        self.routine = list(routine)
        self.appointments = self._appointments()
        colour = dice.pick(((150, 112, 74), (134, 104, 84), (158, 124, 92)))
        self.stage = Stage(box=Box(right=dice.chance(0.5), colour=colour), pace=min(1.0, length / UNHURRIED_SECONDS))
        self.account = Account(first_entries=max(0.3, self.stage.pace))
        self.look = Look(
            backdrop=dice.pick(BACKDROPS),
            hue=dice.uniform(0.0, 1.0),
            seed=seed_of("look", dice.uniform(0.0, 1.0)),
            noise=dice.uniform(2.0, 4.0),
        )

    @property
    def last_tick(self) -> int:
        return self.total_ticks - TAIL_TICKS

    def write(self) -> None:
        self._place_idle_toys()
        tick = 0
        for end in self._act_ends():
            start = tick
            self._new_cast(first=start == 0)
            last = end == self.total_ticks
            tick = self._play(tick, self.last_tick if last else end - CLEARING_TICKS)
            tick = self.total_ticks if last else self._clear_stage(tick)
            self.acts.append((start * TICK_SECONDS, min(tick, self.total_ticks) * TICK_SECONDS))
            if tick >= self.total_ticks:
                break
        self.acts[-1] = (self.acts[-1][0], self.total_ticks * TICK_SECONDS)

    def is_sound(self) -> bool:
        """Few enough overlaps, and no appointment missed."""
        return len(self.overlapping) <= MAX_OVERLAPPING * len(self.events) and not self.appointments

    def script(self, seed: int, split: str, label: str | None = None) -> Script:
        """Everything written, without toys that were meant to enter but never did."""
        appeared = {event.toy for event in self.events}
        kept = [index for index, toy in enumerate(self.cast) if toy.start is not None or index in appeared]
        index_of = {old: new for new, old in enumerate(kept)}
        index_of_partner = {None: None, **index_of}
        events = [
            replace(event, toy=index_of[event.toy], partner=index_of_partner[event.partner]) for event in self.events
        ]
        return Script(
            seed=seed,
            split=split,
            seconds=self.total_ticks * TICK_SECONDS,
            cast=tuple(self.cast[index] for index in kept),
            box=self.stage.box,
            look=self.look,
            events=tuple(sorted(events, key=lambda event: (event.start_seconds, event.end_seconds))),
            acts=tuple(self.acts),
            label=label,
        )

    def _act_ends(self) -> list[int]:
        seconds = self.total_ticks * TICK_SECONDS
        acts = 1 if seconds <= ONE_ACT_SECONDS else max(2, round(seconds / MEAN_ACT_SECONDS))
        borders = [self.total_ticks * (act + 1) / acts for act in range(acts)]
        return [round(b + self.dice.uniform(-30, 30)) for b in borders[:-1]] + [self.total_ticks]

    def _place_idle_toys(self) -> None:
        stage = self.stage
        for kind in self.dice.shuffled(KINDS)[: self.dice.integer(1, 2)]:
            seats = [s for s in stage.free_seats(0, Actor(toy=-1, name="")) if s not in stage.idle_seats]
            seat = self.dice.pick(stage.roomy(seats))
            stage.idle_seats.add(seat)
            colour = self.dice.pick(COLOURS)
            self.cast.append(Toy(kind=kind, colour=colour, idle=True, start=seat_point(seat, self.dice)))

    def _new_cast(self, *, first: bool) -> None:
        """Distinct kinds: some toys of the act before, the others in a colour least used so far for the kind."""
        dice, stage = self.dice, self.stage
        taken_kinds = {toy.kind for toy in self.cast if toy.idle}
        length = self.total_ticks * TICK_SECONDS
        known = dice.shuffled(stage.actors)[:TOYS_KEPT]
        if first:
            size = 4 if length < 70.0 else dice.integer(4, 5) if length < 100.0 else dice.integer(5, 6)
        else:
            size = dice.integer(4, 5)
        on_stage = self._on_stage_at_first() if first else 0
        stage.actors = []
        for toy in [self.cast[actor.toy] for actor in known]:
            stage.actors.append(self._actor(toy.kind, toy.colour, on_stage=False))
            taken_kinds.add(toy.kind)
        for kind in dice.shuffled([kind for kind in KINDS if kind not in taken_kinds])[: size - len(known)]:
            fewest = min(self.used[kind, colour] for colour in COLOURS)
            colour = dice.pick([colour for colour in COLOURS if self.used[kind, colour] == fewest])
            self.used[kind, colour] += 1
            stage.actors.append(self._actor(kind, colour, on_stage=len(stage.actors) < on_stage))

    def _on_stage_at_first(self) -> int:
        """One or two toys that act stand there from the start; sometimes three if there is room."""
        if self.dice.chance(0.12):
            return 1
        return 3 if len(self.cast) == 1 and self.dice.chance(0.5) else 2

    def _actor(self, kind: str, colour: str, *, on_stage: bool) -> Actor:
        """The toy's place in the cast: the one it had if it was in an earlier act."""
        stage = self.stage
        actor = self.actors.get((kind, colour))
        point = None
        if actor is None:
            actor = Actor(toy=len(self.cast), name=f"{colour} {kind}")
            self.actors[kind, colour] = actor
            if on_stage:
                seat = self.dice.pick(stage.roomy(stage.free_seats(0, actor)))
                point = seat_point(seat, self.dice)
                actor.where, actor.seen = "stage", True
                actor.seat, actor.point, actor.home = seat, point, (seat, point)
                actor.visited.add(seat)
            self.cast.append(Toy(kind=kind, colour=colour, start=point, acts=()))
        toy = self.cast[actor.toy]
        self.cast[actor.toy] = replace(toy, acts=(*toy.acts, len(self.acts)))
        return actor

    def _play(self, tick: int, until: int) -> int:
        """Events from ``tick`` on that end by ``until``; the tick at which the last one ends."""
        start = tick + (0 if tick else self.dice.integer(1, 8))
        end = tick
        refused = 0
        while start < until - 8 and refused < 12:
            move = self._choose(start)
            ticks = draw_ticks(move, self.dice) if move else 0
            if move is None or start + ticks > until:
                refused += 1
                start += 0 if move else 4
                continue
            self._perform(move, start, ticks)
            end = max(end, start + ticks)
            start = self._next_start(start, end)
        return end

    def _choose(self, start: int) -> Move | None:
        """What happens at ``start``: the routine's next action if it is due, any other move otherwise."""
        moves = list(possible_moves(self.stage, start))
        if self.routine:
            hero = self.stage.actors[0]
            if self.appointments and self.appointments[0] <= start and hero.is_free(start):
                action = self.routine[-len(self.appointments)]
                return next(move for move in moves if move.action == action and move.actor is hero)
            reserved = {*self.routine, *COUNTED}
            moves = [m for m in moves if m.action not in reserved and hero not in (m.actor, m.partner)]
        moves = [move for move in moves if move.weight >= 1.0 or self.dice.chance(move.weight)]
        return self.account.choose(moves, self.dice) if moves else None

    def _perform(self, move: Move, start: int, ticks: int) -> None:
        event = perform(move, self.stage, self.dice, start, ticks)
        for index in range(max(0, len(self.events) - 3), len(self.events)):
            if self.events[index].end_seconds > event.start_seconds:
                self.overlapping |= {index, len(self.events)}
        self.events.append(event)
        self.account.note(move)
        if self.routine and move.actor is self.stage.actors[0]:
            self.appointments.pop(0)

    def _next_start(self, start: int, end: int) -> int:
        dice = self.dice
        due = self.appointments[0] if self.appointments else self.total_ticks
        if end - start > 6 and dice.chance(OVERLAP_CHANCE):
            return dice.integer(start + 3, end - 2)
        kind = dice.pick(("zero", "short", "long"), (ZERO_GAP, SHORT_GAP, LONG_GAP))
        gap = 0
        if kind == "long":
            gap = dice.integer(24, 80)
        elif kind == "short":
            gap = 1
            while gap < 24 and dice.chance(0.835):
                gap += 1
        return min(end + gap, max(end, due))

    def _appointments(self) -> list[int]:
        """Ticks at which the routine's actions are due: one in each equal part of the video."""
        part = (self.total_ticks - 32) / max(1, len(self.routine))
        return [round(part * (index + self.dice.uniform(0.15, 0.85))) for index in range(len(self.routine))]

    def _clear_stage(self, tick: int) -> int:
        """Everyone leaves; the tick at which the stage is empty."""
        start = tick + 4
        while any(actor.where != "off" for actor in self.stage.actors):
            wanted = ("leaves", "comes out")
            moves = [move for move in possible_moves(self.stage, start) if move.action in wanted]
            if not moves:
                start += 1
                continue
            move = self.dice.pick(moves)
            ticks = draw_ticks(move, self.dice)
            if start + ticks > self.last_tick:
                return self.total_ticks
            self._perform(move, start, ticks)
            tick = start + ticks
            start = tick + self.dice.integer(0, 4)
        return tick + self.dice.integer(2, 10)
