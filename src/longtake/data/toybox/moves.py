"""What a toy may do next and what follows from it: each move reads the stage, changes it and returns its event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd, hypot

from longtake.data.toybox import sentences
from longtake.data.toybox.dice import Dice
from longtake.data.toybox.stage import (
    MAX_ON_STAGE,
    REST_TICKS,
    Actor,
    Stage,
    TickSpan,
    outside,
    same_row,
    seat_point,
)
from longtake.data.toybox.world import BIG, COUNTED, ORDINALS, TICK_SECONDS, MemoryWord, Point, Span, ToyEvent

MIN_REACH_TICKS, MAX_REACH_TICKS = 8, 160
"""Needed evidence ended 2 to 40 s ago; a few per cent may be older."""
TOO_OLD_WEIGHT = 0.15
PATIENCE_SKEW = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Something that could happen now."""

    category: str
    answer: str
    """Which of the alternatives of its memory kind; the action where there is none."""
    action: str
    actor: Actor
    partner: Actor | None = None
    weight: float = 1.0
    """Against moves of the same answer; below 1 also the chance that the move is thought of at all."""


def possible_moves(stage: Stage, tick: int) -> Iterator[Move]:
    """All moves that keep the rules of the world if they start at ``tick``."""
    for actor in stage.actors:
        if not actor.is_free(tick):
            continue
        if actor.where == "off":
            yield from _arrivals(stage, actor, tick)
        elif actor.where == "box":
            if stage.box_free_from <= tick and stage.on_stage() < MAX_ON_STAGE and stage.free_seats(tick, actor):
                yield Move(category="other", answer="comes out", action="comes out", actor=actor)
        else:
            yield Move(category="leave", answer="leaves", action="leaves", actor=actor)
            yield from _counted_moves(actor, tick)
            yield from _place_moves(stage, actor, tick)
            yield from _other_moves(stage, actor, tick)


def _arrivals(stage: Stage, actor: Actor, tick: int) -> Iterator[Move]:
    if stage.on_stage() >= MAX_ON_STAGE:
        return
    if not actor.seen:
        yield Move(category="enter", answer="enters", action="enters", actor=actor)
    elif weight := _reach_weight(actor.left, actor.patience["leaves"] if actor.left else 0, tick):
        yield Move(category="enter", answer="comes back", action="enters", actor=actor, weight=weight)


def _counted_moves(actor: Actor, tick: int) -> Iterator[Move]:
    for action in COUNTED:
        done = actor.done.get(action, [])
        weight = _reach_weight(done[-1], actor.patience[action], tick) if done else 1.0
        if len(done) < len(ORDINALS) and weight:
            yield Move(category="count", answer=ORDINALS[len(done)], action=action, actor=actor, weight=weight)


def _place_moves(stage: Stage, actor: Actor, tick: int) -> Iterator[Move]:
    seats = stage.free_seats(tick, actor)
    if seats:
        yield Move(category="away", answer="away", action="is carried", actor=actor)
    if any(same_row(seat, actor.seat or 0) for seat in seats):
        yield Move(category="away", answer="away", action="slides", actor=actor)
    if actor.displaced() and stage.home_is_free(actor, tick) and (weight := _reach_weight(actor.home_span, 0, tick)):
        for action in ("is carried", "slides"):
            yield Move(category="back", answer="back", action=action, actor=actor, weight=weight)


def _other_moves(stage: Stage, actor: Actor, tick: int) -> Iterator[Move]:
    size = "grows" if actor.scale == 1.0 else "shrinks"
    yield Move(category="other", answer=size, action=size, actor=actor)
    yield Move(category="other", answer="shakes", action="shakes", actor=actor)
    yield Move(category="other", answer="nods", action="nods", actor=actor)
    if stage.box_free_from <= tick and all(other.where != "box" for other in stage.actors):
        yield Move(category="other", answer="hides", action="hides", actor=actor)
    for other in stage.actors:
        if other is actor or other.where != "stage" or not other.is_free(tick):
            continue
        apart = hypot(actor.point[0] - other.point[0], actor.point[1] - other.point[1])
        if apart > 0.4:
            yield Move(category="other", answer="bumps", action="bumps", actor=actor, partner=other)
        if other.point[0] - actor.point[0] > 0.2 and not ({actor.seat} & other.visited or {other.seat} & actor.visited):
            yield Move(category="other", answer="swaps", action="swaps", actor=actor, partner=other)


def _reach_weight(evidence: TickSpan | None, not_before: int, tick: int) -> float:
    """0 while the evidence is too fresh; grows until it is nearly too old."""
    if evidence is None or tick < max(evidence[1] + MIN_REACH_TICKS, not_before):
        return 0.0
    reach = tick - evidence[1]
    return 1.0 + 2.0 * reach / MAX_REACH_TICKS if reach <= MAX_REACH_TICKS else TOO_OLD_WEIGHT


def _patience(stage: Stage, dice: Dice) -> int:
    """Ticks that must pass before something is followed up: 2 to 30 s, more often few than many."""
    return MIN_REACH_TICKS + int(112 * stage.pace * dice.uniform(0.0, 1.0) ** PATIENCE_SKEW)


def draw_ticks(move: Move, dice: Dice) -> int:
    """How long the move will take: 2 to 6 s, moves across the stage 2 to 4 s."""
    if move.action in ("jumps", "spins", "nods", "shakes"):
        return dice.integer(8, 20) if dice.chance(0.85) else dice.integer(20, 24)
    if move.action == "blinks":
        return 2 * dice.integer(4, 9) + 1
    if move.action in ("grows", "shrinks"):
        return dice.integer(8, 18)
    if move.action == "slides":
        return dice.integer(8, 10)
    if move.action in ("is carried", "hides", "comes out", "swaps"):
        return dice.integer(8, 13)
    return dice.integer(8, 16)


def perform(move: Move, stage: Stage, dice: Dice, start: int, ticks: int) -> ToyEvent:
    """Write the event down and bring the stage to where it will be when the event has ended."""
    end = start + ticks
    event = _PERFORM[move.action](move, stage, dice, (start, end))
    for actor in (move.actor, move.partner):
        if actor is not None:
            actor.busy_until = end
    return event


def _enters(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    actor.visited.clear()
    seat = dice.pick(stage.roomy(stage.free_seats(span[0], actor)))
    side = dice.pick(("left", "right"))
    again = actor.seen
    sentence = sentences.enters_sentence(actor.name, side, again=again)
    word = "comes back" if again else "enters"
    event = _event(
        move,
        span,
        sentence,
        goal=seat_point(seat, dice),
        side=side,
        memory=_memory(sentence, "first_back", word, (actor.left,) if again else (), span),
    )
    actor.home = (seat, event.goal)
    actor.home_span = None
    actor.where, actor.seen = "stage", True
    _settle(actor, stage, seat, event.goal, span)
    return event


def _leaves(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    side = dice.pick(("left", "right"))
    event = _event(move, span, sentences.leaves_sentence(actor.name, side), side=side)
    stage.give_up(actor, span[1])
    actor.where, actor.left = "off", span
    actor.patience["leaves"] = span[1] + _patience(stage, dice)
    return event


def _counted(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    done = actor.done.setdefault(move.action, [])
    sentence = sentences.counted_sentence(actor.name, move.action, len(done) + 1)
    memory = _memory(sentence, "count", ORDINALS[len(done)], tuple(done), span)
    done.append(span)
    actor.patience[move.action] = span[1] + _patience(stage, dice)
    return _event(move, span, sentence, memory=memory, beats=_beats(move.action, span[1] - span[0], dice))


def _beats(action: str, ticks: int, dice: Dice) -> int:
    """Hops that touch the ground on no tick but the last; turns of at least an eighth of a circle per tick."""
    if action == "jumps":
        return dice.pick([hops for hops in range(2, ticks) if gcd(hops, ticks) == 1 and 2.2 <= ticks / hops <= 3.9])
    if action == "spins":
        fitting = [turns for turns in range(1, ticks) if 45 <= 360 * turns / ticks <= 85]
        never_upright = [turns for turns in fitting if gcd(turns, ticks) == 1]
        return dice.pick(never_upright or fitting) * dice.pick((1, -1))
    return 0


def _carried(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    seats = stage.roomy(stage.free_seats(span[0], move.actor))
    return _to_place(move, stage, dice, span, seats, sentences.carried_sentence, lambda _: sentences.AWAY)


def _slides(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    seats = [seat for seat in stage.free_seats(span[0], actor) if same_row(seat, actor.seat or 0)]
    far = [seat for seat in seats if abs(seat - (actor.seat or 0)) > 1]
    x = actor.point[0]
    return _to_place(
        move,
        stage,
        dice,
        span,
        far or seats,
        sentences.slides_sentence,
        lambda goal: "to the left" if goal[0] < x else "to the right",
    )


def _to_place(
    move: Move,
    stage: Stage,
    dice: Dice,
    span: TickSpan,
    seats: list[int],
    tell: Callable[[str, str], str],
    away: Callable[[Point], str],
) -> ToyEvent:
    """A carry or a slide, away to one of ``seats`` or back home."""
    actor = move.actor
    if move.answer == "back" and actor.home is not None and actor.home_span is not None:
        seat, goal = actor.home
        words, evidence = sentences.BACK, (actor.home_span,)
    else:
        seat = dice.pick(seats)
        goal = seat_point(seat, dice)
        words, evidence = away(goal), ()
    sentence = tell(actor.name, words)
    memory = _memory(sentence, "place", words, evidence, span)
    side = words.rsplit(" ", 1)[1] if words.endswith(("left", "right")) else None
    event = _event(move, span, sentence, goal=goal, side=side, memory=memory)
    _settle(actor, stage, seat, goal, span)
    return event


def _grows(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    after = BIG if move.action == "grows" else 1.0
    event = _event(move, span, sentences.plain_sentence(actor.name, move.action), scale_after=after)
    actor.scale = after
    return event


def _plain(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    return _event(move, span, sentences.plain_sentence(move.actor.name, move.action))


def _hides(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    event = _event(move, span, sentences.plain_sentence(actor.name, "hides"), goal=stage.box.inside)
    _leave_home(actor, span)
    stage.give_up(actor, span[1])
    stage.box_free_from = span[1] + REST_TICKS
    actor.where, actor.point = "box", stage.box.inside
    return event


def _comes_out(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    actor = move.actor
    seat = dice.pick(stage.roomy(stage.free_seats(span[0], actor)))
    goal = seat_point(seat, dice)
    event = _event(move, span, sentences.plain_sentence(actor.name, "comes out"), goal=goal)
    stage.box_free_from = span[1] + REST_TICKS
    actor.where = "stage"
    _settle(actor, stage, seat, goal, span)
    return event


def _paired(move: Move, stage: Stage, dice: Dice, span: TickSpan) -> ToyEvent:
    """A bump or a swap."""
    actor, partner = move.actor, move.partner
    if partner is None:
        raise AssertionError(f"{move.action} needs a partner")
    sentence = sentences.paired_sentence(actor.name, move.action, partner.name)
    event = _event(move, span, sentence, goal=partner.point)
    if move.action == "swaps" and actor.seat is not None and partner.seat is not None:
        seats = actor.seat, partner.seat
        points = actor.point, partner.point
        _settle(actor, stage, seats[1], points[1], span)
        _settle(partner, stage, seats[0], points[0], span)
        for seat in seats:
            stage.vacant_from.pop(seat, None)
    return event


_PERFORM: dict[str, Callable[[Move, Stage, Dice, TickSpan], ToyEvent]] = {
    "enters": _enters,
    "leaves": _leaves,
    **dict.fromkeys(COUNTED, _counted),
    "grows": _grows,
    "shrinks": _grows,
    "bumps": _paired,
    "swaps": _paired,
    "hides": _hides,
    "comes out": _comes_out,
    "is carried": _carried,
    "slides": _slides,
    "shakes": _plain,
    "nods": _plain,
}


def _settle(actor: Actor, stage: Stage, seat: int, point: Point, span: TickSpan) -> None:
    """The actor will stand on ``seat`` when the event has ended."""
    stage.give_up(actor, span[1])
    if actor.home is not None:
        if actor.home[1] == point:
            actor.home_span = None
        else:
            _leave_home(actor, span)
    actor.seat, actor.point, actor.settled = seat, point, span[1]
    actor.visited.add(seat)


def _leave_home(actor: Actor, span: TickSpan) -> None:
    """Remember until when the actor was at home, unless it had left already."""
    if actor.home_span is None:
        actor.home_span = (actor.settled, span[0])


def _memory(
    sentence: str, kind: str, word: str, evidence: tuple[TickSpan | None, ...], span: TickSpan
) -> tuple[MemoryWord, ...]:
    spans = tuple(_seconds(seen) for seen in evidence if seen is not None)
    return (sentences.memory_word(sentence, kind, word, spans, _seconds(span)[0]),)


def _event(
    move: Move,
    span: TickSpan,
    sentence: str,
    *,
    goal: Point | None = None,
    side: str | None = None,
    memory: tuple[MemoryWord, ...] = (),
    scale_after: float | None = None,
    beats: int = 0,
) -> ToyEvent:
    """The event of a move by an actor that still is where and how it was before it."""
    actor = move.actor
    origin = actor.point
    if move.action == "enters" and side is not None and goal is not None:
        origin = outside(side, goal[1], actor.scale)
    if move.action == "leaves" and side is not None:
        goal = outside(side, origin[1], actor.scale)
    start_seconds, end_seconds = _seconds(span)
    return ToyEvent(
        start_seconds=start_seconds,
        end_seconds=end_seconds,
        action=move.action,
        toy=actor.toy,
        sentence=sentence,
        partner=None if move.partner is None else move.partner.toy,
        direction=side,
        memory=memory,
        origin=origin,
        goal=goal or origin,
        scales=(actor.scale, actor.scale if scale_after is None else scale_after),
        beats=beats,
    )


def _seconds(span: TickSpan) -> Span:
    return span[0] * TICK_SECONDS, span[1] * TICK_SECONDS
