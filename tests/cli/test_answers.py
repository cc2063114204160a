"""How answers reach a terminal: piece by piece, without white space around them, harmless."""

from __future__ import annotations

import json

import pytest

from longtake.cli.answers import JsonLines, Text, trimmed
from longtake.cli.plain import printable
from longtake.cli.terminal import StatusLine
from longtake.types import Answer


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["", " ", "\n a", " car", " ", " goes", " \n"], ["a", " car", "  goes"]),
        (["red", "", "blue"], ["red", "blue"]),
        ([" ", "\n"], []),
        ([], []),
        (["a\n", "b"], ["a", "\nb"]),
    ],
)
def test_white_space_around_an_answer_is_left_out(pieces: list[str], expected: list[str]) -> None:
    assert list(trimmed(pieces)) == expected
    assert "".join(trimmed(pieces)) == "".join(pieces).strip()


def test_pieces_are_given_as_soon_as_they_come() -> None:
    given: list[str] = []

    def slow() -> object:
        for piece in ("a ", "car ", "goes"):
            given.append(piece)
            yield piece

    shown = trimmed(slow())  # type: ignore[arg-type]
    assert next(shown) == "a"
    assert given == ["a "]


def test_control_characters_are_replaced() -> None:
    assert printable("a\x1b[31mred\x07\u202eb\n\tc") == "a\ufffd[31mred\ufffd\ufffdb\n\tc"


def test_text_of_a_growing_answer_is_on_stdout_before_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Text(StatusLine(shown=False), several=True)
    shown.begin("what\nhappened?")
    assert capsys.readouterr().out == "# what happened?\n"
    shown.add("a car")
    assert capsys.readouterr().out == "a car"
    shown.end("what\nhappened?", Answer(text="a car", flags=("length",)), ())
    out, err = capsys.readouterr()
    assert out == "\n"
    assert err == "longtake: the answer was cut, it had reached its longest; raise --max-new-tokens\n"


def test_json_line_is_one_line_whatever_the_answer_holds(capsys: pytest.CaptureFixture[str]) -> None:
    shown = JsonLines(StatusLine(shown=False), policy="full", budget=7, seen_seconds=2.00049)
    shown.begin("q")
    shown.add("never shown")
    shown.end("q\n", Answer(text="a\nb\u2028\x1b", at_seconds=1.23456), ())
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    line = json.loads(out)
    assert (line["question"], line["answer"], line["at"], line["seen_seconds"]) == ("q\n", "a\nb\u2028\x1b", 1.235, 2.0)
