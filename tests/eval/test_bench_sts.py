"""Operations of STS and SDC are counted as they are: by hand for small models; the page is what the command prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from longtake.cli.app import run
from longtake.eval.bench_sts import bench_sts, compared, sdc_parts, sts_parts, tower
from longtake.eval.sts_page import page
from longtake.methods.baselines.sdc_config import ClusterConfig, SDCConfig
from longtake.methods.sts_config import StackConfig, STSConfig
from longtake.vision import BottleneckConfig, EncoderConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flops_sts.md"
DIM, INNER, FRAMES, SIDE, KEPT = 16, 32, 4, 2, 3
VIT = {
    "model_type": "vit",
    "hidden_size": DIM,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": INNER,
    "image_size": 16,
    "patch_size": 8,
}
TINY = replace(STSConfig.tiny(), encoder=EncoderConfig(kind="transformers", dim=DIM, model_config=VIT))
PATCHES = SIDE * SIDE
DECODER_LAYERS, VOCABULARY = 1, TINY.vocab_size


def attention(queries: int, keys: int) -> int:
    return 2 * 2 * queries * keys * DIM


def block(tokens: int) -> int:
    return 2 * tokens * (4 * DIM * DIM + 2 * DIM * INNER) + attention(tokens, tokens)


def told(shown: int, prefix: int, new: int) -> int:
    """One layer of the decoder: itself, what it is shown, its MLP; then the words."""
    said = prefix + new
    own = 2 * said * 4 * DIM * DIM + attention(said, said)
    across = 2 * said * 2 * DIM * DIM + 2 * shown * 2 * DIM * DIM + attention(said, shown)
    return own + across + 2 * said * 2 * DIM * INNER + 2 * new * DIM * VOCABULARY


def test_parts_of_sts_are_those_by_hand() -> None:
    parts = sts_parts(TINY, new_tokens=7)
    assert parts["vision"] == FRAMES * (2 * PATCHES * 3 * 64 * DIM + 2 * block(PATCHES + 1))
    everything = PATCHES + 1 + KEPT
    last = 2 * KEPT * (2 * DIM * DIM + 2 * DIM * INNER) + 2 * everything * 2 * DIM * DIM + attention(KEPT, everything)
    assert parts["bottleneck"] == FRAMES * last
    assert parts["decoder"] == told(FRAMES * KEPT, 0, 7)


def test_ssm_costs_twice_for_twice_the_layers_and_its_linear_layers_at_least() -> None:
    one, two = (
        sts_parts(replace(TINY, stack=StackConfig(num_layers=layers, state=4, mlp_ratio=2)), new_tokens=7)["ssm"]
        for layers in (1, 2)
    )
    assert two == 2 * one
    assert one >= 2 * FRAMES * KEPT * 2 * DIM * 2 * DIM


def test_parts_of_sdc_are_those_by_hand() -> None:
    config = replace(
        SDCConfig.tiny(),
        encoder=TINY.encoder,
        bottleneck=BottleneckConfig(num_layers=0, dim=DIM),
        memory=ClusterConfig(size=6, iterations=3),
        prefix_tokens=5,
    )
    parts = sdc_parts(config, new_tokens=7)
    assert parts["vision"] == sts_parts(TINY, new_tokens=7)["vision"]
    assert parts["bottleneck"] == 0
    # every token of memory and frame with every centre, its place beside it
    assert parts["clustering"] == FRAMES * 3 * 2 * (6 + PATCHES + 1) * 6 * (DIM + 1)
    assert parts["decoder"] == told(6, 5, 7)


def test_ratios_leave_out_the_same_parts_on_both_sides() -> None:
    sts = {"vision": 10, "bottleneck": 5, "ssm": 2, "decoder": 3}
    sdc = {"vision": 10, "bottleneck": 0, "clustering": 4, "decoder": 6}
    assert compared(sts, sdc) == {
        "everything": 1.0,
        "without_vision": 1.0,
        "without_vision_and_bottleneck": 2.0,
        "memory_alone": 2.0,
    }


def test_tower_of_the_published_sizes() -> None:
    """ViT-L at 224 pixels and 16-pixel patches: 61.6 G multiply-adds in the ViT papers' tables."""
    assert tower(224, 16) / 2e9 == pytest.approx(61.6, rel=0.01)


def test_command_prints_what_was_counted_and_the_page_has_not_drifted(capsys: pytest.CaptureFixture[str]) -> None:
    result = bench_sts()
    assert run(["bench", "sts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(result))
    assert run(["bench", "sts"]) == 0
    assert capsys.readouterr().out == page(result) == PAGE.read_text(encoding="utf-8")
