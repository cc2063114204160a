"""``longtake bench``: speed and memory, each figure beside the bar it has to clear."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def bench(
    name: Annotated[
        Literal["scan", "stream", "kv", "memory", "mcvit", "decode", "flops", "sts", "score"],
        typer.Argument(
            help="scan: the SSM against its FFT form. stream: memory and time over a long video. kv: StateKV's time "
            "per frame early and late, its attention against bare products. memory: MC-ViT's memory and time per "
            "segment early and late. mcvit: its operations and memory against joint attention's, and its k-means. "
            "decode: an answer after two minutes and after an hour. flops: StateKV's operations at 512 frames; "
            "prints docs/flops.md. sts: those of STS and Streaming DVC at the paper's scale; prints docs/flops_sts.md. "
            "score: an evaluation of captions at ActivityNet's size, with METEOR and SODA."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    minutes: Annotated[
        float, typer.Option(help="For stream, memory and decode: length of the stream, at least 3 (memory: 7).")
    ] = 60.0,
    model: Annotated[
        str | None,
        typer.Option(
            help="A bundled name or a folder. For stream, else toybox-sts; for decode, else toybox-vlm's sizes with "
            "random weights.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="For stream: folder that keeps the video; else ~/.cache/longtake.")
    ] = None,
) -> None:
    """Measure speed and memory in a process of its own, without disturbing this one; count operations."""
    result = _measure(name, minutes, model, data or _cache())
    if as_json:
        print(json.dumps(result))
    elif name in ("flops", "sts"):
        print(_page(result), end="")
    else:
        _print_table(result)


def _measure(name: str, minutes: float, model: str | None, folder: Path) -> dict[str, Any]:
    if name == "scan":
        from longtake.eval.bench_scan import bench_scan

        return bench_scan()
    if name in ("memory", "mcvit"):
        return _measure_mcvit(name, minutes)
    if name == "kv":
        from longtake.eval.bench_kv import bench_kv

        return bench_kv()
    if name == "flops":
        from longtake.eval.bench_flops import bench_flops

        return bench_flops()
    if name == "sts":
        from longtake.eval.bench_sts import bench_sts

        return bench_sts()
    if name == "score":
        from longtake.eval.bench_score import bench_score

        return bench_score(tell=_tell)
    if name == "decode":
        from longtake.eval.bench_decode import DecodeSetting, bench_decode

        return bench_decode(DecodeSetting(model=model or "", minutes=minutes), tell=_tell)
    from longtake.eval.bench_stream import bench_stream

    return bench_stream(minutes, model or "toybox-sts", folder, tell=_tell)


def _measure_mcvit(name: str, minutes: float) -> dict[str, Any]:
    if name == "memory":
        from longtake.eval.bench_memory import MemorySetting, bench_memory

        return bench_memory(MemorySetting(minutes=minutes), tell=_tell)
    from longtake.eval.bench_mcvit import bench_mcvit

    return bench_mcvit(tell=_tell)


def _page(result: dict[str, Any]) -> str:
    from longtake.eval import flops_page, sts_page

    return flops_page.page(result) if result["name"] == "flops" else sts_page.page(result)


def _tell(line: str) -> None:
    print(f"longtake: {line}", file=sys.stderr)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longtake"


def _print_table(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"longtake bench {result['name']}", box=None, pad_edge=False)
    for column in ("what", "measured", "bar", ""):
        table.add_column(column, justify="right" if column in ("measured", "bar") else "left", no_wrap=True)
    for ratio, value in result["ratios"].items():
        least, most = result["raw"]["bars"].get(ratio, (None, None))
        bar = f"<= {most:g}" if most is not None else "" if least is None else f">= {least:g}"
        bar = f"= {most:g}" if least is not None and least == most else bar
        held = (least is None or value >= least) and (most is None or value <= most)
        table.add_row(ratio, f"{value:.3f}", bar, ("holds" if held else "missed") if bar else "")
    Console().print(table, markup=False)
