"""``longtake doctor`` says what is there and what is not, and never fails over it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from longtake.cli.app import run


def test_doctor_prints_a_line_per_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"longtake", "python", "torch", "device", "av", "java", "models", "disk"} <= set(lines)
    assert torch.__version__ in lines["torch"]


def test_doctor_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert findings["torch"].startswith(torch.__version__)
    assert all(isinstance(value, str) and value for value in findings.values())


def test_doctor_says_what_is_missing_and_why_it_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LONGTAKE_SHARED", str(tmp_path / "none"))
    assert run(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert findings["ffmpeg"] == "not found: only the tests use it"
    assert "does not run" in findings["java"]
    assert "METEOR is left out" in findings["java"]
    assert "skipped" in findings["shared data"]
