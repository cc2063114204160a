"""Eagle2.5, a model with code of its own: known by its shape, a decoder beside a vision tower.

Its forward takes one call per conversation and no cache of ours, so its parts are called: ``extract_feature`` for
pictures, ``language_model`` for the rest. Any model with these two parts can be served this way.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import Cache

from longtake.errors import ConfigError
from longtake.vlm.families.family import Chunk, Family, fixed_size

PARTS = ("language_model", "extract_feature")


class Eagle(Family):
    """Each frame with its number and its time, in brackets."""

    name = "Eagle2.5"
    model_types = ("eagle_2_5_vl",)
    example = "nvidia/Eagle2.5-8B"
    tested_with = "a stand-in of its shape: SigLIP, pixel shuffle, MLP, Qwen2"
    notes = (
        "Code of its own, which was not at hand: the text of frames follows the published processor of its sister "
        "Eagle3, without the sampling rate that may stand before the first frame."
    )
    time_marker = "`Frame 1 sample at 1.50s: `"

    def __init__(self, model: Any, processor: Any, **options: Any) -> None:
        if missing := [part for part in PARTS if not hasattr(model, part)]:
            raise ConfigError(f"{type(model).__name__} has no {missing[0]}; an {self.name} has {' and '.join(PARTS)}")
        super().__init__(model, processor, **options)

    def forward(self, chunk: Chunk, cache: Cache, *, keep: int = 1) -> Float[Tensor, "1 kept vocabulary"]:
        """Logits of the last ``keep`` tokens (0: of all)."""
        decoder = self.model.language_model
        embeds = decoder.get_input_embeddings()(chunk.input_ids)
        if "pixel_values" in chunk.inputs:
            seen = self.model.extract_feature(chunk.inputs["pixel_values"]).to(embeds)
            embeds = embeds.masked_scatter((chunk.input_ids == self.processor.image_token_id)[..., None], seen)
        return decoder(
            inputs_embeds=embeds, position_ids=chunk.position_ids, cache=cache, use_cache=True, logits_to_keep=keep
        ).logits

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        side = self.model.config.vision_config.image_size
        return fixed_size(self.name, (side, side), height, width)

    def _video_token(self) -> str:
        # its chat template numbers the videos of a conversation
        return f"<{self.processor.video_placeholder}-1>"

    def _intro(self) -> str:
        return "The first video: "

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        maker, config = self.processor, self.model.config
        mean, std = (
            torch.tensor(values, device=self.device).view(3, 1, 1)
            for values in (maker.image_processor.image_mean, maker.image_processor.image_std)
        )
        seen = ((pixels.to(self.device) / 255 - mean) / std).to(self.dtype)
        side = int(self.height // config.vision_config.patch_size * config.downsample_ratio)
        picture = f"{maker.image_start_token}{maker.image_token * side**2}{maker.image_end_token}"
        text = f"Frame {index + 1} sample at {pts_seconds[0]:.2f}s: {picture}"
        return text, {"pixel_values": seen}
