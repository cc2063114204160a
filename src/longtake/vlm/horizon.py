"""Rotary positions that stay as they are: scaling that depends on the length is fixed before the first chunk.

A carried key keeps the rotation it was made with, so frequencies must not change while a stream goes on. They reach so
far (``positions_served``); a stream that goes on beyond turns its keys to other positions (``turned``), which is exact,
since only distances count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from longtake.errors import ConfigError

LENGTHS_OF_ITS_OWN = ("dynamic", "longrope")
"""Kinds of scaling whose frequencies change with the length."""


def fix_rope(text_config: Any, horizon_tokens: int) -> None:
    """Fix dynamic NTK scaling in a text config, in place, for streams of up to ``horizon_tokens``.

    The base grows as in transformers' ``dynamic`` rule, once and for all, and ``max_position_embeddings`` with it;
    static rules (none, linear, YaRN, llama3) are left as they are.
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
        text_config.max_position_embeddings = horizon_tokens
    rest = {name: value for name, value in rope.items() if name not in ("factor", "original_max_position_embeddings")}
    text_config.rope_parameters = rest | {"rope_type": "default", "rope_theta": theta}


def positions_served(text_config: Any) -> int:
    """How many positions the model's rotary frequencies are made for."""
    rope = dict(text_config.rope_parameters or {})
    own, factor = text_config.max_position_embeddings, rope.get("factor") or 1.0
    trained = rope.get("original_max_position_embeddings")
    return max(own, round(factor * trained)) if trained and rope.get("rope_type") != "default" else own


def turner(model: Any) -> Callable[[Tensor, Tensor | int], Tensor]:
    """``turned`` with the frequencies of a model's decoder.

    Raises:
        ConfigError: It has none, or some that do not stay.
    """
    decoder = model.config.get_text_config()  # a vision tower may have a rotary embedding of its own
    found = [part for part in model.modules() if hasattr(part, "inv_freq") and getattr(part, "config", 0) is decoder]
    kinds = {getattr(part, "rope_type", "default") for part in found}
    if len(found) != 1 or kinds & set(LENGTHS_OF_ITS_OWN):
        raise ConfigError(
            f"keys of {type(model).__name__} cannot be turned: expected one rotary embedding of constant frequencies, "
            f"got {len(found)} of {', '.join(sorted(kinds)) or 'no kind'}; use at_horizon 'stop'"
        )
    return partial(turned, frequencies=found[0].inv_freq)


def turned(
    keys: Float[Tensor, "*rows head_dim"], by: Int[Tensor, "*#rows"] | int, *, frequencies: Float[Tensor, " half"]
) -> Float[Tensor, "*rows head_dim"]:
    """Keys as if they had been made ``by`` positions later, on every axis of M-RoPE alike.

    What YaRN scales stays scaled; what no frequency turns stays.

    Equation: R(p + d) = R(d) R(p), with R(p) turning entry i and entry i + half by p * frequency i.
    """
    half = frequencies.shape[0]
    angles = torch.as_tensor(by, dtype=torch.float64, device=keys.device)[..., None] * frequencies.double()
    cos, sin = (part.to(torch.promote_types(keys.dtype, torch.float32)) for part in (angles.cos(), angles.sin()))
    first, second, rest = (
        keys[..., :half].to(cos.dtype),
        keys[..., half : 2 * half].to(cos.dtype),
        keys[..., 2 * half :],
    )
    both = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    return torch.cat([both.to(keys.dtype), rest], dim=-1)
