"""Training Streaming DVC shows the decoder what it has in use: the same memory, the same earlier captions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from longtake.language.tokenizer import PAD, TimedText
from longtake.methods.baselines.sdc import SDC
from longtake.methods.baselines.sdc_config import SDCConfig
from longtake.methods.sts_config import TimeConfig
from longtake.train.sdc_objective import SDCObjective

TINY = replace(SDCConfig.tiny(), prefix_tokens=64)


def build(config: SDCConfig = TINY, prefix_dropout: float = 0.0) -> SDCObjective:
    torch.manual_seed(0)
    return SDCObjective(SDC(config), prefix_dropout).double()


def words(model: SDC) -> torch.Tensor:
    """One caption in each of three segments, the last of which is short."""
    said = [TimedText(start_bucket=9, end_bucket=14, text=text) for text in ("a car enters", "red car", "a car jumps")]
    rows = [model.tokenizer.encode([one]) for one in said]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


@pytest.mark.parametrize("encoding", ["stream", "video"])
def test_borders_are_those_of_a_stream(encoding: str) -> None:
    objective = build(replace(TINY, time=TimeConfig(encoding=encoding, num_buckets=17)))
    model, tokens = objective.model, torch.randn(2, 10, 3, 16, dtype=torch.float64)
    memory, visible = objective.shown(tokens)
    for row in range(2):
        state = model.init_state().memory
        for number, start in enumerate(range(0, 10, 4)):
            part = tokens[row, None, start : start + 4]
            shares = [frame / 10 for frame in range(start, start + part.shape[1])] if encoding == "video" else None
            state = model.remember(state, part, shares)
            shown = memory[row * 3 + number][visible[row * 3 + number]]
            torch.testing.assert_close(shown, model.show(state)[0], rtol=1e-10, atol=1e-10)


def test_decoder_learns_what_follows_the_captions_before() -> None:
    objective = build()
    model = objective.model
    video = words(model)
    inputs, targets = objective.taught(video[None], num_frames=10)
    past: tuple[TimedText, ...] = ()
    said: list[TimedText] = []
    for row, frames in enumerate((4, 4, 2)):
        past, target = model.prefix(past, said, frames), video[row][video[row] != PAD].tolist()
        said = model.tokenizer.decode(target)
        whole = [PAD, *model.prefix_ids(past), *target[:-1]]
        assert inputs[row, : len(whole)].tolist() == whole
        assert targets[row][targets[row] != PAD].tolist() == target
        assert (targets[row] != PAD).nonzero()[0].item() == len(whole) - len(target)
    assert len(past) == 2


def test_all_earlier_captions_can_be_left_out_in_training_alone() -> None:
    objective = build(prefix_dropout=1.0)
    video = words(objective.model)
    with_none = objective.train().taught(video[None], num_frames=10)[1]
    with_all = objective.eval().taught(video[None], num_frames=10)[1]
    assert with_none.tolist() == video.tolist()
    assert with_all.shape[1] > video.shape[1]


def test_what_is_told_is_what_a_stream_says(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = build().eval()
    model, given = objective.model, []
    answers = [[TimedText(start_bucket=9, end_bucket=14, text="a car")], [], []]

    def say(memory: object, past: tuple[TimedText, ...]) -> list[TimedText]:
        given.append(past)
        return answers[len(given) - 1]

    monkeypatch.setattr(model, "say", say)
    assert objective.tell(torch.randn(1, 10, 3, 16, dtype=torch.float64)) == answers
    first = model.prefix((), answers[0], 4)
    assert given == [(), first, model.prefix(first, [], 2)]
