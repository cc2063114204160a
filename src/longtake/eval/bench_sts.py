"""``longtake bench sts``: what STS and Streaming DVC (SDC) cost at the paper's scale, by part (STS, table 4).

Counted by torch's counter on the meta device, our own classes without weights: matrix products and convolutions, a
multiply and an add as two operations. The assignments of k-means are products and are counted, its sums are not. The
command prints docs/flops_sts.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from longtake.methods.baselines.sdc import SDC
from longtake.methods.baselines.sdc_config import SDCConfig, sdc_large
from longtake.methods.sts import STS
from longtake.methods.sts_config import STSConfig, sts_large
from longtake.state.clusters import Clusters
from longtake.vision import EncoderConfig, build_encoder

SEGMENTS = 8
NEW_TOKENS = 128
"""Said at each border."""
RELEASED = {"frames": 64, "size": 224, "patch_size": 14}
"""Of SDC's released recipe for ViTT (scenic, streaming_dvc, GIT); its tower is a ViT-L."""
SMALL_SIZE = 224
"""Of the STS paper's ablations."""


def bench_sts() -> dict[str, Any]:
    """Operations of a segment by part, and SDC's over STS's under each way to count."""
    sts, sdc = sts_parts(sts_large(), NEW_TOKENS), sdc_parts(sdc_large(), NEW_TOKENS)
    ratios = {f"sdc_over_sts_{name}": value for name, value in compared(sts, sdc).items()}
    raw = {
        "bars": {},
        "segments": SEGMENTS,
        "new_tokens": NEW_TOKENS,
        "frames": sts_large().num_frames,
        "sts": sts,
        "sdc": sdc,
        "sts_small": sts_parts(smaller(sts_large(), SMALL_SIZE), NEW_TOKENS),
        "small_size": SMALL_SIZE,
        "released": RELEASED | {"frame": tower(RELEASED["size"], RELEASED["patch_size"])},
    }
    return {"name": "sts", "ratios": ratios, "raw": raw}


def sts_parts(config: STSConfig, new_tokens: int) -> dict[str, int]:
    """Operations of one segment of STS, a whole answer at its end included."""
    with torch.device("meta"):
        model = STS(config).eval()
    tokens, parts = seen(model, config)
    carried = model.stack.init_carried(1, tokens.shape[2])
    parts["ssm"] = counted(lambda: model.stack(tokens, carried))
    return parts | {"decoder": told(model, model.show(tokens), new_tokens, 0)}


def sdc_parts(config: SDCConfig, new_tokens: int) -> dict[str, int]:
    """Operations of one segment of SDC with a full memory and a full prefix, a whole answer at its end included."""
    with torch.device("meta"):
        model = SDC(config).eval()
    tokens, parts = seen(model, config)
    shares = [0.0] * config.num_frames if config.time.encoding == "video" else None
    memory = full_memory(config)
    parts["clustering"] = counted(lambda: model.remember(memory, tokens, shares))
    return parts | {"decoder": told(model, model.show(memory), new_tokens, config.prefix_tokens)}


def compared(sts: dict[str, int], sdc: dict[str, int]) -> dict[str, float]:
    """SDC over STS: everything, and with parts left out on both sides."""
    left_out = {
        "everything": (),
        "without_vision": ("vision",),
        "without_vision_and_bottleneck": ("vision", "bottleneck"),
        "memory_alone": ("vision", "bottleneck", "decoder"),
    }
    return {
        name: _sum(sdc, without) / _sum(sts, without) if _sum(sts, without) else float("nan")
        for name, without in left_out.items()
    }


def seen(model: STS | SDC, config: STSConfig | SDCConfig) -> tuple[Tensor, dict[str, int]]:
    """Tokens of a segment's frames, and the operations that it takes to see them."""
    frames = torch.empty(1, config.num_frames, 3, config.size, config.size, dtype=torch.uint8, device="meta")
    before = frames[:, :1].expand(-1, model.encoder.history, -1, -1, -1)
    grids: list[Tensor] = []
    tokens: list[Tensor] = []
    parts = {"vision": counted(lambda: grids.append(model.encoder(frames, before)))}
    parts["bottleneck"] = counted(lambda: tokens.append(model.bottleneck(grids[0].flatten(0, 1))))
    return tokens[0].unflatten(0, frames.shape[:2]), parts


def told(model: STS | SDC, memory: Tensor, new_tokens: int, prefix_tokens: int) -> int:
    """Operations of one answer: all its tokens in one call, every token with every other, the prefix read before."""
    ids = torch.empty(1, prefix_tokens + new_tokens, dtype=torch.long, device="meta")
    decoder = model.decoder

    def say() -> Tensor:
        hidden = decoder.stack(input_ids=ids, encoder_hidden_states=decoder.memory(memory), use_cache=False)
        return decoder.logits(hidden.last_hidden_state[:, -new_tokens:])

    return counted(say)


def full_memory(config: SDCConfig) -> Clusters:
    tokens = torch.empty(1, config.memory.size, config.bottleneck.dim, device="meta")
    return Clusters(tokens=tokens, weights=tokens[..., 0], places=tokens[..., 1])


def tower(size: int, patch_size: int) -> int:
    """Operations of the preset's vision tower for one frame of another size, cut into other patches."""
    fields = sts_large().encoder.model_config | {"image_size": size, "patch_size": patch_size}
    with torch.device("meta"):
        encoder = build_encoder(EncoderConfig(kind="transformers", model_config=fields), size, size).eval()
    frames = torch.empty(1, 1, 3, size, size, dtype=torch.uint8, device="meta")
    return counted(lambda: encoder(frames, frames[:, :0]))


def smaller(config: STSConfig, size: int) -> STSConfig:
    """The same model for smaller frames."""
    fields = config.encoder.model_config | {"image_size": size}
    return replace(config, size=size, encoder=replace(config.encoder, model_config=fields))


def counted(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        run()
    return counter.get_total_flops()


def _sum(parts: dict[str, int], without: tuple[str, ...]) -> int:
    return sum(count for name, count in parts.items() if name not in without)
