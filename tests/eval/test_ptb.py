"""Tokens of captions: Stanford's through Java, and our own beside them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.eval.dvc_fixtures import read, units

from longtake.eval import TextTools, java, ptb
from longtake.eval.java import JavaError
from longtake.eval.ptb import clean, tokenize_with_java
from longtake.eval.treebank import tokenize_in_python

EITHER = {"A.": {"a.", "a"}}
"""Stanford's answer to this line depends on its neighbours."""


@pytest.mark.parametrize("path", units("ptb"))
def test_java_tokens_match_official_pipeline(path: Path, tools: TextTools) -> None:
    items = read(path)["items"]
    tokens = tools.tokens(item["raw"] for item in items)
    assert tools.tokenizer == "stanford"
    for item in items:
        assert tokens[item["raw"]] in EITHER.get(item["raw"], {item["tokens"]}), item["raw"]


@pytest.mark.parametrize("path", units("ptb"))
def test_python_tokens_match_official_pipeline_on_nearly_all_captions(path: Path) -> None:
    items = read(path)["items"]
    ours = tokenize_in_python([item["raw"] for item in items])
    different = [item["raw"] for item, tokens in zip(items, ours, strict=True) if tokens != item["tokens"]]
    assert len(different) <= 0.01 * len(items), different


@pytest.mark.parametrize(
    ("caption", "tokens"),
    [
        ("The red car jumps for the 3rd time.", "the red car jumps for the 3rd time"),
        ("He doesn't know; they're \"fine\" (really)", "he does n't know they 're fine -lrb- really -rrb-"),
        ("cannot gonna 'tis y'all rock'n'roll", "can not gon na 't is y' all rock 'n' roll"),
        ("U.S.A. at 5 p.m. etc. the end.", "u.s.a. at 5 p.m. etc. the end"),
        ("1/2 cup, 350F, 1,234.56 and $5.50 (10%)", "1/2 cup 350f 1,234.56 and $ 5.50 -lrb- 10 % -rrb-"),
        ("x&y R&B well-known a/b what?!?! no...", "x & y r&b well-known a/b what ?!?! no"),
        ("caf\u00e9 \U0001f600\u2028end", "caf end"),
        ("one\rtwo\vthree\ffour\r\nfive", "one two three four five"),
        ("", ""),
        (" .,;:- ", ""),
    ],
)
def test_python_tokens_follow_the_treebank(caption: str, tokens: str) -> None:
    assert tokenize_in_python([caption]) == [tokens]


def test_cleaning_leaves_one_line_of_ascii() -> None:
    assert clean("a\r\nb\vc\fd\u00e9\U0001f600e") == "a  b c d  e"


def test_line_breaks_inside_captions_do_not_shift_later_captions(tools: TextTools) -> None:
    captions = ["first\rline", "\f", "second\vline", "", "third\r\nline", "fourth"]
    assert tokenize_with_java(captions) == ["first line", "", "second line", "", "third line", "fourth"]


def test_tokeniser_reports_when_java_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **options: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess([], 3, b"", b"out of\nmemory")

    monkeypatch.setattr(ptb, "java_command", lambda *, max_heap: ["java"])
    monkeypatch.setattr(ptb, "jar_file", Path)
    monkeypatch.setattr(ptb.subprocess, "run", fails)
    with pytest.raises(JavaError, match="exit code 3: out of memory"):
        tokenize_with_java(["a car"])


def test_tokeniser_refuses_when_lines_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptb, "_run_java", lambda text, timeout: ["a car", "and more"])
    with pytest.raises(JavaError, match="2 lines for 1 captions"):
        tokenize_with_java(["a car"])


def test_java_is_named_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    with pytest.raises(JavaError, match="no java program on PATH"):
        tokenize_with_java(["a car"])


def test_missing_jars_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JavaError, match="pycocoevalcap is not installed"):
        java.jar_file(java.PTB_JAR)
