"""Validation's clock: what is said right is scored right, on the time grid and on frames spread over the video."""

from __future__ import annotations

import pytest
import torch

from longtake.data.toybox import make_script, vocabulary
from longtake.methods.baselines import WholeVideoConfig
from longtake.train.material import Taken, ToyboxStage
from longtake.train.sts_recipe import STSRecipe, STSStage
from longtake.train.sts_run import build_objective
from longtake.train.validate import caption_video

STAGE = STSStage(name="tell", data="videos", steps=1, batch_size=1, encoder_scale=0.0)
MODEL = {
    "size": 16,
    "encoder": {"dim": 16, "stem_dim": 8, "depth": 1},
    "bottleneck": {"num_tokens": 3, "dim": 16, "num_heads": 2},
    "stack": {"num_layers": 1, "state": 4},
    "decoder": {"dim": 16, "num_layers": 1, "num_heads": 2, "mlp_dim": 32},
    "vocabulary": list(vocabulary()),
}


@pytest.mark.parametrize(
    ("num_frames", "whole", "slack_seconds"),
    [(0, None, 1e-6), (128, None, 0.5), (128, WholeVideoConfig(mixer="ssm"), 0.5)],
    ids=["time grid", "spread", "spread, whole video"],
)
def test_what_is_said_right_has_its_true_times(
    num_frames: int, whole: WholeVideoConfig | None, slack_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = {"encoding": "video", "num_buckets": 129} if whole else {}
    recipe = STSRecipe(
        name="x", model=MODEL | {"time": time}, stages=(STAGE,), frames_per_video=num_frames, whole_video=whole
    )
    objective = build_objective(recipe).eval()
    model = objective.model
    taken = Taken(num_frames=num_frames, whole=whole is not None)
    script = make_script(4, seconds=60)
    batch = ToyboxStage(STAGE, model.config, model.tokenizer, 0, "valid", taken, see=lambda frames: see(frames)).video(
        script
    )
    right = [model.tokenizer.decode(row.tolist()) for row in batch.tokens[0]]
    monkeypatch.setattr(model.decoder, "generate", lambda *_, **__: right)
    events = caption_video(objective, batch, spread=bool(num_frames))
    told = [event for event in script.events if event.end_seconds <= 60 - 60 / (num_frames or 240)]
    assert len(events) >= len(told)
    for event in told:
        said = min(events, key=lambda one: abs(one.end_seconds - event.end_seconds) + (one.text != event.sentence))
        assert said.text == event.sentence
        assert abs(said.end_seconds - event.end_seconds) <= slack_seconds
        assert abs(said.start_seconds - event.start_seconds) <= slack_seconds


def see(frames: torch.Tensor) -> torch.Tensor:
    """Any tokens: what is said does not depend on them here."""
    count = frames.shape[0] if frames.shape[0] > 1 else frames.shape[1]
    return torch.zeros(1, count, 3, 16)
