"""docs/flops_sts.md, from what ``bench_sts`` counted."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

PAPER = {"sts": 1854.0, "sdc": 12_800.0}
"""GFLOPs of a video by the STS paper (table 4 and "Efficiency")."""
PAPER_SEGMENT = 231.0
OPENING = """# Floating point operations of STS and Streaming DVC at the paper's scale

Made by `longtake bench sts > docs/flops_sts.md` (`make docs` does it); do not edit. Nothing is timed: the page says
what the shapes of `sts-large` and `sdc-large` cost, counted by `torch.utils.flop_counter.FlopCounterMode` on the meta
device, through our own classes (`src/longtake/eval/bench_sts.py`).

**The count.** Matrix products and convolutions; a multiply and an add are two operations. The distances of k-means
are products and are counted; its sums, softmax, norms and the SSM's steps from chunk to chunk are not.

**What is assumed.** 352 pixels, 8 segments of 16 frames, ViT-L/16: the paper's. At each border an answer of 128
tokens, all in one call in which every token sees every other. STS: the bottleneck keeps 16 tokens of a frame, the
decoder reads those of the last one. SDC: no bottleneck; two iterations of k-means put all 485 tokens of each frame
into a memory of 970, and the decoder reads all of it and 256 tokens of earlier captions (K, iterations and no
bottleneck as in its authors' released recipe for ViTT; the decoder is that of STS). Memory and prefix are full at
each border; the first ones cost less.
"""
COUNTS = {
    "everything": "everything",
    "without_vision": "without the vision encoder",
    "without_vision_and_bottleneck": "without vision encoder and bottleneck",
    "memory_alone": "SSM against clustering alone",
}


def page(result: dict[str, Any]) -> str:
    """The whole page."""
    reasons = "\n".join(_wrapped(f"- {reason}", "  ") for reason in _reasons(result))
    claim = (
        f"The paper's table 4 gives {PAPER['sdc']:,.0f} GFLOPs for SDC and {PAPER['sts']:,.0f} for STS, "
        f"{PAPER_SEGMENT:.0f} a segment: 7 times fewer. It says that SDC's are its own calculation for 128 output "
        "tokens; not for which sizes, nor what is counted."
    )
    by_part = [OPENING, "## By part\n", _parts(result["raw"]) + "\n"]
    return "\n".join([*by_part, f"## 7 times fewer?\n\n{_wrapped(claim)}\n\n{_ratios(result)}\n\n{reasons}\n"])


def _parts(raw: dict[str, Any]) -> str:
    sts, sdc, segments = raw["sts"], raw["sdc"], raw["segments"]
    rows = [
        ("vision encoder", sts["vision"], sdc["vision"]),
        ("bottleneck", sts["bottleneck"], sdc["bottleneck"]),
        ("SSM, or clustering", sts["ssm"], sdc["clustering"]),
        ("decoder", sts["decoder"], sdc["decoder"]),
        ("sum", sum(sts.values()), sum(sdc.values())),
    ]
    cells = [
        (name, *(f"{count / 1e9:,.1f}" for count in counts), *(f"{segments * count / 1e9:,.0f}" for count in counts))
        for name, *counts in rows
    ]
    return _table(("GFLOP", "STS, a segment", "SDC, a segment", "STS, the video", "SDC, the video"), cells)


def _ratios(result: dict[str, Any]) -> str:
    rows = [(name, f"{result['ratios'][f'sdc_over_sts_{count}']:.2f}") for count, name in COUNTS.items()]
    return _table(("counted", "SDC over STS"), [*rows, ("the paper", f"{PAPER['sdc'] / PAPER['sts']:.2f}")])


def _reasons(result: dict[str, Any]) -> Iterator[str]:
    raw, ratios = result["raw"], result["ratios"]
    sts, sdc, segments, frames = raw["sts"], raw["sdc"], raw["segments"], raw["frames"]
    yield (
        f"**{PAPER['sts']:,.0f} is no count with the vision encoder.** Both models see every frame with it: "
        f"{sts['vision'] / frames / 1e9:,.0f} GFLOP each, more than the paper has for a segment of {frames}, and "
        f"{segments * sts['vision'] / 1e9:,.0f} a video. With it SDC costs "
        f"{ratios['sdc_over_sts_everything']:.2f} times what STS does, whose bottleneck reads all tokens, too."
    )
    released = raw["released"]
    seen = released["frames"] * released["frame"] / 1e9
    yield (
        f"**{PAPER['sdc']:,.0f} is hardly a count without one.** The released recipe has {released['frames']} frames "
        f"of {released['size']} pixels in patches of {released['patch_size']}: its ViT-L alone takes {seen:,.0f} "
        f"GFLOP, {100 * seen / PAPER['sdc']:.0f} % of that, and the rest is of the size of clustering and decoding. "
        f"What our larger SDC does behind the encoder is {segments * (sdc['clustering'] + sdc['decoder']) / 1e9:,.0f}. "
        "So the paper's two figures seem to count different things."
    )
    yield (
        f"**What carries the past is cheaper in STS**, {ratios['sdc_over_sts_memory_alone']:.1f} times, and "
        f"{ratios['sdc_over_sts_without_vision_and_bottleneck']:.1f} times with the decoder: SDC compares every token "
        "with every centre, and its decoder reads a thousand tokens where that of STS reads sixteen. This is the count "
        "that comes nearest to the claim. But STS has so few tokens thanks to its bottleneck, which alone takes "
        f"{segments * sts['bottleneck'] / 1e9:,.0f} GFLOP."
    )
    small = raw["sts_small"]
    once = ((small["vision"] + small["bottleneck"]) / frames + small["ssm"] + small["decoder"]) / 1e9
    yield (
        f"**{PAPER_SEGMENT:.0f} a segment, by trial:** vision encoder and bottleneck for one frame of "
        f"{raw['small_size']} pixels, SSM and decoder for the whole segment, are {once:,.0f} GFLOP: what an analysis "
        "finds that counts the body of a loop over frames once. We do not know whether that is what was done."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" + "|---:" * (len(head) - 1) + "|", *lines[1:]])


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_on_hyphens=False)
