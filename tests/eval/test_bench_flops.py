"""Operations are counted as they are: by hand for a small decoder, and the page in docs/ is what the command prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import InternVLConfig, Qwen3VLConfig

from longtake.cli.app import run
from longtake.errors import LongtakeError
from longtake.eval import bench_flops
from longtake.eval.bench_flops import line, table, totals_at_once
from longtake.eval.flops import Counted
from longtake.eval.flops_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flops.md"
LAYERS, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, INNER = 2, 4, 2, 16, 64, 96
TEXT = {
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "vocab_size": 64,
}
QWEN = Counted(
    name="small",
    config=Qwen3VLConfig(
        text_config=TEXT
        | {"head_dim": HEAD_DIM, "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]}},
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "num_heads": 2,
            "intermediate_size": 48,
            "out_hidden_size": HIDDEN,
            "num_position_embeddings": 36,
            "deepstack_visual_indexes": [0],
        },
    ),
    frames_per_chunk=2,
    frame_pixels=64,
    marker_tokens=3,
)
INTERNVL = Counted(
    name="small",
    config=InternVLConfig(
        text_config=TEXT | {"model_type": "qwen2"},
        vision_config={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 48,
            "image_size": [56, 56],
            "patch_size": [14, 14],
        },
        image_seq_length=4,
    ),
    frames_per_chunk=1,
    frame_pixels=56,
    marker_tokens=3,
)
LINEAR = 2 * LAYERS * (HIDDEN * HEAD_DIM * 2 * (HEADS + KV_HEADS) + 3 * HIDDEN * INNER)
"""Of one token, by hand: queries, keys, values, outputs and the MLP."""
PAIR = 2 * 2 * LAYERS * HEADS * HEAD_DIM


@pytest.fixture(params=[QWEN, INTERNVL], ids=["qwen3-vl", "internvl3"])
def model(request: pytest.FixtureRequest) -> Counted:
    return request.param


def test_counts_are_those_by_hand(model: Counted) -> None:
    tokens = model.chunk_tokens
    assert tokens == 4 + 3
    for carried in (0, 5, 70):
        assert model.after(carried) == tokens * LINEAR + PAIR * tokens * (carried + tokens)
    assert model.at_once(60) == 60 * LINEAR + PAIR * 60 * 60


@pytest.mark.parametrize("budget", [20, 28])
def test_chunks_cost_the_same_once_the_budget_is_full(model: Counted, budget: int) -> None:
    state, counts = model.start(), []
    for _ in range(12):
        state, count = model.chunk(state, budget)
        counts.append(count)
    full = -(-budget // model.chunk_tokens)
    assert len(set(counts[full:])) == 1
    assert counts[:full] == sorted(set(counts[:full]))
    assert model.stream(budget, 12) == counts


def test_vision_tower_is_counted_for_one_chunk() -> None:
    def block(tokens: int) -> int:
        return 2 * tokens * (4 * 32 * 32 + 2 * 32 * 48) + 2 * 2 * tokens * tokens * 32

    # patches to tokens, blocks (InternViT's have a token for the whole picture, too), four tokens to the decoder
    patches = 2 * 16 * (3 * 14 * 14) * 32
    assert INTERNVL.vision == patches + 2 * block(17) + 2 * 4 * (4 * 32 * HIDDEN + HIDDEN * HIDDEN)
    patches = 2 * 16 * (3 * 2 * 16 * 16) * 32
    merger = 2 * 4 * (4 * 32 * 4 * 32 + 4 * 32 * HIDDEN)  # one at the end and one for the layer that is handed on
    assert QWEN.vision == patches + 2 * block(16) + 2 * merger


def test_table_adds_up(model: Counted) -> None:
    chunks, tokens = 24 // model.frames_per_chunk, model.chunk_tokens
    made = table(model, 24, (20, 10_000), 20)
    whole = chunks * tokens
    assert made["full"]["all_pairs"] == model.at_once(whole)
    assert made["full"]["causal"] == whole * LINEAR + PAIR * whole * (whole + 1) // 2
    few, everything = made["rows"]
    assert few["all_pairs"] == sum(model.stream(20, chunks))
    assert few["all_pairs"] - few["causal"] == chunks * PAIR * tokens * (tokens - 1) // 2
    # a budget that is never full: the same pairs as full attention
    assert everything["of_full"]["causal"] == made["full_by_chunks"]["of_full"]["causal"] == 1
    assert made["floor"]["causal"] == whole * LINEAR
    assert made["floor"]["of_full"]["causal"] < few["of_full"]["causal"] < 1
    assert few["of_full"]["causal_with_vision"] > few["of_full"]["causal"]
    assert made["stream"]["last_over_first_full"] == 1
    assert totals_at_once(model, 24) == made["full"]


def test_counts_off_the_line_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "after", lambda self, keys: keys * keys)
    with pytest.raises(LongtakeError, match=r"not linear in the carried keys, for instance at \[20\]"):
        line(QWEN, [20])


@pytest.mark.slow
def test_command_prints_what_was_counted_and_the_page_has_not_drifted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bench_flops.bench_flops()
    monkeypatch.setattr(bench_flops, "bench_flops", lambda: result)
    assert run(["bench", "flops", "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert printed["name"] == "flops"
    for name in printed["raw"]["bars"]:
        assert printed["ratios"][name] == 1.0
    assert {f"{model}_{budget}_causal" for model in ("InternVL3-8B", "Qwen3-VL-8B") for budget in (256, 16384)} <= set(
        printed["ratios"]
    )
    assert run(["bench", "flops"]) == 0
    assert capsys.readouterr().out == page(result) == PAGE.read_text(encoding="utf-8")


def test_models_have_the_sizes_of_the_real_ones() -> None:
    sizes = {model.name: model.parameters for model in (*bench_flops.MODELS, bench_flops.SMALL)}
    billions = {name: round(size / 1e9, 2) for name, size in sizes.items()}
    assert billions == {"InternVL3-8B": 7.94, "Qwen3-VL-8B": 8.77, "InternVL3-1B": 0.94}
