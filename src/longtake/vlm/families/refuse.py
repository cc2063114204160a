"""Models whose attention we would not compute as they were trained with it: refused, with the reason.

Our attention is plain and causal: every token sees all that came before, and itself. What a text config says about
itself decides; names are only used where a model keeps its rule in its code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from longtake.errors import ConfigError

LOOK_BOTH_WAYS = ("gemma3", "paligemma")
"""Their masks let the tokens of one picture see each other, which no field of the config says for all versions."""


def refuse_other_attention(config: Any) -> None:
    """Check a model's config.

    Raises:
        ConfigError: Its decoder does not attend plainly.
    """
    for reason in _reasons(config, config.get_text_config()):
        raise ConfigError(
            f"model type {config.model_type!r} {reason}; StateKV serves decoders in which every token sees all before "
            "it: choose a model of docs/vlm_support.md"
        )


def _reasons(config: Any, text: Any) -> Iterator[str]:
    kinds = [kind for kind in getattr(text, "layer_types", None) or () if kind != "full_attention"]
    windows = [kind for kind in kinds if "sliding" in kind or "chunked" in kind]
    others = [kind for kind in kinds if kind not in windows]
    if others:
        yield f"has {len(others)} of {text.num_hidden_layers} layers of kind {others[0]!r}, without keys to select from"
    if windows or _has_window(text):
        yield "attends within a sliding window, which would be widened without a word"
    if (
        config.model_type in LOOK_BOTH_WAYS
        or getattr(text, "use_bidirectional_attention", None)
        or not getattr(text, "is_causal", True)
    ):
        yield "lets tokens of a picture see later ones (a bidirectional mask)"
    if getattr(text, "attn_logit_softcapping", None):
        yield "caps its attention scores (attn_logit_softcapping)"


def _has_window(text: Any) -> bool:
    """For configs that do not list their layers."""
    if getattr(text, "layer_types", None):
        return False
    return bool(getattr(text, "sliding_window", None)) and getattr(text, "use_sliding_window", True) is not False
