"""Global baselines: what they read and show."""

from __future__ import annotations

import pytest
import torch

from longtake.errors import ConfigError
from longtake.methods.baselines import WholeVideo, WholeVideoConfig
from longtake.methods.sts_config import StackConfig


def build(mixer: str, shown: str) -> WholeVideo:
    torch.manual_seed(0)
    config = WholeVideoConfig(mixer=mixer, shown=shown, max_frames=12)
    return WholeVideo(config, StackConfig(num_layers=2, state=4), num_tokens=3, dim=16, segment=4).double().eval()


@pytest.mark.parametrize("mixer", ["ssm", "transformer"])
@pytest.mark.parametrize(("shown", "count"), [("all", 30), ("last-per-segment", 3), ("final-token", 1)])
def test_whole_video_shows_the_tokens_of_table_5(mixer: str, shown: str, count: int) -> None:
    model = build(mixer, shown)
    outputs = model(torch.randn(2, 10, 3, 16, dtype=torch.float64))
    memory = model.show(outputs)
    assert memory.shape == (2, count, 16)
    placed = outputs + model.frame_position[:10, None] + model.token_position
    torch.testing.assert_close(memory[:, -1], placed[:, -1, -1])


def test_transformer_looks_ahead_and_ssm_does_not() -> None:
    tokens = torch.randn(1, 10, 3, 16, dtype=torch.float64)
    changed = tokens.clone()
    changed[:, 9] = torch.randn(1, 3, 16, dtype=torch.float64)  # a shift alone would be normalised away
    for mixer, ahead in (("ssm", False), ("transformer", True)):
        model = build(mixer, "all")
        assert (not torch.allclose(model(tokens)[:, 0], model(changed)[:, 0])) == ahead


def test_video_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 12"):
        build("ssm", "all")(torch.zeros(1, 13, 3, 16, dtype=torch.float64))
