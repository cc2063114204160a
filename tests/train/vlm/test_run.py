"""The loop on a tiny model: answers are learned, and a killed run goes on to the very same weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from longtake.errors import CheckpointError, ConfigError
from longtake.train.run import train
from longtake.train.vlm.recipe import VLMRecipe, VLMStage

MODEL = {
    "size": 24,
    "patch": 4,
    "vision_dim": 16,
    "vision_layers": 1,
    "vision_heads": 2,
    "vision_inner": 16,
    "dim": 32,
    "layers": 2,
    "heads": 2,
    "kv_heads": 1,
    "inner": 32,
    "listens_after": 1,
}
SEE = VLMStage(name="see", data="clips", steps=2, batch_size=16, warmup_steps=1)
TELL = VLMStage(name="tell", data="videos", steps=3, batch_size=1, min_length=16, max_length=18, questions=4)
RECIPE = VLMRecipe(
    name="tiny", model=MODEL, stages=(SEE, TELL), evaluate_every=5, evaluate_videos=1, save_seconds=0.0, workers=0
)


def test_a_killed_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    for _ in train(RECIPE, tmp_path / "whole"):
        pass
    for progress in train(RECIPE, tmp_path / "killed"):
        if progress.step == 3:
            break
    for _ in train(RECIPE, tmp_path / "killed", resume=True):
        pass
    whole, killed = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "killed"))
    assert whole.keys() == killed.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, killed[name]), name
    rows = [json.loads(line) for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5]
    assert any("valid_all" in row for row in rows)


def test_answers_are_learned(tmp_path: Path) -> None:
    stage = replace(TELL, steps=30, learning_rate=5e-3, warmup_steps=2)
    losses = [progress.losses["answer"] for progress in train(replace(RECIPE, stages=(stage,)), tmp_path)]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])


def test_another_run_is_gone_on_from(tmp_path: Path) -> None:
    for _ in train(RECIPE, tmp_path / "first"):
        pass
    short = replace(RECIPE, stages=(replace(SEE, steps=1, learning_rate=1e-9),), start_from=str(tmp_path / "first"))
    for _ in train(short, tmp_path / "second"):
        pass
    first, second = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("first", "second"))
    assert all(torch.allclose(tensor, second[name], atol=1e-6, rtol=1e-2) for name, tensor in first.items())
    of_model = replace(short, start_from=str(tmp_path / "first" / "model"))
    for _ in train(of_model, tmp_path / "third"):
        pass
    third = load_file(tmp_path / "third" / "model" / "model.safetensors")
    assert all(torch.allclose(tensor, third[name], atol=1e-6, rtol=1e-2) for name, tensor in first.items())
    for place, words in ((tmp_path, "neither a run nor a model folder"), ("nowhere", "no model 'nowhere'")):
        with pytest.raises(CheckpointError, match=words):
            next(train(replace(short, start_from=str(place)), tmp_path / "fourth"))


def test_stages_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected 0 < min <= max"):
        replace(TELL, min_length=20)
    with pytest.raises(ConfigError, match="expected more than 0"):
        replace(TELL, steps=0)
    with pytest.raises(ConfigError, match="two stages have one name"):
        replace(RECIPE, stages=(SEE, SEE))
