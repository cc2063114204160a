"""From a recipe to a checkpoint folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from longtake.config import apply_overrides, from_dict, read_toml, suggest, to_dict
from longtake.errors import CheckpointError, ConfigError
from longtake.train.loop import Run, TrainProgress
from longtake.train.mcvit.recipe import MCViTRecipe
from longtake.train.recipe import Recipe
from longtake.train.sts_recipe import CaptionRecipe, SDCRecipe, STSRecipe
from longtake.train.vlm.recipe import VLMRecipe

RECIPES: dict[str, type[Recipe]] = {"sts": STSRecipe, "sdc": SDCRecipe, "vlm": VLMRecipe, "mcvit": MCViTRecipe}
"""By ``method``; a recipe that names none is one of STS."""
VALID = "valid_"
"""What the names of scores begin with in a run's metrics."""


def read_recipe(path: Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe of any method, with ``a.b=value`` overrides on top.

    Raises:
        ConfigError: The file is missing or is not TOML, the method or a key is unknown, a value has another type.
    """
    return recipe_from(apply_overrides(read_toml(path), overrides), where=path.name)


def recipe_from(tables: Mapping[str, Any], *, where: str) -> Recipe:
    """A recipe of the method that it names. Raises ConfigError as ``read_recipe``."""
    method = tables.get("method", "sts")
    if method not in RECIPES:
        raise ConfigError(f"{where}: method is {method!r}; {suggest(str(method), RECIPES)}")
    return from_dict(RECIPES[method], tables, where=where)


def train(
    recipe: Recipe, folder: Path, *, resume: bool = False, seen_folder: Path | None = None
) -> Iterator[TrainProgress]:
    """Run a recipe in ``folder``, yielding after each step; ``folder/model`` becomes a checkpoint for ``hub.load``.

    Args:
        recipe: What is trained, on what.
        folder: Where metrics, checkpoints and the model go.
        resume: Go on from the folder's last checkpoint.
        seen_folder: Where the tokens of a frozen encoder are kept (16-bit), for runs that share one (captioners).

    Raises:
        ConfigError: the folder holds another run, or the recipe cannot work.
        CheckpointError: there is nothing to resume, or ``start_from`` does not exist.
    """
    resolved = json.dumps(to_dict(recipe), indent=2)
    written = folder / "recipe.json"
    if not resume and (folder / "metrics.jsonl").exists():
        raise ConfigError(
            f"{folder} already holds a run; add --resume to go on with it, or choose another folder with -o"
        )
    if resume and written.exists() and json.loads(written.read_text()) != json.loads(resolved):
        raise ConfigError(f"{folder} holds a run of another recipe; resume with the same recipe and --set values")
    if resume and not (folder / "checkpoint").is_dir():
        raise CheckpointError(f"{folder} has no checkpoint to resume from; start without --resume")
    torch.manual_seed(recipe.seed)
    run = build_run(recipe, folder, seen_folder)
    folder.mkdir(parents=True, exist_ok=True)
    written.write_text(resolved)
    first = run.resume() if resume else 0
    stages = {stage.name: stage for stage in recipe.stages}
    for progress in run.steps(first):
        if progress.step % recipe.evaluate_every == 0 or progress.step == progress.total_steps:
            if progress.tells:
                found = {f"{VALID}{name}": value for name, value in run.scores(stages[progress.stage]).items()}
                run.log.add(step=progress.step, stage=progress.stage, **found)
            run.export(folder / "model")
        yield progress


def build_run(recipe: Recipe, folder: Path, seen_folder: Path | None = None) -> Run:
    """The recipe's method with fresh weights; nothing is written yet."""
    if isinstance(recipe, VLMRecipe):
        from longtake.train.vlm.run import VLMRun

        return VLMRun(recipe, folder)
    if isinstance(recipe, MCViTRecipe):
        from longtake.train.mcvit.run import MCViTRun

        return MCViTRun(recipe, folder)
    if isinstance(recipe, CaptionRecipe):
        from longtake.train.sts_run import STSRun

        return STSRun(recipe, folder, seen_folder)
    raise ConfigError(f"recipe {recipe.name} is a {type(recipe).__name__}, which no method trains")
