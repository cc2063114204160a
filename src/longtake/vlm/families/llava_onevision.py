"""LLaVA-OneVision: frames pooled two by two, back to back, and one newline vector after the last."""

from __future__ import annotations

import math
from typing import Any

from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import Cache
from transformers.modeling_outputs import BaseModelOutputWithPooling

from longtake.vlm.families.family import Chunk, Family, fixed_size


class LlavaOneVision(Family):
    """No marker text. The newline comes with the first question, since only then has the video ended."""

    name = "LLaVA-OneVision"
    model_types = ("llava_onevision",)
    example = "llava-hf/llava-onevision-qwen2-0.5b-ov-hf"
    notes = "The prompt has no times and no marks between frames."
    time_marker = "none"

    def forward(self, chunk: Chunk, cache: Cache, *, keep: int = 1) -> Float[Tensor, "1 kept vocabulary"]:
        """As in every family, but pictures go in encoded: the model's forward would end each call's with a newline."""
        return self.model(
            input_ids=chunk.input_ids,
            position_ids=chunk.position_ids,
            cache=cache,
            use_cache=True,
            logits_to_keep=keep,
            mm_encoder_outputs=self._encoded(chunk),
        ).logits

    def _encoded(self, chunk: Chunk) -> dict[str, Any] | None:
        if "pixel_values_videos" in chunk.inputs:
            seen = self.model.get_video_features(chunk.inputs["pixel_values_videos"], return_dict=True)
            return {"video": BaseModelOutputWithPooling(pooler_output=seen.pooler_output[:, :-1])}
        if (chunk.input_ids == self.processor.video_token_id).any():
            return {"video": BaseModelOutputWithPooling(pooler_output=self.model.model.image_newline[None, None])}
        return None

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        side = self.model.config.vision_config.image_size
        return fixed_size(self.name, (side, side), height, width)

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        seen = self._processed(pixels, pts_seconds)
        side = math.ceil(math.isqrt(self.processor.num_image_tokens) / 2)
        return self.processor.video_token * side**2, {"pixel_values_videos": seen["pixel_values_videos"]}

    def _outro(self) -> str:
        return self.processor.video_token
