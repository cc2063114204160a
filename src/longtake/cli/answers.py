"""How answers are shown: text as it grows, or a JSON line for each question."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from longtake.cli.plain import on_one_line, printable
from longtake.cli.terminal import StatusLine
from longtake.types import Answer

INCOMPLETE = "incomplete"
"""Flag of answers about a source that could not be read as far as was wanted."""
BLIND = "blind"
"""Flag of answers for which no video was read."""
ADVICE = {
    "length": "the answer was cut, it had reached its longest; raise --max-new-tokens",
    "repeats": "the answer began to repeat itself and was stopped there",
    "empty": "the answer is empty: the model ended it at once; put the question in other words",
    "no-choice": "the answer names none of the choices; --choose-by likelihood always takes one",
    BLIND: "no video was read: this is chosen from the words alone",
    INCOMPLETE: "the answer is about what was seen until reading stopped",
}
"""By flag."""


class Text:
    """Words for people, as they come; questions stand above their answers if there are several."""

    def __init__(self, status: StatusLine, *, several: bool) -> None:
        self._status, self._several = status, several

    def begin(self, question: str) -> None:
        if self._several:
            self._write(f"# {on_one_line(question)}\n")

    def add(self, text: str) -> None:
        self._write(printable(text))

    def end(self, question: str, answer: Answer, choices: tuple[str, ...]) -> None:
        if answer.choice is not None:
            self._write(printable(answer.text))
        self._write("\n")
        shares = zip(choices, answer.probabilities, strict=True) if answer.probabilities else ()
        for choice, share in shares:
            self._write(f"  {share:.3f}  {printable(choice)}\n")
        for flag in answer.flags:
            self._status.say(ADVICE.get(flag, flag))

    def _write(self, text: str) -> None:
        self._status.clear()
        sys.stdout.write(text)
        sys.stdout.flush()


class JsonLines:
    """The contract of ``ask --json``."""

    def __init__(self, status: StatusLine, *, policy: str, budget: int, seen_seconds: float) -> None:
        self._status = status
        self._facts = {"policy": policy, "budget": budget, "seen_seconds": round(seen_seconds, 3)}

    def begin(self, question: str) -> None: ...

    def add(self, text: str) -> None: ...

    def end(self, question: str, answer: Answer, choices: tuple[str, ...]) -> None:
        line: dict[str, Any] = {
            "question": question,
            "answer": answer.text,
            "choice": answer.choice,
            "probabilities": [round(share, 6) for share in answer.probabilities],
            "at": round(answer.at_seconds, 3),
            **self._facts,
            "flags": list(answer.flags),
        }
        self._status.clear()
        print(json.dumps(line), flush=True)


Shown: TypeAlias = Text | JsonLines
"""A way of showing answers: ``begin`` a question, ``add`` what the answer has grown by, ``end`` it whole."""


def trimmed(pieces: Iterable[str]) -> Iterator[str]:
    """The same text without white space at its beginning and its end."""
    begun, gap = False, ""
    for piece in pieces:
        text = gap + piece if begun else piece.lstrip()
        words = text.rstrip()
        gap = text[len(words) :]
        if words:
            begun = True
            yield words
