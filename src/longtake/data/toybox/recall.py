"""Questions about one toy that may be asked at any moment: what it did before, whether, how often, and where.

They come in three kinds. ``relational``: two events of a toy, further apart than an eighth of the video; ``diffuse``:
counting, and whether a toy came back; ``local``: one place at one moment. Answers are a word or two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from longtake.data.toybox.dice import Dice
from longtake.data.toybox.questions import NUM_OPTIONS, YES_NO, number_word
from longtake.data.toybox.story import REGIONS, Story
from longtake.data.toybox.world import COUNTED, TOYBOX_VERSION, Script, Span

FAR_SHARE = 1 / 8
"""Of what has been seen, and of ``FAR_UP_TO_SECONDS`` at most: relations whose ends are closer are not asked."""
FAR_UP_TO_SECONDS = 120.0
KINDS_OF_QUESTIONS = ("relational", "diffuse", "local")
SHARES = {"relational": 0.65, "diffuse": 0.2, "local": 0.15}
PAST = {
    "enters": "came in",
    "leaves": "left",
    "jumps": "jumped",
    "spins": "spun",
    "blinks": "blinked",
    "grows": "grew",
    "shrinks": "shrank",
    "bumps": "bumped",
    "swaps": "swapped places",
    "hides": "hid",
    "comes out": "came out",
    "is carried": "was carried",
    "slides": "slid",
    "shakes": "shook",
    "nods": "nodded",
    "is bumped": "was bumped",
}
PLAIN = {
    "enters": "come in",
    "leaves": "leave",
    "jumps": "jump",
    "spins": "spin",
    "blinks": "blink",
    "grows": "grow",
    "shrinks": "shrink",
    "bumps": "bump",
    "swaps": "swap places",
    "hides": "hide",
    "comes out": "come out",
    "is carried": "get carried",
    "slides": "slide",
    "shakes": "shake",
    "nods": "nod",
    "is bumped": "get bumped",
}
HOW_OFTEN = (*COUNTED, "enters", "leaves")
IN_PLACE = (*COUNTED, "grows", "shrinks", "shakes", "nods")
IMPLIED = {"enters": "leaves", "comes out": "hides"}
"""What comes before an action as a matter of course: not asked about."""
MOST_TIMES = 5
MARGIN_SECONDS = 0.5
"""An event must have been over for so long before it is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuestion:
    """A question with its answer, as of one moment."""

    kind: str
    """One of ``KINDS_OF_QUESTIONS``."""
    form: str
    """``before``, ``whether``, ``count``, ``back`` or ``where``."""
    question: str
    answer: str
    options: tuple[str, ...]
    """The answer among others, to choose from."""
    asked_seconds: float
    ends: Span
    """End of the earlier and start of the later thing that the answer rests on."""
    name: str
    """Of the toy."""
    anchor: Span | None
    """When the toy does what the question's last words say; None if they say nothing."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What a toy did, or what another toy did to it."""

    toy: int
    """Index into the cast: in a long video a name may come again as another toy, which is not told apart."""
    action: str
    start_seconds: float
    end_seconds: float


class Recall:
    """One script, ready to be asked about at any moment."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.story = Story(script)
        self.deeds = [self._deeds_of(toy) for toy in range(len(script.cast))]
        """By toy."""

    def _deeds_of(self, toy: int) -> list[Deed]:
        found: list[Deed] = []
        for event in self.script.events:
            if event.toy == toy or (event.partner == toy and event.action == "swaps"):
                found.append(Deed(toy, event.action, event.start_seconds, event.end_seconds))
            elif event.partner == toy and event.action == "bumps":
                found.append(Deed(toy, "is bumped", event.start_seconds, event.end_seconds))
        return sorted(found, key=lambda deed: deed.start_seconds)

    def _by_name(self) -> dict[str, list[Deed]]:
        """Deeds of all toys of a name, in order."""
        found: dict[str, list[Deed]] = {}
        for name, deeds in zip(self.story.names, self.deeds, strict=True):
            found.setdefault(name, []).extend(deeds)
        return {name: sorted(deeds, key=lambda deed: deed.start_seconds) for name, deeds in found.items()}

    def drafts(self, asked_seconds: float, dice: Dice) -> Iterator[RecallQuestion]:
        """Every question that can be asked at that moment; near relations are left out."""
        far = min(asked_seconds, FAR_UP_TO_SECONDS) * FAR_SHARE
        for name, deeds in self._by_name().items():
            begun = [deed for deed in deeds if deed.start_seconds < asked_seconds]
            known = [deed for deed in begun if deed.end_seconds <= asked_seconds - MARGIN_SECONDS]
            if not known or len(known) < len(begun):
                continue
            anchors = list(_anchors(known))
            for index, words in anchors:
                yield from _before(name, known, index, words, asked_seconds, far, dice)
                yield from _whether(name, known, index, words, asked_seconds, far, dice)
                yield from _count(name, known[:index], asked_seconds, dice, f" before it {words}", known[index])
                yield from self._where(name, known[index], words, asked_seconds)
            yield from _count(name, known, asked_seconds, dice)
            yield from self._back(name, known, asked_seconds)

    def _where(self, name: str, deed: Deed, words: str, asked: float) -> Iterator[RecallQuestion]:
        region = self.story.region(deed.toy, deed.start_seconds - 0.01) if deed.action in IN_PLACE else None
        if region is not None:
            yield RecallQuestion(
                kind="local",
                form="where",
                question=f"where was the {name} when it {words}?",
                answer=region,
                options=REGIONS,
                asked_seconds=asked,
                ends=(deed.start_seconds, deed.end_seconds),
                name=name,
                anchor=(deed.start_seconds, deed.end_seconds),
            )

    def _back(self, name: str, known: Sequence[Deed], asked: float) -> Iterator[RecallQuestion]:
        entries = [deed for deed in known if deed.action == "enters"]
        standing = any(self.script.cast[toy].start is not None for toy in {deed.toy for deed in known})
        visits = len(entries) + standing
        span = (known[0].end_seconds, entries[-1].start_seconds if entries else asked)
        yield RecallQuestion(
            kind="diffuse",
            form="back",
            question=f"did the {name} come back?",
            answer=YES_NO[0 if visits > 1 else 1],
            options=YES_NO,
            asked_seconds=asked,
            ends=(min(span), max(span)),
            name=name,
            anchor=None,
        )


def _anchors(known: Sequence[Deed]) -> Iterator[tuple[int, str]]:
    """Deeds that words tell apart from the toy's others: the only one of its kind, the first or the last."""
    times = Counter(deed.action for deed in known)
    first = {deed.action: index for index, deed in reversed(list(enumerate(known)))}
    last = {deed.action: index for index, deed in enumerate(known)}
    for index, deed in enumerate(known):
        if times[deed.action] == 1:
            yield index, PAST[deed.action]
        elif index == first[deed.action]:
            yield index, f"first {PAST[deed.action]}"
        elif index == last[deed.action]:
            yield index, f"last {PAST[deed.action]}"


def _before(
    name: str, known: Sequence[Deed], index: int, words: str, asked: float, far: float, dice: Dice
) -> Iterator[RecallQuestion]:
    if index == 0 or known[index].action in IMPLIED or known[index].start_seconds - known[index - 1].end_seconds <= far:
        return
    answer = PAST[known[index - 1].action]
    wrong = dice.shuffled(sorted(set(PAST.values()) - {answer}))[: NUM_OPTIONS - 1]
    yield RecallQuestion(
        kind="relational",
        form="before",
        question=f"what did the {name} do before it {words}?",
        answer=answer,
        options=tuple(dice.shuffled([answer, *wrong])),
        asked_seconds=asked,
        ends=(known[index - 1].end_seconds, known[index].start_seconds),
        name=name,
        anchor=(known[index].start_seconds, known[index].end_seconds),
    )


def _whether(
    name: str, known: Sequence[Deed], index: int, words: str, asked: float, far: float, dice: Dice
) -> Iterator[RecallQuestion]:
    anchor = known[index]
    if anchor.action in IMPLIED or words != PAST[anchor.action]:
        return  # before the first of several hardly anything has been done, before the last one most things
    for action in sorted({deed.action for deed in known} - {anchor.action, "enters"}):
        earlier = [deed for deed in known[:index] if deed.action == action]
        later = [deed for deed in known[index + 1 :] if deed.action == action]
        ends = (
            (earlier[-1].end_seconds, anchor.start_seconds) if earlier else (anchor.end_seconds, later[0].start_seconds)
        )
        if ends[1] - ends[0] > far:
            yield RecallQuestion(
                kind="relational",
                form="whether",
                question=f"did the {name} {PLAIN[action]} before it {words}?",
                answer=YES_NO[0 if earlier else 1],
                options=YES_NO,
                asked_seconds=asked,
                ends=ends,
                name=name,
                anchor=(anchor.start_seconds, anchor.end_seconds),
            )


def _count(
    name: str, known: Sequence[Deed], asked: float, dice: Dice, condition: str = "", anchor: Deed | None = None
) -> Iterator[RecallQuestion]:
    for action in HOW_OFTEN:
        found = [deed for deed in known if deed.action == action]
        if not found or len(found) > MOST_TIMES:
            continue
        lowest = max(0, len(found) - dice.integer(0, NUM_OPTIONS - 1))
        yield RecallQuestion(
            kind="diffuse",
            form="count",
            question=f"how many times did the {name} {PLAIN[action]}{condition}?",
            answer=number_word(len(found)),
            options=tuple(number_word(lowest + step) for step in range(NUM_OPTIONS)),
            asked_seconds=asked,
            ends=(found[0].end_seconds, found[-1].start_seconds) if len(found) > 1 else (found[0].start_seconds, asked),
            name=name,
            anchor=(anchor.start_seconds, anchor.end_seconds) if anchor else None,
        )


def recall_questions(script: Script, count: int = 20, asked_seconds: float | None = None) -> tuple[RecallQuestion, ...]:
    """At most ``count`` questions about the video as it stands at that moment (its end by default), none twice.

    The kinds keep their shares: where relations are few, the others are fewer, too.
    """
    asked = script.seconds if asked_seconds is None else asked_seconds
    dice = Dice("recall", TOYBOX_VERSION, script.split, script.seed, script.label, round(asked * 1000))
    return chosen(list(Recall(script).drafts(asked, dice)), count, dice)


def chosen(
    drafts: Sequence[RecallQuestion], count: int, dice: Dice, shares: Mapping[str, float] = SHARES
) -> tuple[RecallQuestion, ...]:
    """Some of the drafts: kinds by their shares, and within a kind every form and every answer alike."""
    by_kind: dict[str, list[RecallQuestion]] = {kind: [] for kind in KINDS_OF_QUESTIONS}
    for draft in dice.shuffled(list(drafts)):
        by_kind[draft.kind].append(draft)
    relations = _balanced(by_kind["relational"], round(shares["relational"] * count))
    found = list(relations)
    for kind in ("diffuse", "local"):
        found += _balanced(by_kind[kind], round(shares[kind] / shares["relational"] * len(relations)))
    return tuple(found)


def _balanced(drafts: Sequence[RecallQuestion], count: int) -> list[RecallQuestion]:
    """The first ``count``, taking from each (form, answer) in turn, so that no answer is the usual one."""
    piles: dict[tuple[str, str], list[RecallQuestion]] = {}
    for draft in drafts:
        piles.setdefault((draft.form, draft.answer), []).append(draft)
    found: list[RecallQuestion] = []
    while len(found) < count and piles:
        for key in list(piles):
            found.append(piles[key].pop(0))
            if not piles[key]:
                del piles[key]
    return found[:count]
