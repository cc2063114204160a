"""METEOR: the formula against the jar's own scores, and a child process that goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.eval.dvc_fixtures import read, units

from longtake.eval import TextTools, meteor, meteor_process
from longtake.eval.java import JavaError
from longtake.eval.meteor import Meteor, corpus_score, pair_score

TOLERANCE = 1e-12


def row(
    *, words: tuple[int, int] = (3, 3), exact: float = 3, chunks: int = 1, matched: tuple[int, int] = (3, 3)
) -> np.ndarray:
    """Numbers of a pair of content words of which some match exactly."""
    return np.array([*words, 0, 0, exact, exact, 0, 0, *[0] * 12, chunks, *matched], dtype=np.float64)


@pytest.mark.parametrize("path", units("meteor"))
def test_formula_matches_jar(path: Path) -> None:
    data = read(path)
    for item in data["items"]:
        assert pair_score(np.array(item["stats"])) == pytest.approx(item["score"], abs=TOLERANCE, rel=0)
    for group in data["groups"]:
        rows = [np.array(data["items"][number]["stats"]) for number in group["items"]]
        assert corpus_score(rows) == pytest.approx(group["aggregate"], abs=TOLERANCE, rel=0)


@pytest.mark.parametrize("path", units("meteor"))
def test_alignment_matches_jar_both_ways_round(path: Path, tools: TextTools) -> None:
    items = read(path)["items"]
    pairs = [(item["hyp"], item["ref"]) for item in items]
    aligned = tools.align(pairs + [(reference, hypothesis) for hypothesis, reference in pairs])
    assert aligned is not None
    for item, (hypothesis, reference) in zip(items, pairs, strict=True):
        assert aligned[hypothesis, reference].tolist() == item["stats"]
        swapped = pair_score(aligned[reference, hypothesis])
        assert swapped == pytest.approx(item["score_swapped"], abs=TOLERANCE, rel=0)


def test_odd_sentences_do_not_upset_the_jar(tools: TextTools) -> None:
    pairs = [("", "a cat"), ("a cat", ""), ("", ""), ("a ||| cat", "a | cat"), ("a cat", "a cat")]
    aligned = tools.align(pairs)
    assert aligned is not None
    assert [pair_score(aligned[pair]) for pair in pairs[:3]] == [0.0, 0.0, 0.0]
    assert pair_score(aligned[pairs[-1]]) == 1.0


def test_corpus_score_is_not_the_mean_of_pair_scores() -> None:
    whole, half = row(), row(words=(4, 4), exact=2, chunks=2, matched=(2, 2))
    assert pair_score(whole) == 1.0
    assert corpus_score([whole]) == 1.0
    f_mean, chunks_per_match = 5 / 7, 2 / 5  # the whole pair adds no chunk
    assert corpus_score([whole, half]) == pytest.approx(f_mean * (1 - 0.6 * chunks_per_match**0.2))
    assert corpus_score([whole, half]) != pytest.approx((pair_score(whole) + pair_score(half)) / 2)


def test_no_pairs_score_zero() -> None:
    assert corpus_score([]) == 0.0
    assert pair_score(np.zeros(23)) == 0.0
    assert pair_score(row(exact=0, chunks=0, matched=(0, 0))) == 0.0


Impostor = Callable[..., Meteor]


@pytest.fixture
def impostor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Impostor:
    """METEOR with a Python program in the jar's place."""

    def build(program: str, **options: float) -> Meteor:
        script = tmp_path / "impostor.py"
        script.write_text(program, encoding="utf-8")
        monkeypatch.setattr(meteor_process, "jar_file", Path)
        monkeypatch.setattr(meteor_process, "java_command", lambda *, max_heap: [sys.executable, str(script)])
        return Meteor(**options)

    return build


ANSWER = "import sys\nfor line in sys.stdin:\n    print(*[float(len(line))] * 23, flush=True)\n"


def test_each_distinct_pair_is_aligned_once(impostor: Impostor, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    program = ANSWER.replace("    print", f"    open({str(log)!r}, 'a').write(line)\n    print")
    with impostor(program) as child:
        child.statistics([("a", "b"), ("a", "b"), ("c", "d")])
        child.statistics([("a", "b"), ("e", "f")])
    assert log.read_text(encoding="utf-8").splitlines() == [
        "SCORE ||| b ||| a",
        "SCORE ||| d ||| c",
        "SCORE ||| f ||| e",
    ]


def test_many_pairs_are_shared_among_processes(
    impostor: Impostor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meteor, "PAIRS_PER_PROCESS", 100)
    program = ANSWER.replace("import sys", f"import os, sys\nopen({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w')")
    pairs = [("a" * number, "b") for number in range(400)]
    with impostor(program, processes=2) as child:
        assert len(child.statistics(pairs[:90])) == 90
        assert len(list(tmp_path.glob("[0-9]*"))) == 1
        found = child.statistics(pairs)
    assert len(list(tmp_path.glob("[0-9]*"))) == 2
    assert [found[pair][0] for pair in pairs] == [len(f"SCORE ||| b ||| {'a' * number}\n") for number in range(400)]


def test_one_of_several_that_dies_ends_them_all(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meteor, "PAIRS_PER_PROCESS", 100)
    program = ANSWER.replace("    print", "    if 'x' in line:\n        sys.exit('bad word')\n    print")
    with impostor(program, processes=2) as child:
        with pytest.raises(JavaError, match="bad word"):
            child.statistics([(str(number), "x" if number == 70 else "b") for number in range(250)])
        assert [process._process for process in child._processes] == [None, None]
        assert len(child.statistics([("a", "b")])) == 1


def test_a_flood_on_stderr_does_not_stall(impostor: Impostor) -> None:
    flood = ANSWER.replace("    print", "    sys.stderr.write('x' * 100_000)\n    print")
    with impostor(flood) as child:
        assert len(child.statistics([(str(number), "b") for number in range(200)])) == 200


def test_a_dying_process_is_reported_and_replaced(impostor: Impostor, tmp_path: Path) -> None:
    mark = tmp_path / "died"
    program = (
        f"import pathlib, sys\nmark = pathlib.Path({str(mark)!r})\n"
        "if not mark.exists():\n    mark.touch()\n    sys.exit('no\\nmemory')\n" + ANSWER
    )
    with impostor(program) as child:
        with pytest.raises(JavaError, match=r"^METEOR stopped: no memory$"):
            child.statistics([("a", "b")])
        assert child.statistics([("a", "b")])["a", "b"].shape == (23,)


def test_silence_ends_with_an_error(impostor: Impostor) -> None:
    silent = "import time\ntime.sleep(600)\n"
    with impostor(silent, timeout_seconds=0.3) as child, pytest.raises(JavaError, match=r"gave no answer within 0.3 s"):
        child.statistics([("a", "b")])


def test_babble_is_not_taken_for_numbers(impostor: Impostor) -> None:
    babble = "print('Error: specify Meteor stats', flush=True)\nimport time\ntime.sleep(600)\n"
    with (
        impostor(babble) as child,
        pytest.raises(JavaError, match="answered 'Error: specify Meteor stats', expected 23"),
    ):
        child.statistics([("a", "b")])


def test_the_process_is_gone_after_use(impostor: Impostor) -> None:
    with impostor(ANSWER) as child:
        child.statistics([("a", "b")])
        process = child._processes[0]._process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None
