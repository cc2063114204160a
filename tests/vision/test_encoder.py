"""Frame encoders: what they see, what they refuse."""

from __future__ import annotations

import pytest
import torch

from longtake.errors import ConfigError
from longtake.vision import EncoderConfig, build_encoder

SMALL = EncoderConfig(dim=16, stem_dim=8, depth=1, history=2)
VIT = {
    "model_type": "vit",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 32,
    "patch_size": 16,
}


def video(batch: int, time: int, size: int = 16) -> torch.Tensor:
    return torch.randint(0, 256, (batch, time, 3, size, size), dtype=torch.uint8)


def test_conv_encoder_matches_itself_when_the_video_is_split() -> None:
    encoder = build_encoder(SMALL, 16, 16).double().eval()
    frames, before = video(2, 7), video(2, 2)
    whole = encoder(frames, before)
    first = encoder(frames[:, :3], before)
    rest = encoder(frames[:, 3:], frames[:, 1:3])
    torch.testing.assert_close(torch.cat([first, rest], dim=1), whole, rtol=1e-10, atol=1e-10)


def test_conv_encoder_sees_what_changed() -> None:
    encoder = build_encoder(SMALL, 16, 16)
    frames, before = video(1, 1), video(1, 2)
    still = encoder.with_differences(frames, frames.expand(-1, 2, -1, -1, -1))
    assert torch.count_nonzero(still[:, :, 48:]) == 0
    moved = encoder.with_differences(frames, before)
    torch.testing.assert_close(moved[:, :, :48], still[:, :, :48])
    assert torch.count_nonzero(moved[:, :, 48:]) > 0


def test_conv_encoder_gives_the_tokens_it_promises() -> None:
    encoder = build_encoder(SMALL, 16, 24)
    frames = torch.zeros(1, 2, 3, 16, 24, dtype=torch.uint8)
    assert encoder(frames, frames).shape == (1, 2, encoder.num_tokens, encoder.dim) == (1, 2, 6, 16)


def test_transformers_encoder_matches_the_model_itself() -> None:
    encoder = build_encoder(EncoderConfig(kind="transformers", dim=16, model_config=VIT), 32, 32).eval()
    frames = video(2, 3, 32)
    tokens = encoder(frames, frames[:, :0])
    alone = encoder.model(pixel_values=frames[1, 2:].float() / 127.5 - 1).last_hidden_state
    assert tokens.shape == (2, 3, encoder.num_tokens, 16)
    torch.testing.assert_close(tokens[1, 2], alone[0], rtol=1e-5, atol=1e-5)


def test_transformers_encoder_is_refused_when_sizes_differ() -> None:
    with pytest.raises(ConfigError, match="takes 32 px, the segment spec says 64x64"):
        build_encoder(EncoderConfig(kind="transformers", dim=16, model_config=VIT), 64, 64)


def test_conv_encoder_is_refused_when_size_does_not_divide() -> None:
    with pytest.raises(ConfigError, match="do not divide by 8"):
        build_encoder(SMALL, 20, 20)


def test_encoder_config_needs_a_model_when_kind_is_transformers() -> None:
    with pytest.raises(ConfigError, match="model_config"):
        EncoderConfig(kind="transformers")
