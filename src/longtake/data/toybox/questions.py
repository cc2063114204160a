"""Questions about one video, asked when it has ended: order, counts, first and last, hidden contents, positions.

About half are multiple choice, the others want a word or two. Each carries the span of the video that answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from longtake.data.toybox.dice import Dice
from longtake.data.toybox.story import REGIONS, Story, hull, span_of
from longtake.data.toybox.world import COUNTED, TOYBOX_VERSION, Script, Span, ToyEvent

NUM_OPTIONS = 4
MAX_DULL = 2
QUOTAS = {"order": 8, "count": 8, "first_last": 7, "hidden": 5, "position": 8}
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NOTHING = "nothing"
YES_NO = ("yes", "no")
DOING = {
    "enters": "it enters",
    "leaves": "it leaves",
    "jumps": "it jumps",
    "spins": "it spins",
    "blinks": "it blinks",
    "grows": "it grows",
    "shrinks": "it shrinks",
    "bumps": "it bumps into another toy",
    "swaps": "it swaps places with another toy",
    "hides": "it hides in the box",
    "comes out": "it comes out of the box",
    "is carried": "a hand carries it",
    "slides": "it slides",
    "shakes": "it shakes",
    "nods": "it nods",
}
_TO_DO = {
    "jumps": "jump",
    "spins": "spin",
    "blinks": "blink",
    "leaves": "leave",
    "enters": "come in",
    "slides": "slide",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question with its answer."""

    type: str
    """A key of ``QUOTAS``."""
    question: str
    options: tuple[str, ...]
    """Empty if a short answer is wanted."""
    answer: str
    answer_index: int | None
    """Of the answer among the options."""
    span: Span
    """What must be seen to answer, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A question before it is decided how it is asked."""

    question: str
    answer: str
    wrong: Sequence[str]
    """Wrong options to choose from."""
    span: Span
    must_choose: bool = False
    """Without the options there would be other right answers, or long ones."""
    dull: bool = False
    """The answer is zero or nothing because the thing never happens; few of these are asked."""


def questions_of(script: Script) -> tuple[Question, ...]:
    """Questions about the script: 36, or fewer where hardly anything happens."""
    dice = Dice("questions", TOYBOX_VERSION, script.split, script.seed, script.label)
    story = Story(script)
    chosen: list[Question] = []
    spare: list[Question] = []
    for kind, quota in QUOTAS.items():
        drafts = list({draft.question: draft for draft in dice.shuffled(list(_WRITERS[kind](story, dice)))}.values())
        dull = [draft for draft in drafts if draft.dull]
        drafts = [draft for draft in drafts if not draft.dull] + dull[:MAX_DULL]
        asked = [_ask(kind, draft, dice) for draft in (drafts + dull[MAX_DULL:])[: 4 * quota]]
        quota = min(quota, len(drafts))
        chosen += asked[:quota]
        spare += asked[quota:]
    return tuple(chosen + spare[: max(0, sum(QUOTAS.values()) - len(chosen))])


def _ask(kind: str, draft: _Draft, dice: Dice) -> Question:
    """As a multiple choice or for a short answer."""
    if not draft.must_choose and dice.chance(0.5):
        options: tuple[str, ...] = ()
    else:
        wrong = dice.shuffled(sorted(set(draft.wrong) - {draft.answer}))[: NUM_OPTIONS - 1]
        options = tuple(dice.shuffled([draft.answer, *wrong]))
    return Question(
        type=kind,
        question=draft.question,
        options=options,
        answer=draft.answer,
        answer_index=options.index(draft.answer) if options else None,
        span=draft.span,
    )


def number_word(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def _order(story: Story, dice: Dice) -> Iterator[_Draft]:
    known = story.told_once
    everything = sorted({event.sentence for event in story.events})
    for event in known:
        for step, word in ((1, "after"), (-1, "before")):
            other = story.follower(event, step)
            if other is not None and len(everything) >= NUM_OPTIONS + 1:
                wrong = [sentence for sentence in everything if sentence not in (event.sentence, other.sentence)]
                yield _Draft(
                    question=f"what happens right {word} {event.sentence}?",
                    answer=other.sentence,
                    wrong=wrong,
                    span=hull(span_of(event), span_of(other)),
                    must_choose=True,
                )
    if len(known) < 2:
        return
    for _ in range(12):
        yield from _before_or_not(dice.shuffled(known)[:2])
    for _ in range(4 if len(known) >= NUM_OPTIONS else 0):
        yield from _first_of_four(dice.shuffled(known)[:NUM_OPTIONS], dice)


def _before_or_not(events: list[ToyEvent]) -> Iterator[_Draft]:
    one, other = events
    if (one.toy, one.action) == (other.toy, other.action):
        return  # the words themselves would tell: a second time comes before a third
    right = one.start_seconds < other.start_seconds
    yield _Draft(
        question=f"yes or no: {one.sentence} before {other.sentence}?",
        answer=YES_NO[0 if right else 1],
        wrong=YES_NO,
        span=hull(span_of(one), span_of(other)),
    )


def _first_of_four(events: list[ToyEvent], dice: Dice) -> Iterator[_Draft]:
    word = dice.pick(("first", "last"))
    ordered = sorted(events, key=lambda event: event.start_seconds)
    answer = ordered[0 if word == "first" else -1]
    yield _Draft(
        question=f"which of these four happens {word}?",
        answer=answer.sentence,
        wrong=[event.sentence for event in events],
        span=hull(*map(span_of, events)),
        must_choose=True,
    )


def _count(story: Story, dice: Dice) -> Iterator[_Draft]:
    for toy, name in enumerate(story.names):
        for action in (*COUNTED, "leaves", "enters"):
            found = [event for event in story.events if event.toy == toy and event.action == action]
            if story.script.cast[toy].idle and action != COUNTED[0]:
                continue
            yield _how_many(f"how many times does the {name} {_TO_DO[action]}?", found, story, dice)
    for action, verb in _TO_DO.items():
        found = [event for event in story.events if event.action == action]
        yield _how_many(f"how many times does any toy {verb}?", found, story, dice)
    found = [event for event in story.events if event.action == "hides"]
    yield _how_many("how many times does a toy hide in the box?", found, story, dice)
    standing = sum(story.tracks[toy].at(story.end).where == "stage" for toy in range(len(story.names)))
    options = _numbers_around(standing, dice)
    span = (story.events[-1].end_seconds if story.events else 0.0, story.script.seconds)
    question = "how many toys are on the stage at the end?"
    yield _Draft(question=question, answer=number_word(standing), wrong=options, span=span)


def _how_many(question: str, found: list[ToyEvent], story: Story, dice: Dice) -> _Draft:
    return _Draft(
        question=question,
        answer=number_word(len(found)),
        wrong=_numbers_around(len(found), dice),
        span=hull(*map(span_of, found)) if found else (0.0, story.script.seconds),
        dull=not found,
    )


def _numbers_around(number: int, dice: Dice) -> list[str]:
    """Four numbers in a row, the right one anywhere among them."""
    lowest = max(0, number - dice.integer(0, NUM_OPTIONS - 1))
    return [number_word(lowest + step) for step in range(NUM_OPTIONS)]


def _first_last(story: Story, dice: Dice) -> Iterator[_Draft]:
    for action, verb in _TO_DO.items():
        found = [event for event in story.events if event.action == action]
        if len({event.toy for event in found}) < 2:
            continue
        for word, event in (("first", found[0]), ("last", found[-1])):
            yield _Draft(
                question=f"which toy is the {word} to {verb}?",
                answer=story.names[event.toy],
                wrong=story.names,
                span=_until(event) if word == "first" else (event.start_seconds, story.script.seconds),
            )
    for toy, name in enumerate(story.names):
        own = [event for event in story.events if toy in (event.toy, event.partner)]
        for word, event in (("first", own[0]), ("last", own[-1])) if own else ():
            if event.toy == toy:
                yield _Draft(
                    question=f"what is the {word} thing that happens to the {name}?",
                    answer=DOING[event.action],
                    wrong=sorted(DOING.values()),
                    span=_until(event) if word == "first" else (event.start_seconds, story.script.seconds),
                )


def _until(event: ToyEvent) -> Span:
    return 0.0, event.end_seconds


def _hidden(story: Story, dice: Dice) -> Iterator[_Draft]:
    hidings = [event for event in story.events if event.action == "hides"]
    acting = [name for name, toy in zip(story.names, story.script.cast, strict=True) if not toy.idle]
    for word, event in (("first", hidings[0]), ("last", hidings[-1])) if hidings else ():
        span = _until(event) if word == "first" else (event.start_seconds, story.script.seconds)
        yield _Draft(
            question=f"which toy is the {word} to hide in the box?",
            answer=story.names[event.toy],
            wrong=story.names,
            span=span,
        )
    at_end = ("at the end", story.end, story.script.seconds, "")
    moments = [(f"when {e.sentence}", e.start_seconds, e.end_seconds, story.names[e.toy]) for e in story.told_once]
    for when, start, end, actor in [*moments, at_end]:
        contents = [story.names[toy] for toy in story.in_box(start)]
        if _box_in_use(story, start, end):
            continue
        changes = story.box_changes(start)
        span = (changes[-1].start_seconds if changes else 0.0, end)
        answer = contents[0] if contents else NOTHING
        dull = not changes
        question = f"what is in the box {when}?"
        yield _Draft(question=question, answer=answer, wrong=[*acting, NOTHING], span=span, dull=dull)
        guesses = [name for name in acting if name != actor]
        if guesses and (contents or dice.chance(0.4)):
            guess = dice.pick(contents) if contents and dice.chance(0.7) else dice.pick(guesses)
            yield _Draft(
                question=f"yes or no: the {guess} is in the box {when}?",
                answer=YES_NO[0 if guess in contents else 1],
                wrong=YES_NO,
                span=span,
                dull=dull,
            )


def _box_in_use(story: Story, start: float, end: float) -> bool:
    """A toy is on its way in or out."""
    return any(
        event.action in ("hides", "comes out") and event.start_seconds < end and event.end_seconds > start
        for event in story.events
    )


def _position(story: Story, dice: Dice) -> Iterator[_Draft]:
    for event in story.told_once:
        for toy, name in enumerate(story.names):
            mine = toy in (event.toy, event.partner)
            moments = [("before", story.just_before(event)), ("after", event.end_seconds)] if mine else []
            for word, seconds in moments or [("when", event.start_seconds)]:
                region = story.region(toy, seconds)
                if region is not None and (mine or dice.chance(0.2)):
                    yield _Draft(
                        question=f"where is the {name} {f'right {word}' if mine else word} {event.sentence}?",
                        answer=region,
                        wrong=REGIONS,
                        span=story.rest_span(toy, seconds) if mine else span_of(event),
                    )
    for when, seconds in (("start", 0.0), ("end", story.end)):
        for toy, name in enumerate(story.names):
            region = story.region(toy, seconds)
            if region is not None:
                yield _Draft(
                    question=f"where is the {name} at the {when}?",
                    answer=region,
                    wrong=REGIONS,
                    span=story.rest_span(toy, seconds),
                )
        yield from _sides(story, when, seconds)


def _sides(story: Story, when: str, seconds: float) -> Iterator[_Draft]:
    """How two toys stand to each other, where there is no doubt."""
    rests = [(name, story.rest(toy, seconds)) for toy, name in enumerate(story.names)]
    places = [(name, (float(rest.rest.x), float(rest.rest.y))) for name, rest in rests if rest is not None]
    span = (0.0, 1.0) if when == "start" else (story.script.seconds - 0.5, story.script.seconds)
    for index, (name, (x, y)) in enumerate(places):
        for other, (u, v) in places[index + 1 :]:
            if abs(x - u) > 0.2:
                question = f"is the {name} to the left or to the right of the {other} at the {when}?"
                sides = ("left", "right")
                yield _Draft(question=question, answer=sides[x > u], wrong=sides, span=span)
            if abs(y - v) > 0.2:
                question = f"is the {name} above or below the {other} at the {when}?"
                sides = ("above", "below")
                yield _Draft(question=question, answer=sides[y > v], wrong=sides, span=span)


_WRITERS: dict[str, Callable[[Story, Dice], Iterator[_Draft]]] = {
    "order": _order,
    "count": _count,
    "first_last": _first_last,
    "hidden": _hidden,
    "position": _position,
}
