"""The loop on a tiny model: a batch is learned, and a killed run goes on to the very same weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from longtake import hub
from longtake.config import to_dict
from longtake.data.toybox.routines import ROUTINES
from longtake.errors import CheckpointError, ConfigError
from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_config import MCViTConfig
from longtake.train.mcvit.material import Videos
from longtake.train.mcvit.objective import MCViTObjective
from longtake.train.mcvit.recipe import MCViTRecipe, MCViTStage
from longtake.train.mcvit.run import model_config
from longtake.train.run import train


def tiny_model(**memory: Any) -> dict[str, Any]:
    fields = to_dict(MCViTConfig.tiny(**memory))
    del fields["labels"], fields["text"]["vocabulary"]
    return fields | {"positions": "repeat"}


CLIPS = MCViTStage(name="clips", data="clips", steps=2, batch_size=4, warmup_steps=1)
ROUTINE = MCViTStage(
    name="routines", data="videos", steps=3, batch_size=2, warmup_steps=1, min_frames=8, max_frames=12, questions=1
)
RECIPE = MCViTRecipe(
    name="tiny",
    model=tiny_model(),
    looks_after=1,
    stages=(CLIPS, ROUTINE),
    average=0.5,
    evaluate_every=5,
    evaluate_videos=2,
    evaluate_frames=(8,),
    save_seconds=0.0,
    workers=0,
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
        assert tensor.dtype in (torch.bfloat16, torch.int64)
    rows = [json.loads(line) for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5]
    assert any({"valid_classes_8", "valid_questions_8"} <= row.keys() for row in rows)
    model = hub.load(str(tmp_path / "whole" / "model"), device="cpu")
    assert isinstance(model, MCViT)
    assert model.config.labels == ROUTINES
    assert model.encoder.norm.weight.dtype == torch.float32


def test_one_batch_is_learned() -> None:
    torch.manual_seed(0)
    config = model_config(RECIPE)
    objective = MCViTObjective(MCViT(config), looks_after=1)
    batch = Videos(config, replace(ROUTINE, batch_size=4), seed=0, split="routines")[0]
    optimizer = torch.optim.AdamW(objective.parameters(), lr=1e-2)
    found: list[dict[str, float]] = []
    for step in range(25):
        losses = objective(batch, seed=step)
        optimizer.zero_grad()
        losses["loss"].backward()
        optimizer.step()
        found.append({name: loss.item() for name, loss in losses.items()})
    for name in ("loss", "classes", "videos", "questions", "ranks", "seen_kind"):
        assert found[-1][name] < 0.8 * found[0][name], name


@pytest.mark.parametrize("memory", [{"variant": "joint", "mask": 0.25}, {"variant": "st"}, {"variant": "late"}])
def test_variants_start_from_the_same_clips(memory: dict[str, Any], tmp_path: Path) -> None:
    recipe = replace(RECIPE, average=0.0)
    for _ in train(replace(recipe, stages=(CLIPS,)), tmp_path / "clips"):
        pass
    other = replace(recipe, model=tiny_model(**memory), stages=(replace(ROUTINE, steps=1, learning_rate=1e-9),))
    for _ in train(replace(other, start_from=str(tmp_path / "clips")), tmp_path / "other"):
        pass
    clips, found = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("clips", "other"))
    mine = [name for name in clips if name.startswith("encoder.")]
    assert mine
    assert all(torch.allclose(clips[name], found[name], atol=1e-6, rtol=1e-2) for name in mine)


def test_a_linear_head_takes_the_place_of_the_texts(tmp_path: Path) -> None:
    fields = {name: value for name, value in tiny_model().items() if name != "text"}
    stage = replace(ROUTINE, questions=0, steps=1)
    losses = [progress.losses for progress in train(replace(RECIPE, model=fields, stages=(stage,)), tmp_path)]
    assert "classes" in losses[0]
    assert "videos" not in losses[0]
    assert hub.load(str(tmp_path / "model"), device="cpu").config.labels == ROUTINES  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": tiny_model() | {"fsp": 3.0}}, "did you mean 'fps'"),
        ({"looks_after": 3}, "expected 1 to 2"),
        ({"start_from": "nowhere"}, "no model 'nowhere'"),
        ({"stages": (replace(ROUTINE, min_frames=1, max_frames=3),)}, "a segment of 4 or more"),
        ({"model": {key: part for key, part in tiny_model().items() if key != "text"}}, "need \\[model.text\\]"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_in_one_line(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, CheckpointError), match=message) as caught:
        next(train(replace(RECIPE, **fields), tmp_path / "run"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "expected more than 0"),
        ({"min_seconds": 50.0}, "expected 0 < min <= max"),
        ({"file_share": 1.5}, "expected 0 to 1"),
        ({"questions": -1}, "expected 0 or more"),
    ],
)
def test_a_stage_that_cannot_work_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(ROUTINE, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stages": ()}, "no stages"),
        ({"stages": (CLIPS, CLIPS)}, "two stages have one name"),
        ({"average": 1.0}, "expected 0 to below 1"),
        ({"evaluate_every": 0}, "expected 1 or more"),
        ({"evaluate_frames": ()}, "expected numbers from 1"),
    ],
)
def test_values_of_a_recipe_that_make_no_sense_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(RECIPE, **fields)
