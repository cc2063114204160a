"""The same attention for GPUs, tile by tile: outputs and what each key received, without the whole matrix.

Two passes. The first is online-softmax attention and keeps each query's log-sum-exp. The second takes a block of keys,
goes once over the queries of all heads of its group, and adds up exp(score - log-sum-exp): one writer per key and no
atomics, so the result is the same each time. What is read is one KV head's keys per group, not per query head.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _scores(
    query_ptr, key_ptr, head, kv_head, at, rows, columns, chunk, keys,
    q_head, q_row, k_head, k_row, scale, dim: tl.constexpr, wide: tl.constexpr, exact: tl.constexpr,
):  # fmt: skip
    """Scaled scores in base 2 of a block of queries against a block of keys; -inf where a query may not look."""
    inside = at < dim
    query = tl.load(
        query_ptr + head * q_head + rows[:, None] * q_row + at[None, :],
        mask=(rows < chunk)[:, None] & inside[None, :], other=0.0,
    )  # fmt: skip
    key = tl.load(
        key_ptr + kv_head * k_head + columns[:, None] * k_row + at[None, :],
        mask=(columns < keys)[:, None] & inside[None, :], other=0.0,
    )  # fmt: skip
    scores = tl.dot(query, tl.trans(key), input_precision="ieee" if exact else "tf32") * (scale * LOG2_E)
    seen = (columns[None, :] < keys) & (columns[None, :] <= keys - chunk + rows[:, None])
    return tl.where(seen, scores, float("-inf"))


@triton.jit
def _attend(
    query_ptr, key_ptr, value_ptr, out_ptr, lse_ptr, chunk, keys, group,
    q_head, q_row, k_head, k_row, v_head, v_row, scale,
    dim: tl.constexpr, wide: tl.constexpr, block_q: tl.constexpr, block_k: tl.constexpr, exact: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head over all keys it may see."""
    block, head = tl.program_id(0), tl.program_id(1)
    kv_head = head // group
    rows = block * block_q + tl.arange(0, block_q)
    at = tl.arange(0, wide)
    top = tl.full([block_q], float("-inf"), tl.float32)
    total = tl.zeros([block_q], tl.float32)
    out = tl.zeros([block_q, wide], tl.float32)
    last = tl.minimum(keys, keys - chunk + (block + 1) * block_q)
    for start in range(0, last, block_k):
        columns = start + tl.arange(0, block_k)
        scores = _scores(
            query_ptr, key_ptr, head, kv_head, at, rows, columns, chunk, keys,
            q_head, q_row, k_head, k_row, scale, dim, wide, exact,
        )  # fmt: skip
        higher = tl.maximum(top, tl.max(scores, 1))
        # Rows beyond the chunk see nothing at first; their maximum must not become -inf minus -inf.
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        shrink = tl.exp2(top - safe)
        weights = tl.exp2(scores - safe[:, None])
        value = tl.load(
            value_ptr + kv_head * v_head + columns[:, None] * v_row + at[None, :],
            mask=(columns < keys)[:, None] & (at < dim)[None, :], other=0.0,
        )  # fmt: skip
        out = out * shrink[:, None] + tl.dot(
            weights.to(value.dtype), value, input_precision="ieee" if exact else "tf32"
        )
        total = total * shrink + tl.sum(weights, 1)
        top = higher
    here = rows < chunk
    out = out / tl.where(total == 0.0, 1.0, total)[:, None]
    place = out_ptr + (head * chunk + rows[:, None]) * dim + at[None, :]
    tl.store(place, out.to(out_ptr.dtype.element_ty), mask=here[:, None] & (at < dim)[None, :])
    tl.store(lse_ptr + head * chunk + rows, top + tl.log2(total), mask=here)


@triton.jit
def _receive(
    query_ptr, key_ptr, lse_ptr, received_ptr, chunk, keys, group, q_head, q_row, k_head, k_row, scale,
    dim: tl.constexpr, wide: tl.constexpr, block_q: tl.constexpr, block_k: tl.constexpr, exact: tl.constexpr,
):  # fmt: skip
    """What one block of keys receives from the queries of all heads of its group that may see it."""
    block, kv_head = tl.program_id(0), tl.program_id(1)
    columns = block * block_k + tl.arange(0, block_k)
    at = tl.arange(0, wide)
    received = tl.zeros([block_k], tl.float32)
    # The first query that sees the block's first key.
    first = tl.maximum(block * block_k - (keys - chunk), 0) // block_q * block_q
    for member in range(group):
        head = kv_head * group + member
        for start in range(first, chunk, block_q):
            rows = start + tl.arange(0, block_q)
            scores = _scores(
                query_ptr, key_ptr, head, kv_head, at, rows, columns, chunk, keys,
                q_head, q_row, k_head, k_row, scale, dim, wide, exact,
            )  # fmt: skip
            lse = tl.load(lse_ptr + head * chunk + rows, mask=rows < chunk, other=float("inf"))
            received += tl.sum(tl.exp2(scores - lse[:, None]), 0)
    tl.store(received_ptr + kv_head * keys + columns, received, mask=columns < keys)


def attend_and_listen(
    query: Float[Tensor, "heads chunk head_dim"],
    key: Float[Tensor, "kv_heads keys head_dim"],
    value: Float[Tensor, "kv_heads keys head_dim"],
    scaling: float,
) -> tuple[Float[Tensor, "heads chunk head_dim"], Float[Tensor, "kv_heads keys"]]:
    """As ``longtake.vlm.attention.attend_and_listen``; float32 inputs are multiplied in full precision.

    Head sizes up to 256 (the last axis contiguous); any length of past and chunk.
    """
    query, key, value = (part if part.stride(-1) == 1 else part.contiguous() for part in (query, key, value))
    (heads, chunk, dim), (kv_heads, keys, _) = query.shape, key.shape
    group, wide = heads // kv_heads, max(16, triton.next_power_of_2(dim))
    block_q, block_k = (64, 64) if wide <= 64 else (32, 64) if wide <= 128 else (16, 32)
    outputs = torch.empty(heads, chunk, dim, dtype=value.dtype, device=query.device)
    lse = torch.empty(heads, chunk, dtype=torch.float32, device=query.device)
    received = torch.empty(kv_heads, keys, dtype=torch.float32, device=query.device)
    shape = {"dim": dim, "wide": wide, "block_q": block_q, "block_k": block_k, "exact": query.dtype == torch.float32}
    strides = (query.stride(0), query.stride(1), key.stride(0), key.stride(1))
    _attend[(triton.cdiv(chunk, block_q), heads)](
        query,
        key,
        value,
        outputs,
        lse,
        chunk,
        keys,
        group,
        *strides,
        value.stride(0),
        value.stride(1),
        scaling,
        **shape,
    )
    _receive[(triton.cdiv(keys, block_k), kv_heads)](
        query, key, lse, received, chunk, keys, group, *strides, scaling, **shape
    )
    return outputs, received
