"""STS as a model: segments against the whole, the two encodings, its sizes, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from longtake.errors import ConfigError, StateError, UnsupportedRequest
from longtake.methods.sts import STS, parameter_counts
from longtake.methods.sts_config import StackConfig, STSConfig, TimeConfig, sts_large
from longtake.state.tree import num_bytes
from longtake.types import Ask, Caption, Segment

TINY = STSConfig.tiny()
ORDERS = ("one-by-one", "side-by-side")


def build(config: STSConfig = TINY) -> STS:
    torch.manual_seed(0)
    return STS(config).double().eval()


def cut(frames: torch.Tensor, sizes: list[int], total_seconds: float | None = None) -> list[Segment]:
    """Segments of the given sizes, 4 frames per second."""
    segments, at = [], 0
    for index, size in enumerate(sizes):
        times = tuple(frame / 4 for frame in range(at, at + size))
        segments.append(
            Segment(
                pixels=frames[at : at + size],
                pts_seconds=times,
                index=index,
                start_seconds=at / 4,
                end_seconds=(at + size) / 4,
                total_seconds=total_seconds,
            )
        )
        at += size
    return segments


def film(num_frames: int) -> torch.Tensor:
    return torch.randint(0, 256, (num_frames, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sizes", [[4, 4, 4], [1] * 12, [3, 1, 4, 2, 2], [4, 4, 3, 1]])
def test_segments_match_the_whole_video(order: str, sizes: list[int]) -> None:
    """Table 7: STS equals the SSM over the whole sequence."""
    model = build(replace(TINY, stack=StackConfig(num_layers=2, state=4, order=order)))
    frames = film(12)
    with torch.no_grad():
        state, at = model.init_state(), 0
        before = frames[None, :1].expand(-1, model.encoder.history, -1, -1, -1)
        whole, carried = model.take_in(frames[None], before, state.carried)
        for segment in cut(frames, sizes):
            state = model.advance(state, segment)
            at += segment.pixels.shape[0]
            shown = model.show(whole[:, at - segment.pixels.shape[0] : at])
            torch.testing.assert_close(state.shown, shown, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(state.carried, carried, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_segments_do_not_know_each_other_without_carry() -> None:
    model = build(replace(TINY, stack=StackConfig(num_layers=2, state=4, carry=False)))
    frames = film(8)
    other = frames.clone()
    other[:2] = 0  # before what the encoder's history reaches
    states = []
    with torch.no_grad():
        for pixels in (frames, other):
            state = model.init_state()
            for segment in cut(pixels, [4, 4]):
                state = model.advance(state, segment)
            states.append(state)
    torch.testing.assert_close(states[0].shown, states[1].shown)


@pytest.mark.parametrize("shown", ["all", "last-frame", "last-token"])
def test_decoder_is_shown_what_the_config_says(shown: str) -> None:
    model = build(replace(TINY, shown=shown))
    outputs = torch.randn(1, 4, 3, 16, dtype=torch.float64)
    placed = outputs + model.frame_position[:, None] + model.token_position
    expected = {"all": placed.flatten(1, 2), "last-frame": placed[:, -1], "last-token": placed[:, -1, -1:]}[shown]
    torch.testing.assert_close(model.show(outputs), expected)


def test_state_bytes_are_the_same_after_any_number_of_segments_and_bounded() -> None:
    model = build()
    sizes = []
    with torch.no_grad():
        state = model.init_state()
        for segment in cut(film(40), [4] * 10):
            state = model.advance(state, segment)
            sizes.append(num_bytes(state))
    assert len(set(sizes[5:])) == 1
    assert max(sizes) <= model.max_state_bytes()


def test_video_encoding_needs_a_length() -> None:
    model = build(replace(TINY, time=TimeConfig(encoding="video", num_buckets=32)))
    with pytest.raises(ConfigError, match="parts of the video's length"):
        model.advance(model.init_state(), cut(film(4), [4])[0])
    state = model.advance(model.init_state(), cut(film(4), [4], total_seconds=20.0)[0])
    assert state.total_seconds == 20.0


def test_segment_of_another_size_is_refused() -> None:
    model = build()
    wrong = Segment(
        pixels=torch.zeros(4, 3, 8, 8, dtype=torch.uint8),
        pts_seconds=(0.0, 0.25, 0.5, 0.75),
        index=3,
        start_seconds=0.0,
        end_seconds=1.0,
    )
    with pytest.raises(StateError, match="segment 3 has shape"):
        model.advance(model.init_state(), wrong)


def test_state_of_two_streams_is_refused() -> None:
    model = build()
    with pytest.raises(StateError, match="state of 2 streams"):
        model.advance(model.init_state(batch=2), cut(film(4), [4])[0])


def test_other_requests_are_refused() -> None:
    model = build()
    with pytest.raises(UnsupportedRequest, match="serves Caption only"):
        model.respond(model.init_state(), Ask(question="why?"))


def test_nothing_is_said_before_anything_was_seen() -> None:
    model = build()
    assert list(model.respond(model.init_state(), Caption())) == []


def test_large_preset_has_the_papers_sizes() -> None:
    with torch.device("meta"):
        counts = parameter_counts(STS(sts_large()))
    for part, millions in {"vision": 300, "bottleneck": 128, "ssm": 46, "decoder": 128}.items():
        assert counts[part] == pytest.approx(millions * 1e6, rel=0.03), part


def test_config_round_trips() -> None:
    for config in (TINY, sts_large()):
        assert STSConfig.from_dict(config.to_dict()) == config


def test_fingerprint_tells_weights_apart() -> None:
    first, second = build(), build()
    assert first.fingerprint == second.fingerprint
    third = build()
    with torch.no_grad():
        third.frame_position += 1e-3
    assert third.fingerprint != first.fingerprint


def test_save_pretrained_and_from_pretrained_give_the_model_back(tmp_path: Path) -> None:
    model = STS(STSConfig.tiny())
    model.save_pretrained(tmp_path / "model")
    assert STS.from_pretrained(tmp_path / "model").fingerprint == model.fingerprint
