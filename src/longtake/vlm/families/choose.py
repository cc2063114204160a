"""Which family a loaded model belongs to."""

from __future__ import annotations

from typing import Any

from longtake.errors import ConfigError
from longtake.vlm.attention import IMPLEMENTATION, register
from longtake.vlm.families.eagle import Eagle
from longtake.vlm.families.family import Family
from longtake.vlm.families.internvl import InternVL
from longtake.vlm.families.llava_onevision import LlavaOneVision
from longtake.vlm.families.perception_lm import PerceptionLM
from longtake.vlm.families.qwen import Qwen2VL, Qwen3VL, Qwen25VL
from longtake.vlm.families.refuse import refuse_other_attention
from longtake.vlm.families.smolvlm import SmolVLM
from longtake.vlm.families.videollama3 import VideoLlama3

FAMILIES: tuple[type[Family], ...] = (
    Qwen2VL,
    Qwen25VL,
    Qwen3VL,
    InternVL,
    LlavaOneVision,
    SmolVLM,
    VideoLlama3,
    PerceptionLM,
    Eagle,
)


def family_of(
    model: Any,
    processor: Any,
    *,
    height: int | None = None,
    width: int | None = None,
    horizon_frames: int | None = None,
    horizon_seconds: float | None = None,
) -> Family:
    """The family of a model, ready to make its prompts; its decoder is set to our attention.

    Args:
        model: A frozen model of transformers, as loaded.
        processor: Its own processor.
        height: Pixels of frames; None: the family's usual size.
        width: Likewise.
        horizon_frames: How many frames the video will have, for families with ``needs_length``.
        horizon_seconds: How long it will be.

    Raises:
        ConfigError: The model is of no known family, does not attend plainly, or needs a length that is not given.
    """
    refuse_other_attention(model.config)
    kind = family_named(model.config.model_type)
    if kind.needs_length and (horizon_frames is None or horizon_seconds is None):
        raise ConfigError(
            f"{kind.name} says before the first frame how many will come and for how long, which a live source "
            "does not know; give horizon_frames and horizon_seconds, or use a family without `needs_length`"
        )
    _use_our_attention(model)
    family = kind(
        model,
        processor,
        height=height,
        width=width,
        horizon_frames=horizon_frames,
        horizon_seconds=horizon_seconds,
    )
    family.check_cuts()
    return family


def family_named(model_type: str) -> type[Family]:
    """The family that serves a ``model_type`` of transformers."""
    for kind in FAMILIES:
        if model_type in kind.model_types:
            return kind
    known = ", ".join(sorted(name for kind in FAMILIES for name in kind.model_types))
    raise ConfigError(f"model type {model_type!r} is not served; expected one of {known}")


def _use_our_attention(model: Any) -> None:
    """Only in the decoder: a vision tower attends both ways."""
    register()
    decoder = model.config.get_text_config()
    keys = [name for name in model.config.sub_configs if getattr(model.config, name) is decoder]
    model.set_attn_implementation(dict.fromkeys(keys, IMPLEMENTATION))
    if decoder._attn_implementation != IMPLEMENTATION:
        raise ConfigError(
            f"the attention of {type(model).__name__} cannot be exchanged; "
            "expected a model on transformers' attention interface"
        )
