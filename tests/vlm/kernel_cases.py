"""Run every case of the tiled kernel in Triton's interpreter and print how far it is from the plain form.

A program of its own: the interpreter must be chosen before Triton is imported, and it reads the source of the kernels,
which type checks of the suite would change.
"""

from __future__ import annotations

import itertools
import json
import os

HEAD_DIMS = (32, 64, 80, 128)
HEADS = ((2, 2), (4, 2), (6, 1))
LENGTHS = ((0, 17), (64, 16), (101, 37))
"""Past and chunk; most are no multiple of a block."""
CASES = [*itertools.product(HEAD_DIMS, HEADS, LENGTHS)]


def main() -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    from longtake.vlm import kernel
    from longtake.vlm.attention import attend_and_listen

    torch.manual_seed(0)
    found = []
    for head_dim, (heads, kv_heads), (past, chunk) in CASES:
        # Views as a model hands them: heads were split from the last axis.
        query = torch.randn(chunk, heads, head_dim).transpose(0, 1)
        key, value = torch.randn(2, past + chunk, kv_heads, head_dim).transpose(1, 2).unbind()
        mine = kernel.attend_and_listen(query, key, value, head_dim**-0.5)
        plain = attend_and_listen(query, key, value, head_dim**-0.5)
        found.append([float((a - b).abs().max() / b.abs().max()) for a, b in zip(mine, plain, strict=True)])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
