"""From an event to its sentence and the words in it that need memory; the vocabulary of all sentences."""

from __future__ import annotations

from longtake.data.toybox.world import COLOURS, COUNTED, KINDS, ORDINALS, MemoryWord, Span

AWAY = "to a new place"
BACK = "back to where it started"

_PLAIN = {
    "grows": "grows",
    "shrinks": "shrinks",
    "hides": "hides in the box",
    "comes out": "comes out of the box",
    "shakes": "shakes",
    "nods": "nods",
}
_PAIRED = {"bumps": "bumps into", "swaps": "swaps places with"}


def with_article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def enters_sentence(name: str, side: str, *, again: bool) -> str:
    return f"the {name} comes back from the {side}" if again else f"{with_article(name)} enters from the {side}"


def leaves_sentence(name: str, side: str) -> str:
    return f"the {name} leaves to the {side}"


def counted_sentence(name: str, action: str, ordinal: int) -> str:
    """``ordinal`` counts from 1."""
    return f"the {name} {action} for the {ORDINALS[ordinal - 1]} time"


def plain_sentence(name: str, action: str) -> str:
    return f"the {name} {_PLAIN[action]}"


def paired_sentence(name: str, action: str, other: str) -> str:
    return f"the {name} {_PAIRED[action]} the {other}"


def carried_sentence(name: str, where: str) -> str:
    return f"a hand carries the {name} {where}"


def slides_sentence(name: str, where: str) -> str:
    return f"the {name} slides {where}"


def memory_word(sentence: str, kind: str, word: str, evidence: tuple[Span, ...], start_seconds: float) -> MemoryWord:
    """Mark ``word`` in the sentence; without evidence the word needs no memory."""
    at = sentence.index(word)
    return MemoryWord(
        kind=kind,
        word=word,
        start_char=at,
        end_char=at + len(word),
        needs_memory=bool(evidence),
        reach_seconds=start_seconds - evidence[-1][1] if evidence else 0.0,
        evidence=evidence,
    )


def vocabulary() -> tuple[str, ...]:
    """All words of all sentences, sorted."""
    name, other = "red car", "blue star"
    sentences = [
        *(f"the {colour} {kind}" for colour in COLOURS for kind in KINDS),
        *(with_article(f"{colour} car") for colour in COLOURS),
        *(enters_sentence(name, side, again=again) for side in ("left", "right") for again in (False, True)),
        *(leaves_sentence(name, side) for side in ("left", "right")),
        *(counted_sentence(name, action, ordinal + 1) for action in COUNTED for ordinal in range(len(ORDINALS))),
        *(plain_sentence(name, action) for action in _PLAIN),
        *(paired_sentence(name, action, other) for action in _PAIRED),
        *(carried_sentence(name, where) for where in (AWAY, BACK)),
        slides_sentence(name, BACK),
    ]
    return tuple(sorted({word for sentence in sentences for word in sentence.split()}))
