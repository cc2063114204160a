"""One training run of a small video VLM: the house's loop with Muon for the matrices and AdamW for the rest."""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from accelerate import Accelerator

from longtake import hub
from longtake.config import from_dict
from longtake.train.loop import Place
from longtake.train.muon import MuonRun
from longtake.train.start import start_from
from longtake.train.truth import IGNORED
from longtake.train.vlm.build import VLMConfig, build_model, build_processor, save
from longtake.train.vlm.material import Batch, Clips, Films, to
from longtake.train.vlm.objective import VLMObjective
from longtake.train.vlm.recipe import VLMRecipe, VLMStage
from longtake.train.words import question_words


class VLMRun(MuonRun):
    """One training run in a folder."""

    def __init__(self, recipe: VLMRecipe, folder: Path) -> None:
        # each checkpoint would warn that the tied word embeddings are written once
        logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
        self.recipe: VLMRecipe = recipe
        self.config = from_dict(VLMConfig, recipe.model, where=f"recipe {recipe.name}: model")
        self.processor = build_processor(self.config, question_words())
        objective = VLMObjective(build_model(self.config, self.processor.tokenizer), self.config)
        if recipe.start_from:
            start_from(objective, hub.find(recipe.start_from))
        inner = (".blocks.", ".layers.", ".merger.")
        super().__init__(recipe, folder, objective, inner=inner, scaled=(".visual.", "seen_heads"))

    def stage_data(self, stage: VLMStage, split: str) -> Clips | Films:
        seed = self.recipe.seed * 1000 + zlib.crc32(f"{split} {stage.name}".encode()) % 1000
        if stage.data == "clips":
            return Clips(self.config, seed, stage.batch_size)
        return Films(
            self.config,
            self.processor.tokenizer,
            seed=seed,
            batch_size=stage.batch_size,
            steps=(stage.min_length, stage.max_length),
            questions=stage.questions,
            thinned=stage.thinned,
            file_share=stage.file_share,
            split=split,
        )

    def one_step(self, place: Place, batch: Batch) -> dict[str, float]:
        torch.manual_seed(self.recipe.seed * 1_000_003 + place.step)
        stage = place.stage
        self.objective.train()
        with self.accelerator.autocast():
            losses = self.objective(
                to(batch, self.accelerator.device), label_weight=stage.label_weight, frozen=not stage.vision_scale
            )
        return self.descend(place, losses, scale=stage.vision_scale)

    def scores(self, stage: VLMStage) -> dict[str, float]:
        """Share of answers whose every token is the most probable one, over unseen videos of the stage's lengths.

        The weights are the running mean, which is what ``export`` writes.
        """
        objective = cast(VLMObjective, self.averaged.module).eval()
        data = self.stage_data(stage, "valid")
        right: dict[str, list[float]] = defaultdict(list)
        for index in range(-(-self.recipe.evaluate_videos // stage.batch_size)):
            for form, correct in marked(objective, data[index], self.processor.tokenizer, self.accelerator):
                right[form].append(correct)
                right["all"].append(correct)
        return {form: round(sum(marks) / len(marks), 4) for form, marks in sorted(right.items())}

    def export(self, folder: Path) -> None:
        """The model without its training heads, as a folder of transformers."""
        save(cast(VLMObjective, self.averaged.module).model, self.processor, folder, self.config)


def marked(
    objective: VLMObjective, batch: Batch, tokenizer: Any, accelerator: Accelerator
) -> Iterator[tuple[str, float]]:
    """First words of each question, and 1.0 where its answer is right."""
    with torch.no_grad(), accelerator.autocast():
        batch = to(batch, accelerator.device)
        hidden, _ = objective.read(batch, objective.see(batch))
        said = objective.answer_logits(hidden, batch).argmax(-1)
    asked = batch.targets != IGNORED
    wrong = torch.zeros_like(batch.targets, dtype=torch.bool)
    wrong[asked] = said != batch.targets[asked]
    for video, number in torch.cartesian_prod(*map(torch.arange, batch.seen.shape)).tolist():
        question = tokenizer.decode(batch.branches[video, number], skip_special_tokens=True)
        yield question.split()[0], float(not wrong[video, number].any())
