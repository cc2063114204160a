"""The prefill against the reference implementation's numbers, frame by frame."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen2Config, Qwen2ForCausalLM

from longtake.methods.statekv_prefill import KVState, Selection, empty_state, take_in, whole_past
from longtake.state.kv import rule_named
from longtake.vlm.attention import IMPLEMENTATION, register
from longtake.vlm.cache import answer_cache
from longtake.vlm.horizon import fix_rope

FIXTURES = Path(os.environ.get("LONGTAKE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "fixtures/statekv"
SETTINGS = sorted(FIXTURES.glob("settings/*.safetensors"))
STREAMED = [path for path in SETTINGS if path.stem.startswith(("statekv", "rekv"))]

pytestmark = pytest.mark.skipif(not SETTINGS, reason=f"no StateKV fixtures in {FIXTURES}")
register()


def decoder(path: Path) -> Qwen2ForCausalLM:
    name = "config_ntk.json" if "ntk" in path.stem else "config.json"
    fields = json.loads((FIXTURES / "model" / name).read_text())
    config = Qwen2Config(**fields, attn_implementation=IMPLEMENTATION)
    fix_rope(config, json.loads((FIXTURES / "manifest.json").read_text())["rope_freeze_length"])
    model = Qwen2ForCausalLM(config).eval()
    model.load_state_dict(load_file(FIXTURES / "model" / "model.safetensors"))
    return model


def settings(path: Path) -> Selection:
    manifest = json.loads((FIXTURES / "manifest.json").read_text())
    one, frame = manifest["settings"][path.stem], manifest["tokens_per_frame"]
    if "rekv" in path.stem:
        recent = one.get("recent_frames") or int(path.stem.split("_R")[1].split("_")[0])
        return Selection(budget=recent * frame, rule=rule_named("recency"), listens=False)
    return Selection(budget=one.get("budget") or 10**9, rule=rule_named("statekv"))


def frames() -> torch.Tensor:
    return load_file(FIXTURES / "inputs.safetensors")["frame_embeds"]


@torch.no_grad()
def prefill(model: Any, path: Path, selection: Selection | None = None) -> tuple[list[KVState], list[torch.Tensor]]:
    config, selection = model.config, selection or settings(path)
    state = empty_state(
        config.num_hidden_layers, config.num_key_value_heads, 16, dtype=torch.float32, device=torch.device("cpu")
    )
    states, hidden = [], []
    for number, frame in enumerate(frames()):
        positions = torch.arange(number * 16, number * 16 + 16)[None]
        state, output = take_in(
            state,
            lambda cache, frame=frame, positions=positions: model.model(
                inputs_embeds=frame[None], position_ids=positions, cache=cache, use_cache=True
            ),
            selection,
        )
        states.append(state)
        hidden.append(output.last_hidden_state[0])
    return states, hidden


@pytest.mark.parametrize("path", STREAMED, ids=lambda path: path.stem)
def test_frames_match_the_reference(path: Path) -> None:
    expected = load_file(path)
    model = decoder(path)
    states, hidden = prefill(model, path)
    for number, (state, seen) in enumerate(zip(states, hidden, strict=True)):
        torch.testing.assert_close(seen, expected["last_hidden"][number], atol=2e-5, rtol=0)
        assert state.carried.keys.shape[2] == int(expected["carried_after"][number])
        if "kept" in expected:
            count = state.carried.keys.shape[2]
            assert torch.equal(state.carried.places, expected["kept"][number][..., :count].long()), number


@pytest.mark.parametrize("path", [path for path in STREAMED if "statekv" in path.stem], ids=lambda path: path.stem)
def test_scores_match_the_reference(path: Path) -> None:
    expected, model, selection = load_file(path), decoder(path), settings(path)
    heard: list[torch.Tensor] = []

    def rule(scores: torch.Tensor, budget: int, seed: int) -> torch.Tensor:
        heard.append(scores)
        return selection.rule(scores, budget, seed)

    prefill(model, path, replace(selection, rule=rule))
    # the rule is asked only once there is more than the budget
    first = len(frames()) - len(heard)
    for number, scores in enumerate(heard, first):
        mine = expected["key_scores"][number][..., : scores.shape[-1]].unflatten(1, (scores.shape[1], -1)).sum(2)
        torch.testing.assert_close(scores, mine, atol=5e-5, rtol=0)
    assert bool(heard) == ("unlimited" not in path.stem)


@pytest.mark.parametrize("path", STREAMED, ids=lambda path: path.stem)
@torch.no_grad()
def test_answers_match_the_reference(path: Path) -> None:
    expected, model = load_file(path), decoder(path)
    state = prefill(model, path)[0][-1]
    prompt = load_file(FIXTURES / "inputs.safetensors")["prompt_ids"].long()[None]
    cache = answer_cache(whole_past(state), room=prompt.shape[1] + 8)
    words, logits, at = prompt, [], state.seen_tokens
    for _ in range(8):
        positions = torch.arange(at, at + words.shape[1])[None]
        at += words.shape[1]
        logits.append(model(input_ids=words, position_ids=positions, cache=cache).logits[0, -1])
        words = logits[-1].argmax()[None, None]
    torch.testing.assert_close(torch.stack(logits), expected["logits"], atol=5e-5, rtol=0)
    assert torch.stack(logits).argmax(-1).tolist() == expected["tokens"].tolist()


def test_budget_of_the_whole_stream_equals_full_attention() -> None:
    for streamed, whole in (
        ("statekv_unlimited", "full_attention"),
        ("statekv_unlimited_ntk", "full_attention_ntk_frozen"),
    ):
        path = FIXTURES / "settings" / f"{streamed}.safetensors"
        expected = load_file(FIXTURES / "settings" / f"{whole}.safetensors")
        hidden = prefill(decoder(path), path)[1]
        torch.testing.assert_close(torch.stack(hidden), expected["last_hidden"], atol=2e-5, rtol=0)
