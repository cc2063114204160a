"""Rotary positions that stay as they are: scaling that depends on the length is fixed before the first chunk.

A carried key keeps the rotation it was made with, so frequencies must not change while a stream goes on.
"""

from __future__ import annotations

from typing import Any


def fix_rope(text_config: Any, horizon_tokens: int) -> None:
    """Fix dynamic NTK scaling in a text config, in place, for streams of up to ``horizon_tokens``.

    The base grows as in transformers' ``dynamic`` rule, once and for all; static rules (none, linear, YaRN, llama3) are
    left as they are.
    """
    rope = dict(text_config.rope_parameters)
    trained = rope.get("original_max_position_embeddings") or text_config.max_position_embeddings
    if rope.get("rope_type") != "dynamic":
        return
    theta, factor = rope["rope_theta"], rope.get("factor", 1.0)
    head_dim = getattr(text_config, "head_dim", None) or text_config.hidden_size // text_config.num_attention_heads
    width = int(head_dim * rope.get("partial_rotary_factor", 1.0))
    if horizon_tokens > trained:
        theta = theta * (factor * horizon_tokens / trained - (factor - 1)) ** (width / (width - 2))
    rest = {name: value for name, value in rope.items() if name not in ("factor", "original_max_position_embeddings")}
    text_config.rope_parameters = rest | {"rope_type": "default", "rope_theta": theta}
