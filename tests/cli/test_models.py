"""``longtake models``: what is bundled, and what a model is made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.vlm.folders import SETTINGS, write_folder

from longtake import hub
from longtake.cli.app import run
from longtake.methods.sts import STS, parameter_counts
from longtake.methods.sts_config import STSConfig


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundled model ``tiny-sts`` with a score in its notes."""
    folder = tmp_path / "tiny-sts"
    hub.save(STS(STSConfig.tiny()), folder, notes={"seed": 3, "scores": {"f1": 0.51239, "videos": 100}})
    monkeypatch.setattr(hub, "_bundled_root", lambda: tmp_path)
    return folder


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", [["models"], ["models", "list"]])
def test_models_lists_bundled_models_and_presets(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "tiny-sts" in text
    assert "f1 0.512" in text
    assert "sts-large" in text


@pytest.mark.usefixtures("folder")
def test_models_list_json_has_a_row_per_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    assert rows["tiny-sts"]["kind"] == "bundled"
    assert rows["sts-large"]["method"] == "sts"


def test_models_show_counts_the_parameters_of_a_checkpoint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "show", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["parameters"] == parameter_counts(STS(STSConfig.tiny()))
    assert facts["notes"]["seed"] == 3
    assert facts["segment"] == "4 frames at 4 fps, 16x16"


def test_models_show_builds_the_paper_model_without_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "show", "sts-large", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["parameters"]
    papers = {"vision": 300e6, "bottleneck": 128e6, "ssm": 46e6, "decoder": 128e6}
    for part, about in papers.items():
        assert counts[part] == pytest.approx(about, rel=0.1), part


def test_models_show_builds_streaming_dvc_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {}
    for name in ("sts-large", "sdc-large"):
        assert run(["models", "show", name, "--json"]) == 0
        counts[name] = json.loads(capsys.readouterr().out)["parameters"]
    assert counts["sdc-large"]["vision"] == counts["sts-large"]["vision"]
    # STS's decoder reads tokens of the same width
    assert counts["sdc-large"]["decoder"] == counts["sts-large"]["decoder"]


def test_models_show_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "show", "sts-large"]) == 0
    assert "parameters: vision" in capsys.readouterr().out


def test_models_show_tells_the_carried_state_apart_from_what_answers_are_read_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "tiny-vlm", **SETTINGS)
    assert run(["models", "show", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert 0 < facts["state_bytes"] < 1_000_000
    assert facts["detailed_bytes"] == facts["settings"]["detailed_bytes"]
    assert run(["models", "show", str(folder)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "kB, however long the video" in text
    assert "grows with the video up to 8.6 GB" in text


@pytest.mark.usefixtures("folder")
def test_models_show_names_the_nearest_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "show", "tiny-st"]) == 1
    assert "did you mean 'tiny-sts'?" in capsys.readouterr().err
