"""``longtake bench flops``: what StateKV saves at 512 frames, counted for the real shapes of two models.

The command prints docs/flops.md. Nothing is timed and nothing is random: the same versions give the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtake.errors import LongtakeError
from longtake.eval.flops import INTERNVL3_1B, INTERNVL3_8B, QWEN3_VL_8B, Counted

BUDGETS = (256, 1024, 4096, 16_384)
NUM_FRAMES = 512
RUN_BUDGET = 1024
"""The budget at which the stream is run chunk by chunk; for the others the line through the counts is enough."""
MODELS = (
    Counted(name="InternVL3-8B", config=INTERNVL3_8B, frames_per_chunk=1, marker_tokens=3),
    Counted(name="Qwen3-VL-8B", config=QWEN3_VL_8B, frames_per_chunk=2, marker_tokens=10),
)
SMALL = Counted(name="InternVL3-1B", config=INTERNVL3_1B, frames_per_chunk=1, marker_tokens=3)


def bench_flops() -> dict[str, Any]:
    """Ratios and counts for both models."""
    tables = {model.name: table(model, NUM_FRAMES, BUDGETS, RUN_BUDGET) for model in MODELS}
    small = totals_at_once(SMALL, NUM_FRAMES)
    ratios: dict[str, float] = {}
    for name, made in tables.items():
        ratios[f"{name}_last_over_first_full_chunk"] = made["stream"]["last_over_first_full"]
        for row in made["rows"]:
            ratios[f"{name}_{row['budget']}_causal"] = row["of_full"]["causal"]
            ratios[f"{name}_{row['budget']}_all_pairs"] = row["of_full"]["all_pairs"]
    bars = {name: (1.0, 1.0) for name in ratios if name.endswith("_chunk")}
    raw = {"bars": bars, "num_frames": NUM_FRAMES, "models": tables, "full_attention_1b": small}
    return {"name": "flops", "ratios": ratios, "raw": raw}


def table(model: Counted, num_frames: int, budgets: Sequence[int], run_budget: int) -> dict[str, Any]:
    """All counts of one model.

    Raises:
        LongtakeError: The counts of chunks do not lie on a line over the number of carried keys, or a stream that is
            run does not follow it.
    """
    tokens, chunks = model.chunk_tokens, num_frames // model.frames_per_chunk
    first, per_key = line(model, [*budgets, (chunks - 1) * tokens])
    pair = per_key // tokens
    linear = first - pair * tokens * tokens
    full = totals_at_once(model, num_frames)
    if full["all_pairs"] != chunks * linear + pair * (chunks * tokens) ** 2:
        raise LongtakeError(f"{model.name}: one call over {num_frames} frames counts otherwise than its chunks")
    masked = pair * tokens * (tokens - 1) // 2
    rows: list[dict[str, Any]] = []
    for budget in budgets:
        counts = [first + per_key * min(index * tokens, budget) for index in range(chunks)]
        row = _row(sum(counts), sum(counts) - chunks * masked, full, chunks * model.vision)
        rows.append({"budget": budget, "per_chunk": counts[-1], "fills_in_chunk": -(-budget // tokens), **row})
    chunkwise = sum(first + per_key * index * tokens for index in range(chunks))
    return {
        "tokens_per_chunk": tokens,
        "frames_per_chunk": model.frames_per_chunk,
        "chunks": chunks,
        "vision_per_chunk": model.vision,
        "linear_per_chunk": linear,
        "pair": pair,
        "full": full,
        "full_by_chunks": _row(chunkwise, chunkwise - chunks * masked, full, chunks * model.vision),
        "floor": _row(chunks * linear, chunks * linear, full, chunks * model.vision),
        "rows": rows,
        "stream": run(model, run_budget, chunks, first, per_key),
    }


def line(model: Counted, elsewhere: Sequence[int]) -> tuple[int, int]:
    """Count of a chunk over nothing, and what each carried key adds; held to be exact at the numbers of keys given."""
    first = model.after(0)
    per_key, rest = divmod(model.after(model.chunk_tokens) - first, model.chunk_tokens)
    off = [keys for keys in elsewhere if model.after(keys) != first + per_key * keys]
    if rest or off:
        raise LongtakeError(f"{model.name}: a chunk's count is not linear in the carried keys, for instance at {off}")
    return first, per_key


def run(model: Counted, budget: int, chunks: int, first: int, per_key: int) -> dict[str, Any]:
    """A stream taken in chunk by chunk: when the budget is full, and whether all counts from then on are equal."""
    counts = model.stream(budget, chunks)
    if counts != [first + per_key * min(index * model.chunk_tokens, budget) for index in range(chunks)]:
        raise LongtakeError(f"{model.name}: a stream at budget {budget} counts otherwise than its chunks one by one")
    full = -(-budget // model.chunk_tokens)
    return {
        "budget": budget,
        "first_full_chunk": full,
        "counts": sorted(set(counts[full:])),
        "last_over_first_full": counts[-1] / counts[full],
    }


def totals_at_once(model: Counted, num_frames: int) -> dict[str, int]:
    """Full attention in one call: every query with every key, as the counter has it, and the pairs that are seen."""
    tokens = model.chunk_tokens * num_frames // model.frames_per_chunk
    text = model.config.get_text_config()
    masked = 4 * text.num_hidden_layers * text.num_attention_heads * model.head_dim * tokens * (tokens - 1) // 2
    counted = model.at_once(tokens)
    vision = model.vision * num_frames // model.frames_per_chunk
    return {"all_pairs": counted, "causal": counted - masked, "vision": vision, "tokens": tokens}


def _row(all_pairs: int, causal: int, full: dict[str, int], vision: int) -> dict[str, Any]:
    """Totals, and their parts of full attention's under both counts, without and with the vision tower."""
    return {
        "all_pairs": all_pairs,
        "causal": causal,
        "of_full": {
            "all_pairs": all_pairs / full["all_pairs"],
            "causal": causal / full["causal"],
            "all_pairs_with_vision": (all_pairs + vision) / (full["all_pairs"] + vision),
            "causal_with_vision": (causal + vision) / (full["causal"] + vision),
        },
    }
