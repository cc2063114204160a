"""VideoLLaMA3: each frame's time in words; patches that did not change since the frame before are left out."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import Cache

from longtake.vlm.families.family import Chunk, Family, free_size


class VideoLlama3(Family):
    """One frame a chunk; how many tokens it has depends on the frame before."""

    name = "VideoLLaMA3"
    model_types = ("video_llama_3",)
    example = "lkhl/VideoLLaMA3-2B-Image-HF"
    frame_size = "any multiple of patch x merge; 448 x 448 if not said"
    notes = "The number of tokens differs from frame to frame."
    time_marker = "`Time 1.5s:`"
    needs_frame_before = True

    def forward(self, chunk: Chunk, cache: Cache, *, keep: int = 1) -> Float[Tensor, "1 kept vocabulary"]:
        """As in every family, in two halves: this model's forward has no way to ask for the last logits alone."""
        hidden = self.model.model(
            input_ids=chunk.input_ids, position_ids=chunk.position_ids, cache=cache, use_cache=True, **chunk.inputs
        ).last_hidden_state
        return self.model.lm_head(hidden[:, -keep:])

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        vision = self.processor.video_processor
        return free_size(self.name, vision.patch_size * vision.merge_size, height, width)

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        both = pixels if before is None else torch.cat([before[None].to(pixels.device), pixels])
        seen = self._processed(both, (pts_seconds[0],) * len(both))
        grid = seen["video_grid_thw"]
        patches = int(grid[0, 1] * grid[0, 2])
        grid[0, 0] = 1
        changed = seen["video_compression_mask"][-patches // int(seen["video_merge_sizes"][0]) ** 2 :]
        text = f"Time {pts_seconds[0]:.1f}s:" + self.processor.video_token * int(changed.sum())
        inputs = {
            "pixel_values_videos": seen["pixel_values_videos"][-patches:],
            "video_grid_thw": grid,
            "video_merge_sizes": seen["video_merge_sizes"],
            "video_compression_mask": changed,
        }
        return ("," if index else "") + text, inputs
