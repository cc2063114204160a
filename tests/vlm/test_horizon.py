"""Turned keys against keys made elsewhere, by transformers' own rotary embeddings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.vlm.families import NAMES, make
from transformers import Qwen2Config, Qwen3VLTextConfig
from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding, apply_rotary_pos_emb
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding

from longtake.errors import ConfigError
from longtake.vlm.horizon import fix_rope, positions_served, turned, turner

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}


def embedding(kind: str) -> Any:
    """Transformers' module, in float64 throughout."""
    if kind == "mrope":
        rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}
        made = Qwen3VLTextRotaryEmbedding(Qwen3VLTextConfig(**SIZES, head_dim=16, rope_parameters=rope))
    else:
        rope = YARN if kind == "yarn" else {"rope_type": "default", "rope_theta": 1e4}
        made = Qwen2RotaryEmbedding(Qwen2Config(**SIZES, rope_parameters=rope))
    return made


def at(kind: str, states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """States ``(heads, tokens, 16)`` rotated as the model does, but with angles in float64."""
    made = embedding(kind)
    if kind == "mrope":
        freqs = positions[..., None].double() * made.inv_freq.double()
        cos, sin = made.recomposition_frequencies(freqs.cos()), made.recomposition_frequencies(freqs.sin())
    else:
        freqs = positions[:, None].double() * made.inv_freq.double()
        cos, sin = (torch.cat([part, part], -1) * made.attention_scaling for part in (freqs.cos(), freqs.sin()))
    return apply_rotary_pos_emb(states[None], states[None], cos[None], sin[None])[0][0]


@pytest.mark.parametrize("kind", ["plain", "yarn", "mrope"])
@given(by=st.integers(-5000, 5000), seed=st.integers(0, 20))
def test_common_shift_leaves_every_score_and_equals_keys_made_there(kind: str, by: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    keys, queries = torch.randn(2, 3, 7, 16, generator=generator, dtype=torch.float64)
    shape = (3, 7) if kind == "mrope" else (7,)
    positions = torch.randint(0, 3000, shape, generator=generator)
    frequencies = embedding(kind).inv_freq
    here, there = at(kind, keys, positions), at(kind, keys, positions + by)
    moved = turned(here, by, frequencies=frequencies)
    torch.testing.assert_close(moved, there, atol=1e-9, rtol=0)
    before = at(kind, queries, positions) @ here.mT
    after = at(kind, queries, positions + by) @ moved.mT
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0)
    each = torch.randint(-50, 50, (7,), generator=generator)
    torch.testing.assert_close(
        turned(here, each.expand(3, 7), frequencies=frequencies), at(kind, keys, positions + each), atol=1e-9, rtol=0
    )


def test_entries_without_a_frequency_stay() -> None:
    keys = torch.randn(2, 3, 10)
    moved = turned(keys, 5, frequencies=torch.tensor([1.0, 0.1]))
    assert torch.equal(moved[..., 4:], keys[..., 4:])
    assert not torch.equal(moved[..., :4], keys[..., :4])


@pytest.mark.parametrize("name", NAMES)
def test_every_family_has_frequencies_to_turn_by(name: str) -> None:
    model, _ = make(name)
    keys = torch.randn(2, 3, 16)
    turn = turner(model)
    torch.testing.assert_close(turn(turn(keys, 9), -9), keys, atol=1e-5, rtol=0)
    assert positions_served(model.config.get_text_config()) == 4096


def test_frequencies_that_change_are_refused() -> None:
    model, _ = make("internvl3")
    part = next(part for part in model.modules() if type(part).__name__ == "Qwen2RotaryEmbedding")
    part.rope_type = "dynamic"
    with pytest.raises(ConfigError, match="cannot be turned"):
        turner(model)


def test_positions_served_follow_the_scaling() -> None:
    assert positions_served(Qwen2Config(**SIZES, max_position_embeddings=64)) == 64
    assert positions_served(Qwen2Config(**SIZES, max_position_embeddings=64, rope_parameters=dict(YARN))) == 256
    dynamic = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    config = Qwen2Config(**SIZES, max_position_embeddings=64, rope_parameters=dynamic)
    fix_rope(config, 1000)
    assert positions_served(config) == 1000
    config = Qwen2Config(**SIZES, max_position_embeddings=64, rope_parameters=dict(dynamic))
    fix_rope(config, 10)
    assert positions_served(config) == 64
