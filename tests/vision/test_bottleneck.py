"""The bottleneck: the short cut in the last block changes nothing, attention is what it says."""

from __future__ import annotations

import pytest
import torch

from longtake.errors import ConfigError
from longtake.vision import Bottleneck, BottleneckConfig
from longtake.vision.block import attend


@pytest.fixture
def bottleneck() -> Bottleneck:
    return Bottleneck(BottleneckConfig(num_tokens=3, dim=8, num_layers=2, num_heads=2), input_dim=6).double().eval()


def test_bottleneck_matches_a_full_last_block(bottleneck: Bottleneck) -> None:
    tokens = torch.randn(4, 5, 6, dtype=torch.float64)
    hidden = torch.cat([bottleneck.project(tokens), bottleneck.kept.expand(4, -1, -1)], dim=1)
    for block in bottleneck.blocks:
        hidden = block(hidden, hidden)
    torch.testing.assert_close(bottleneck(tokens), bottleneck.norm(hidden[:, -3:]), rtol=1e-12, atol=1e-12)


def test_without_layers_all_tokens_go_on_at_the_width_asked_for() -> None:
    open_wide = Bottleneck(BottleneckConfig(num_layers=0, dim=8), input_dim=6).double()
    tokens = torch.randn(4, 5, 6, dtype=torch.float64)
    assert torch.equal(open_wide(tokens), open_wide.norm(open_wide.project(tokens)))


def test_attention_weights_sum_to_one_over_all_tokens(bottleneck: Bottleneck) -> None:
    weights = bottleneck.attention(torch.randn(4, 5, 6, dtype=torch.float64))
    assert weights.shape == (4, 2, 3, 8)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 2, 3, dtype=torch.float64))


def test_attend_matches_between_training_and_inference() -> None:
    query, key, value = (torch.randn(2, 2, length, 4, dtype=torch.float64) for length in (3, 5, 5))
    training = attend(query, key, value)
    with torch.no_grad():
        torch.testing.assert_close(attend(query, key, value), training, rtol=1e-10, atol=1e-10)


def test_bottleneck_is_refused_when_heads_do_not_divide() -> None:
    with pytest.raises(ConfigError, match="does not divide"):
        BottleneckConfig(dim=10, num_heads=4)
