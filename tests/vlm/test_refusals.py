"""Models that must not be served, and why they are told so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.vlm.families import make
from transformers import AutoConfig, LlavaConfig, PreTrainedConfig, Qwen2Config

from longtake.errors import ConfigError
from longtake.vlm.families import FAMILIES, family_named, family_of
from longtake.vlm.families.refuse import refuse_other_attention

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def config(model_type: str, /, **text: Any) -> PreTrainedConfig:
    """A whole model's config around a text config."""
    return AutoConfig.for_model(model_type, text_config=SMALL | text)


def model(made: PreTrainedConfig) -> Any:
    """Refusals must come before anything else of a model is read."""
    return SimpleNamespace(config=made)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (config("gemma3"), "within a sliding window"),
        (config("gemma3", layer_types=["full_attention"] * 4), "lets tokens of a picture see later ones"),
        (config("paligemma"), "lets tokens of a picture see later ones"),
        (config("paligemma", model_type="gemma2", use_bidirectional_attention=False), "within a sliding window"),
        (config("mistral3", model_type="mistral", sliding_window=64), "within a sliding window"),
        (
            config("internvl", model_type="qwen2", use_sliding_window=True, max_window_layers=2),
            "within a sliding window",
        ),
        (config("qwen3_5"), "3 of 4 layers of kind 'linear_attention'"),
        (config("internvl", model_type="qwen3_next"), "3 of 4 layers of kind 'linear_attention'"),
    ],
    ids=lambda value: value.model_type if isinstance(value, PreTrainedConfig) else "",
)
def test_other_attention_is_refused_with_its_reason(made: PreTrainedConfig, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        family_of(model(made), None)
    assert "\n" not in str(caught.value)
    assert "docs/vlm_support.md" in str(caught.value)


def test_capped_scores_are_refused() -> None:
    text = Qwen2Config(**SMALL)
    text.attn_logit_softcapping = 50.0
    with pytest.raises(ConfigError, match="caps its attention scores"):
        refuse_other_attention(text)


def test_window_that_is_not_in_use_is_served() -> None:
    refuse_other_attention(config("internvl", model_type="qwen2", sliding_window=64, use_sliding_window=False))
    refuse_other_attention(config("mistral3", model_type="mistral", sliding_window=None))


def test_unknown_model_is_refused_and_the_known_are_named() -> None:
    with pytest.raises(ConfigError, match="model type 'llava' is not served; expected one of eagle_2_5_vl, internvl"):
        family_of(model(LlavaConfig()), None)


def test_length_is_asked_for_where_the_prompt_states_it() -> None:
    for missing in ({}, {"horizon_frames": 7}, {"horizon_seconds": 6.6}):
        with pytest.raises(ConfigError, match="give horizon_frames and horizon_seconds"):
            family_of(*make("smolvlm"), **missing)
    assert [kind.name for kind in FAMILIES if kind.needs_length] == ["SmolVLM"]


def test_each_model_type_has_one_family() -> None:
    types = [name for kind in FAMILIES for name in kind.model_types]
    assert len(types) == len(set(types))
    assert all(name in family_named(name).model_types for name in types)


def test_eagle_without_its_parts_is_refused() -> None:
    made, processor = make("eagle2.5")
    del made.language_model
    with pytest.raises(ConfigError, match="has no language_model"):
        family_of(made, processor)


def test_template_without_a_video_is_refused() -> None:
    made, processor = make("qwen3-vl")
    processor.chat_template = "{% for message in messages %}{{ message['role'] }}{% endfor %}"
    with pytest.raises(ConfigError, match="has no '<|video_pad|>' for a video".replace("|", r"\|")):
        family_of(made, processor)


def test_tokenizer_that_joins_over_special_tokens_is_refused() -> None:
    from tokenizers import AddedToken

    made, processor = make("internvl3")
    # eats the line end behind it, which in pieces stands in the next chunk
    processor.tokenizer.add_tokens([AddedToken("</img>", rstrip=True, special=True)], special_tokens=True)
    with pytest.raises(ConfigError, match="joins text over special tokens"):
        family_of(made, processor)


def test_decoder_alone_gets_our_attention() -> None:
    made, processor = make("qwen3-vl")
    family_of(made, processor)
    assert made.config.text_config._attn_implementation == "longtake"
    assert made.config.vision_config._attn_implementation == "sdpa"
