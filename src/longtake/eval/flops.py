"""Floating point operations of a stream, counted by torch's counter on the meta device: real classes, no weights.

Counted are matrix products and convolutions, a multiply and an add as two operations (``FlopCounterMode``); softmax,
norms and the choice of keys are not. StateKV's frames run through ``take_in`` itself, selection included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    InternVLConfig,
    InternVLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

from longtake.methods.statekv_prefill import KVState, Selection, empty_state, take_in
from longtake.state.kv import Carried, statekv
from longtake.vlm.attention import IMPLEMENTATION, register

INTERNVIT = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": [448, 448],
    "patch_size": [14, 14],
}
INTERNVL3_8B = InternVLConfig(
    text_config={
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 151_674,
        "max_position_embeddings": 32_768,
    },
    vision_config=INTERNVIT,
    tie_word_embeddings=False,
)
INTERNVL3_1B = InternVLConfig(
    text_config={
        "model_type": "qwen2",
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "vocab_size": 151_674,
        "max_position_embeddings": 32_768,
    },
    vision_config=INTERNVIT,
    tie_word_embeddings=False,
)
QWEN3_VL_8B = Qwen3VLConfig(
    text_config={
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151_936,
        "max_position_embeddings": 262_144,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]},
    },
    vision_config={
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "out_hidden_size": 4096,
        "num_position_embeddings": 2304,
        "patch_size": 16,
        "deepstack_visual_indexes": [8, 16, 24],
    },
)
"""Shapes as published with the checkpoints (their ``config.json``)."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A model and the layout of its frames."""

    name: str
    config: Any
    frames_per_chunk: int
    frame_pixels: int = 448
    marker_tokens: int
    """Of a chunk, beside the pictures' own: brackets and the time in words."""

    @cached_property
    def model(self) -> Any:
        """Without weights, its decoder on our attention."""
        classes = {"internvl": InternVLForConditionalGeneration, "qwen3_vl": Qwen3VLForConditionalGeneration}
        register()
        with torch.device("meta"):
            model = classes[self.config.model_type](self.config).eval()
        model.set_attn_implementation({"text_config": IMPLEMENTATION})
        return model

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.model.parameters())

    @property
    def chunk_tokens(self) -> int:
        side = self._patches_per_side // 2  # both families join 2 x 2 patches to a token
        return side * side + self.marker_tokens

    @cached_property
    def vision(self) -> int:
        """Operations of the vision tower and what joins it to the decoder, for one chunk."""
        if self.config.model_type == "internvl":
            return self._count(lambda: self.model.get_image_features(self._meta(1, 3, *[self.frame_pixels] * 2)))
        side, tower = self._patches_per_side, self.config.vision_config
        patch = tower.in_channels * tower.temporal_patch_size * tower.patch_size**2
        where = torch.empty(side * side, 4, dtype=torch.int64, device="meta")
        return self._count(
            lambda: self.model.model.visual(
                self._meta(side * side, patch),
                grid_thw=torch.tensor([[1, side, side]]),  # has to be read; all else is known by its shape
                interp_indices=where,
                interp_weights=self._meta(side * side, 4),
                position_ids=where[:, :2],
            )
        )

    def at_once(self, num_tokens: int) -> int:
        """Operations of the decoder for a whole prompt in one call, every query with every key."""
        return self._count(lambda: self._decode(num_tokens, None))

    def after(self, num_carried: int) -> int:
        """Operations of the decoder for one chunk over so many carried keys."""
        shape = self._shape[:2]
        keys, values = (self._meta(*shape, num_carried, self._shape[2]) for _ in range(2))
        places = torch.empty(*shape, num_carried, dtype=torch.int64, device="meta")
        state = KVState(
            carried=Carried(keys=keys, values=values, places=places, starts=places), seen_tokens=num_carried
        )
        return self.chunk(state, num_carried + self.chunk_tokens)[1]

    def chunk(self, state: KVState, budget: int) -> tuple[KVState, int]:
        """The state after one more chunk under StateKV, and the operations of the decoder for it."""
        after: list[KVState] = []
        selection = Selection(budget=budget, rule=statekv)
        count = self._count(
            lambda: after.append(take_in(state, lambda cache: self._decode(self.chunk_tokens, cache), selection)[0])
        )
        return after[0], count

    def start(self) -> KVState:
        return empty_state(*self._shape, dtype=torch.float32, device=torch.device("meta"))

    def stream(self, budget: int, num_chunks: int) -> list[int]:
        """Operations of the decoder for each chunk of a stream under StateKV.

        Only shapes decide what is counted. So once a chunk has left the carried part as long as it found it, all that
        follow are its equals: one more is run, and the rest repeat it.
        """
        state, counts = self.start(), []
        while len(counts) < num_chunks:
            carried = state.carried.keys.shape[2]
            state, count = self.chunk(state, budget)
            counts.append(count)
            if state.carried.keys.shape[2] == carried and len(counts) > 1 and counts[-2] == count:
                counts += [count] * (num_chunks - len(counts))
        return counts

    @property
    def head_dim(self) -> int:
        text = self.config.get_text_config()
        return getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Layers, KV heads and head size of the decoder."""
        text = self.config.get_text_config()
        return text.num_hidden_layers, text.num_key_value_heads, self.head_dim

    @property
    def _patches_per_side(self) -> int:
        patch = self.config.vision_config.patch_size
        return self.frame_pixels // (patch if isinstance(patch, int) else patch[0])

    def _decode(self, num_tokens: int, cache: Any) -> None:
        text = self.config.get_text_config()
        shape = (3, 1, num_tokens) if self.config.model_type == "qwen3_vl" else (1, num_tokens)
        self.model.model.language_model(
            inputs_embeds=self._meta(1, num_tokens, text.hidden_size),
            position_ids=torch.empty(shape, dtype=torch.int64, device="meta"),
            use_cache=cache is not None,
            **({"cache": cache} if cache is not None else {}),
        )

    @staticmethod
    def _meta(*shape: int) -> torch.Tensor:
        return torch.empty(*shape, device="meta")

    @staticmethod
    def _count(run: Callable[[], object]) -> int:
        with FlopCounterMode(display=False) as counter, torch.inference_mode():
            run()
        return counter.get_total_flops()
