"""One training run of an MC-ViT model or one of its variants."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from longtake import hub
from longtake.config import from_dict
from longtake.data.toybox.routines import ROUTINES, ROUTINES_SPLIT
from longtake.errors import ConfigError
from longtake.eval.mcvit_cost import watching_cost
from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_config import MCViTConfig
from longtake.train.loop import Place
from longtake.train.mcvit.material import Batch, Clips, Videos, to
from longtake.train.mcvit.objective import MCViTObjective
from longtake.train.mcvit.recipe import MCViTRecipe, MCViTStage
from longtake.train.mcvit.texts import text_words
from longtake.train.muon import MuonRun
from longtake.train.start import start_from
from longtake.train.truth import IGNORED

INNER = (".blocks.", ".layer.")
"""Of the video transformer and of BERT."""


class MCViTRun(MuonRun):
    """One training run in a folder."""

    def __init__(self, recipe: MCViTRecipe, folder: Path) -> None:
        self.config = model_config(recipe)
        objective = MCViTObjective(MCViT(self.config), recipe.looks_after)
        if recipe.start_from:
            start_from(objective, hub.find(recipe.start_from))
        super().__init__(recipe, folder, objective, inner=INNER)
        self.recipe: MCViTRecipe = recipe

    def stage_data(self, stage: MCViTStage, split: str) -> Clips | Videos:
        seed = self.recipe.seed * 1000 + zlib.crc32(f"{split} {stage.name}".encode()) % 1000
        if stage.data == "clips":
            return Clips(self.config, stage, seed)
        named = stage.split if split == "train" or stage.split == ROUTINES_SPLIT else split
        return Videos(self.config, stage, seed, named, spread=split == "train")

    def one_step(self, place: Place, batch: Batch) -> dict[str, float]:
        torch.manual_seed(self.recipe.seed * 1_000_003 + place.step)
        self.objective.train()
        with self.accelerator.autocast():
            losses = self.objective(
                to(batch, self.accelerator.device), seed=place.step, label_weight=place.stage.label_weight
            )
        return self.descend(place, losses)

    def scores(self, stage: MCViTStage) -> dict[str, float]:
        """Share of right classes and answers on unseen videos of the stage's lengths, at each number of frames.

        The weights are the running mean, which is what ``export`` writes. Beside them what it takes to watch such a
        video: ``gflops``, and ``peak_mb`` of activations; ``train_gflops`` is three times that of one of the
        stage's longest videos, forwards and backwards.
        """
        objective = cast(MCViTObjective, self.averaged.module).eval()
        found: dict[str, float] = {}
        for frames in self.recipe.evaluate_frames:
            marks = list(self._marks(objective, stage, frames))
            for name in dict.fromkeys(name for name, _ in marks):
                mine = [right for kind, right in marks if kind == name]
                found[f"{name}_{frames}"] = round(sum(mine) / len(mine), 4)
            flops, peak = watching_cost(objective.model, frames)
            found |= {f"gflops_{frames}": flops / 1e9, f"peak_mb_{frames}": peak / 1e6}
        found["train_gflops"] = 3 * watching_cost(objective.model, stage.max_frames)[0] / 1e9
        return found

    def _marks(self, objective: MCViTObjective, stage: MCViTStage, frames: int) -> Iterator[tuple[str, float]]:
        data = self.stage_data(stage, "valid")
        assert isinstance(data, Videos), "clips are not scored"
        for number in range(-(-self.recipe.evaluate_videos // stage.batch_size)):
            batch = to(data.batch(number, frames), self.accelerator.device)
            with torch.no_grad(), self.accelerator.autocast():
                videos = objective.model.watch(batch.frames)
            yield from marked(objective, videos.float(), batch)

    def export(self, folder: Path) -> None:
        """The model without its training heads, in bfloat16; the old folder stays until the new one is whole."""
        model = copy.deepcopy(cast(MCViTObjective, self.averaged.module).model).to(torch.bfloat16)
        hub.save(model, folder)


@torch.no_grad()
def marked(
    objective: MCViTObjective, vectors: Float[Tensor, "videos dim"], batch: Batch
) -> Iterator[tuple[str, float]]:
    """1.0 for each class and answer that is right, 0.0 for the others, with what it is."""
    videos = objective.model.head(vectors)
    if (batch.labels != IGNORED).any():
        said = objective.class_scores(videos, batch.wording).argmax(-1)
        yield from (("classes", float(right)) for right in (said == batch.labels)[batch.labels != IGNORED])
    if batch.questions:
        yield from (
            ("questions", float(said.argmax() == right)) for said, right in objective.option_scores(videos, batch)
        )


def model_config(recipe: MCViTRecipe) -> MCViTConfig:
    """Classes and vocabulary are Toybox's unless the recipe says otherwise.

    Raises:
        ConfigError: A field that is unknown or refused, or stages that do not fit the model.
    """
    fields: dict[str, Any] = {"labels": list(ROUTINES)} | recipe.model
    text = fields.get("text")
    if isinstance(text, dict) and not (text.get("vocabulary") or text.get("tokenizer")):
        fields["text"] = text | {"vocabulary": list(text_words())}
    config = from_dict(MCViTConfig, fields, where=f"recipe {recipe.name}: model")
    if config.text is None:
        if config.labels != ROUTINES:
            raise ConfigError(f"recipe {recipe.name}: a linear head is trained on the {len(ROUTINES)} routines only")
        asked = next((stage.name for stage in recipe.stages if stage.questions), None)
        if asked:
            raise ConfigError(f"recipe {recipe.name}: stage {asked} has questions, which need [model.text]")
    for stage in recipe.stages:
        if stage.data == "videos" and stage.max_frames < config.num_frames:
            raise ConfigError(
                f"recipe {recipe.name}: stage {stage.name} takes {stage.max_frames} frames of a video, expected a "
                f"segment of {config.num_frames} or more"
            )
    return config
