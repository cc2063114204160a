"""The loop on a tiny model: it learns, and a killed run goes on to the very same weights."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from longtake import hub
from longtake.errors import CheckpointError, ConfigError
from longtake.methods.baselines import WholeVideoConfig
from longtake.train.loop import Place, learning_rate
from longtake.train.run import read_recipe, train
from longtake.train.sts_recipe import CaptionRecipe, SDCRecipe, STSRecipe, STSStage

MODEL = {
    "size": 16,
    "encoder": {"dim": 16, "stem_dim": 8, "depth": 1},
    "bottleneck": {"num_tokens": 3, "dim": 16, "num_heads": 2},
    "stack": {"num_layers": 1, "state": 4},
    "decoder": {"dim": 16, "num_layers": 1, "num_heads": 2, "mlp_dim": 32, "max_tokens": 12},
}
SEE = STSStage(name="see", data="frames", steps=3, batch_size=2, warmup_steps=1)
TELL = STSStage(name="tell", data="videos", steps=3, batch_size=1, warmup_steps=1, max_seconds=41)
RECIPE = STSRecipe(
    name="tiny", model=MODEL, stages=(SEE, TELL), evaluate_every=3, evaluate_videos=1, save_seconds=0.0, workers=0
)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def test_a_killed_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    for _ in train(RECIPE, tmp_path / "whole"):
        pass
    for progress in train(RECIPE, tmp_path / "killed"):
        if progress.step == 4:
            break
    for _ in train(RECIPE, tmp_path / "killed", resume=True):
        pass
    whole, killed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert whole.keys() == killed.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, killed[name]), name
    rows = [json.loads(line) for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5, 6]
    assert any("valid_f1" in row for row in rows)
    assert hub.load(str(tmp_path / "whole" / "model")).segment_spec.height == 16


SDC_MODEL = {name: fields for name, fields in MODEL.items() if name != "stack"} | {"memory": {"size": 9}}
SDC_RECIPE = SDCRecipe(
    name="sdc", model=SDC_MODEL, stages=(SEE, TELL), evaluate_every=6, evaluate_videos=1, save_seconds=0.0, workers=0
)


def test_a_killed_run_of_streaming_dvc_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    for _ in train(SDC_RECIPE, tmp_path / "whole"):
        pass
    for progress in train(SDC_RECIPE, tmp_path / "killed"):
        if progress.step == 4:
            break
    for _ in train(SDC_RECIPE, tmp_path / "killed", resume=True):
        pass
    whole, killed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert {name for name, tensor in whole.items() if not torch.equal(tensor, killed[name])} == set()
    rows = [json.loads(line) for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert any("captions" in row for row in rows)
    assert any("valid_f1" in row for row in rows)
    assert type(hub.load(str(tmp_path / "whole" / "model"))).__name__ == "SDC"


def test_labels_of_moments_are_learned(tmp_path: Path) -> None:
    stage = replace(SEE, steps=40, learning_rate=1e-2)
    losses = [progress.losses["loss"] for progress in train(replace(RECIPE, stages=(stage,)), tmp_path)]
    assert sum(losses[-5:]) < 0.75 * sum(losses[:5])


@pytest.mark.parametrize("mixer", ["ssm", "transformer"])
def test_global_baselines_train_on_frames_spread_over_the_video(mixer: str, tmp_path: Path) -> None:
    recipe = replace(
        RECIPE,
        stages=(replace(TELL, encoder_scale=0.0, steps=2),),
        whole_video=WholeVideoConfig(mixer=mixer),
        frames_per_video=8,
        model=MODEL | {"time": {"encoding": "video", "num_buckets": 32}, "num_frames": 1},
    )
    losses = [progress.losses for progress in train(recipe, tmp_path)]
    assert len(losses) == 2
    assert all(math.isfinite(loss["captions"]) for loss in losses)


def test_learning_rate_warms_up_and_falls_to_its_final_scale() -> None:
    stage = STSStage(name="x", data="frames", steps=100, batch_size=1, learning_rate=1.0, warmup_steps=10)
    rates = [learning_rate(Place(stage=stage, index=index, step=index)) for index in range(100)]
    assert rates[0] == 0.1
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[11:] == sorted(rates[11:], reverse=True)
    assert rates[-1] == pytest.approx(stage.final_scale, abs=1e-3)


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    next(train(RECIPE, tmp_path))
    with pytest.raises(ConfigError, match="already holds a run"):
        next(train(RECIPE, tmp_path))
    with pytest.raises(ConfigError, match="another recipe"):
        next(train(replace(RECIPE, seed=5), tmp_path, resume=True))


def test_resuming_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint to resume"):
        next(train(RECIPE, tmp_path / "none", resume=True))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stages": ()}, "no stages"),
        ({"frames_per_video": 8}, "encoder_scale = 0"),
        ({"start_from": "nowhere"}, "no model 'nowhere'"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused(fields: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, CheckpointError), match=message):
        next(train(replace(RECIPE, **fields), tmp_path))


def test_every_recipe_in_the_repository_builds() -> None:
    from longtake.config import from_dict
    from longtake.train.mcvit import run as mcvit_run
    from longtake.train.mcvit.recipe import MCViTRecipe
    from longtake.train.sts_run import model_config
    from longtake.train.vlm.build import VLMConfig

    paths = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
    assert paths
    for path in paths:
        recipe = read_recipe(path)
        if isinstance(recipe, CaptionRecipe):
            with torch.device("meta"):
                assert model_config(recipe).vocabulary
        elif isinstance(recipe, MCViTRecipe):
            assert mcvit_run.model_config(recipe).labels
        else:
            assert from_dict(VLMConfig, recipe.model).dim > 0


def test_a_recipe_of_an_unknown_method_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('name = "x"\nmethod = "vml"\n')
    with pytest.raises(ConfigError, match=r"did you mean 'vlm'\?"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("step", b"x"), ("step", b"999"), ("step", None), ("model.safetensors", b"cut"), ("optimizer.bin", b"cut")],
)
def test_a_damaged_checkpoint_is_refused_in_one_line(name: str, content: bytes | None, tmp_path: Path) -> None:
    for progress in train(RECIPE, tmp_path):
        if progress.step == 2:
            break
    path = tmp_path / "checkpoint" / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged") as caught:
        next(train(RECIPE, tmp_path, resume=True))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [{"evaluate_every": 0}, {"seed": -1}, {"workers": -1}, {"stages": (SEE, SEE)}, {"save_seconds": math.nan}],
)
def test_values_of_a_recipe_that_make_no_sense_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="recipe tiny"):
        replace(RECIPE, **fields)
