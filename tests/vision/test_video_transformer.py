"""The video transformer: tubelets and their places, attention with a memory, what its parts are equal to."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from longtake.errors import ConfigError
from longtake.vision import TubeletConfig, VideoTransformer, VideoTransformerConfig, places_in
from longtake.vision.block import Block
from longtake.vision.tubelet import TubeletEmbedding

TUBELET = TubeletConfig(size=8, time=2, patch=4, position_frames=6)
SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "mlp_dim": 16}


def film(num_frames: int, batch: int = 1) -> Tensor:
    return torch.randint(0, 256, (batch, num_frames, 3, 8, 8), dtype=torch.uint8)


def transformer(*, class_token: bool = False) -> VideoTransformer:
    tubelet = TubeletConfig(size=8, time=2, patch=4, position_frames=6, class_token=class_token)
    return VideoTransformer(VideoTransformerConfig(tubelet=tubelet, **SIZES)).double().eval()  # type: ignore[arg-type]


def test_tubelets_match_a_strided_convolution() -> None:
    embed = TubeletEmbedding(TUBELET, 5).double()
    frames = film(6, batch=2)
    weight = embed.project.weight.view(5, 3, 2, 4, 4)
    pixels = frames.double().transpose(1, 2) / 127.5 - 1
    whole = functional.conv3d(pixels, weight, embed.project.bias, stride=(2, 4, 4)).flatten(2).transpose(1, 2)
    expected = whole + embed.position.flatten(0, 1)
    torch.testing.assert_close(embed(frames, torch.arange(3.0)), expected, rtol=1e-12, atol=1e-12)


def test_last_frame_stands_still_in_a_tubelet_that_is_not_full() -> None:
    embed, frames = TubeletEmbedding(TUBELET, 5).double(), film(3)
    filled = torch.cat([frames, frames[:, -1:]], dim=1)
    places = torch.arange(2.0)
    assert torch.equal(embed(frames, places), embed(filled, places))


@pytest.mark.parametrize("total_frames", [2, 4, 6, 10, 24])
def test_positions_match_linear_interpolation_along_time(total_frames: int) -> None:
    embed = TubeletEmbedding(TUBELET, 5).double()
    places = places_in(TUBELET, first_frame=0, num_frames=total_frames, total_frames=total_frames)
    table = embed.position.permute(1, 2, 0)
    expected = functional.interpolate(table, size=total_frames // 2, mode="linear").permute(2, 0, 1)
    torch.testing.assert_close(embed.positions_at(places), expected, rtol=1e-12, atol=1e-12)


def test_places_of_segments_are_those_of_the_whole() -> None:
    for total in (0, 20, 11):
        whole = places_in(TUBELET, first_frame=0, num_frames=20, total_frames=total)
        parts = [places_in(TUBELET, first_frame=at, num_frames=4, total_frames=total) for at in range(0, 20, 4)]
        torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-12)


def test_places_of_a_stream_begin_anew_at_the_end_of_the_table() -> None:
    places = places_in(TUBELET, first_frame=4, num_frames=8, total_frames=0)
    assert places.tolist() == [2.0, 0.0, 1.0, 2.0]


@torch.no_grad()
def test_block_matches_equation_4_written_out() -> None:
    block = Block(dim=8, num_heads=2, mlp_dim=16).double()
    queries, memory = torch.randn(1, 5, 8, dtype=torch.float64), torch.randn(1, 7, 8, dtype=torch.float64)
    read = torch.cat([block.norm(queries), block.norm(memory)], dim=1)
    asked, (key, value) = block.query(block.norm(queries)), block.key_value(read).chunk(2, dim=-1)
    heads = [
        (asked[..., part] @ key[..., part].transpose(1, 2) / 2).softmax(-1) @ value[..., part]
        for part in (slice(0, 4), slice(4, 8))
    ]
    attended = block.out(torch.cat(heads, dim=-1)) + queries
    expected = block.mlp[3](functional.gelu(block.mlp[1](block.mlp[0](attended)))) + attended
    found = block(queries, torch.cat([queries, memory], dim=1))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_memory_of_the_other_half_matches_the_whole_in_the_first_layer() -> None:
    """What is kept are the inputs of each layer: attending to them is attending to the tokens themselves."""
    model, frames = transformer(), film(4)
    kept: list[Tensor] = []
    _, _ = model(frames, torch.arange(2.0), keep=lambda inputs, layer: kept.append(inputs) or inputs)
    block, half = model.blocks[0], kept[0].shape[1] // 2
    whole = block(kept[0], kept[0])
    parts = block(kept[0][:, half:], torch.cat([kept[0][:, half:], kept[0][:, :half]], dim=1))
    torch.testing.assert_close(parts, whole[:, half:], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(kept[1], whole, rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_class_token_comes_first_and_is_not_kept() -> None:
    model = transformer(class_token=True)
    frames = film(4)
    outputs, kept = model(frames, torch.arange(2.0), keep=lambda inputs, layer: inputs)
    assert outputs.shape == (1, 9, 8)
    assert [one.shape[1] for one in kept] == [8, 8]
    assert torch.equal(kept[0], model.embed(frames, torch.arange(2.0)))


@torch.no_grad()
def test_masked_tokens_do_not_matter() -> None:
    model, frames = transformer(), film(4)
    other = frames.clone()
    other[:, :2, :, :4, :4] = 0  # the first tubelet
    seen = torch.arange(1, 8)
    one, two = (model(video, torch.arange(2.0), seen=seen)[0] for video in (frames, other))
    assert one.shape[1] == 7
    assert torch.equal(one, two)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="do not divide into patches"):
        TubeletConfig(size=10, patch=4)
    with pytest.raises(ConfigError, match="expected a multiple of the 2 frames"):
        TubeletConfig(position_frames=5)
    with pytest.raises(ConfigError, match="does not divide"):
        Block(dim=9, num_heads=2, mlp_dim=4)
    with pytest.raises(ConfigError, match="expected one of gelu"):
        Block(dim=8, num_heads=2, mlp_dim=4, activation="swish")
