"""PerceptionLM: frames back to back, without times."""

from __future__ import annotations

from torch import Tensor

from longtake.vlm.families.family import Family, fixed_size


class PerceptionLM(Family):
    """Nothing but placeholders, one frame a chunk."""

    name = "PerceptionLM"
    model_types = ("perception_lm",)
    example = "facebook/Perception-LM-1B"
    tested_with = "real classes; SigLIP's vision tower in the place of timm's"
    notes = "Its vision tower needs the package `timm`. The prompt has no times and no marks between frames."
    time_marker = "none"

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        size = self.processor.video_processor.size
        return fixed_size(self.name, (size["height"], size["width"]), height, width)

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        seen = self._processed(pixels, pts_seconds)
        text = self.processor.replace_video_token(seen, 0)
        return text, {"pixel_values_videos": seen["pixel_values_videos"]}
