"""From a recipe to a checkpoint folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch

from longtake import hub
from longtake.config import from_dict, to_dict
from longtake.data.toybox import make_script, vocabulary
from longtake.errors import CheckpointError, ConfigError
from longtake.methods.baselines import WholeVideo
from longtake.methods.sts import STS
from longtake.methods.sts_config import STSConfig
from longtake.train.loop import Run, TrainProgress
from longtake.train.material import Batch
from longtake.train.objective import STSObjective
from longtake.train.recipe import Recipe
from longtake.train.validate import caption_video, scores


def train(
    recipe: Recipe, folder: Path, *, resume: bool = False, seen_folder: Path | None = None
) -> Iterator[TrainProgress]:
    """Run a recipe in ``folder``, yielding after each step; ``folder/model`` becomes a checkpoint for ``hub.load``.

    Args:
        recipe: What is trained, on what.
        folder: Where metrics, checkpoints and the model go.
        resume: Go on from the folder's last checkpoint.
        seen_folder: Where the tokens of a frozen encoder are kept (16-bit), for runs that share one.

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
    if resume and written.exists() and written.read_text() != resolved:
        raise ConfigError(f"{folder} holds a run of another recipe; resume with the same recipe and --set values")
    if resume and not (folder / "checkpoint").is_dir():
        raise CheckpointError(f"{folder} has no checkpoint to resume from; start without --resume")
    torch.manual_seed(recipe.seed)
    objective = build_objective(recipe)
    folder.mkdir(parents=True, exist_ok=True)
    written.write_text(resolved)
    run = Run(recipe, objective, folder, seen_folder)
    first = run.resume() if resume else 0
    judge = Judge(run)
    for progress in run.steps(first):
        if progress.step % recipe.evaluate_every == 0 or progress.step == progress.total_steps:
            if progress.tells:
                found = {f"valid_{name}": value for name, value in judge.scores(objective).items()}
                run.log.add(step=progress.step, stage=progress.stage, **found)
            export(objective, folder / "model")
        yield progress


def build_objective(recipe: Recipe) -> STSObjective:
    """The model of the recipe with its training heads, with the weights of ``start_from`` where they fit."""
    config = model_config(recipe)
    model, kept = STS(config), config.bottleneck
    whole = recipe.whole_video and WholeVideo(
        recipe.whole_video, config.stack, kept.num_tokens, kept.dim, config.num_frames
    )
    objective = STSObjective(model, whole)
    if recipe.start_from:
        start_from(objective, hub.find(recipe.start_from), recipe.start_parts)
    return objective


def model_config(recipe: Recipe) -> STSConfig:
    """Toybox's vocabulary unless the recipe says otherwise."""
    fields = {"vocabulary": list(vocabulary())} | recipe.model
    return from_dict(STSConfig, fields, where=f"recipe {recipe.name}: model")


def start_from(objective: STSObjective, folder: Path, parts: tuple[str, ...] = ()) -> None:
    """Take over weights whose name and shape agree: of a run's checkpoint (heads too) or of a saved model."""
    from safetensors.torch import load_file

    places = (folder / "checkpoint" / "model.safetensors", folder / "model.safetensors")
    found = next((path for path in places if path.exists()), None)
    if found is None:
        raise CheckpointError(f"start_from {folder}: neither a run nor a checkpoint folder; train that recipe before")
    weights = load_file(found)
    if found == places[1]:
        weights = {f"model.{name}": tensor for name, tensor in weights.items()}
    own = objective.state_dict()
    prefixes = tuple(f"model.{part}." for part in parts)
    fitting = {
        name: tensor
        for name, tensor in weights.items()
        if name in own and own[name].shape == tensor.shape and (not parts or name.startswith(prefixes))
    }
    objective.load_state_dict(fitting, strict=False)


class Judge:
    """Scores on validation videos that are drawn, and by a frozen encoder seen, once."""

    def __init__(self, run: Run) -> None:
        recipe = run.recipe
        self.spread = bool(recipe.frames_per_video)
        stage = next((stage for stage in reversed(recipe.stages) if stage.data == "videos"), None)
        count = recipe.evaluate_videos if stage else 0
        self.scripts = [make_script(recipe.seed + index, split="valid") for index in range(count)]
        self.data = run.stage_data(stage, "valid") if stage else None
        self.videos: list[Batch] = []

    def scores(self, objective: STSObjective) -> dict[str, float]:
        assert self.data is not None, "a stage that tells has videos"
        objective.eval()
        device = next(objective.parameters()).device
        if not self.videos:
            self.videos = [self.data.video(script) for script in self.scripts]
        pairs = [
            (batch.scripts[0], caption_video(objective, batch.to(device), spread=self.spread)) for batch in self.videos
        ]
        return scores(pairs)


def export(objective: STSObjective, folder: Path) -> None:
    """The model without its training heads, for ``hub.load``; the old folder stays until the new one is whole."""
    fresh = folder.with_name(folder.name + ".new")
    hub.save(objective.model, fresh)
    if folder.exists():
        for path in fresh.iterdir():
            path.replace(folder / path.name)
        fresh.rmdir()
    else:
        fresh.rename(folder)
