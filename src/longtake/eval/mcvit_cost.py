"""What MC-ViT and joint attention cost on the same frames: operations, and memory for activations.

Both run for real, with torch's fused attention, on shapes of ViT-B. **Operations** are those of matrix products, a
multiply and an add as two (``FlopCounterMode``). That counter knows no fused attention of the CPU, and would leave it
out; ``counted`` gives it the count that it has for every other fused attention, all queries with all keys. The
assignments of k-means are products and are counted too. ``expected_flops`` is the same by hand, for any size.

**Memory** is what tensors held at once at most while the frames were taken in, frames and memory included, weights not
(``TensorMemory``). Beside it, as it depends on allocator and kernels: by how much the process grew at most, each large
tensor on pages of its own that go back when it is freed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from longtake.eval.process_memory import pages_of_their_own, peak_growth
from longtake.eval.tensor_memory import TensorMemory
from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_config import MCViTConfig, MemoryConfig, Variant
from longtake.state.consolidate import KMEANS_ITERATIONS
from longtake.vision import TubeletConfig, VideoTransformerConfig


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """ViT-B and its video, 2,048 tokens a segment as in the paper."""

    video_frames: int = 128
    num_frames: int = 16
    """Of a segment."""
    size: int = 256
    patch: int = 16
    time: int = 2
    """Frames of a tubelet."""
    dim: int = 768
    num_layers: int = 12
    num_heads: int = 12
    kept: int = 128
    """Tokens that stand for a segment, the paper's K."""

    @property
    def num_tokens(self) -> int:
        """Of a segment."""
        return self.num_frames // self.time * (self.size // self.patch) ** 2


def random_model(shapes: Shapes, variant: Variant) -> MCViT:
    """The real class with random weights, no head; its memory holds all that is kept of the video."""
    config = MCViTConfig(
        num_frames=shapes.num_frames,
        encoder=VideoTransformerConfig(
            tubelet=TubeletConfig(
                size=shapes.size, patch=shapes.patch, time=shapes.time, position_frames=shapes.num_frames
            ),
            dim=shapes.dim,
            num_layers=shapes.num_layers,
            num_heads=shapes.num_heads,
            mlp_dim=4 * shapes.dim,
        ),
        memory=MemoryConfig(variant=variant, size=shapes.kept, segments=-(-shapes.video_frames // shapes.num_frames)),
    )
    torch.manual_seed(0)
    return MCViT(config).eval()


def noise(shapes: Shapes, num_frames: int, seed: int = 0) -> Tensor:
    """Frames of one stream."""
    generator = torch.Generator().manual_seed(seed)
    shape = (1, num_frames, 3, shapes.size, shapes.size)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


@torch.inference_mode()
def take_in_video(model: MCViT, shapes: Shapes) -> Tensor:
    """The vector of a video, taken in segment by segment; the frames come as they are needed."""
    state = model.init_state(total_frames=shapes.video_frames)
    for first in range(0, shapes.video_frames, shapes.num_frames):
        count = min(shapes.num_frames, shapes.video_frames - first)
        state = model.take_in(state, noise(shapes, count, seed=first))
    return model.vector(state)


def measured(shapes: Shapes, variant: Variant) -> dict[str, Any]:
    """Operations and peak memory of one video, in this process, which should have done nothing else before."""
    pages_of_their_own()
    model = random_model(shapes, variant)
    take_in_video(random_model(_warm(shapes), variant), _warm(shapes))  # kernels and libraries have their memory now
    grown = peak_growth(lambda: take_in_video(model, shapes))
    with TensorMemory() as memory:
        flops = counted(lambda: take_in_video(model, shapes))
    weights = sum(p.nbytes for p in model.parameters())
    return {"flops": flops, "peak_bytes": memory.peak_bytes, "grown_bytes": grown, "weight_bytes": weights}


def watching_cost(model: MCViT, num_frames: int) -> tuple[int, int]:
    """Operations, and most bytes of tensors at once, while one video of so many frames is taken in."""
    size = model.config.encoder.tubelet.size
    frames = torch.zeros(1, num_frames, 3, size, size, dtype=torch.uint8, device=model.encoder.norm.weight.device)
    model = copy.deepcopy(model).requires_grad_(False)  # the counter follows modules by gradients
    with torch.no_grad(), TensorMemory() as memory:
        flops = counted(lambda: model.watch(frames))
    return flops, memory.peak_bytes


def counted(run: Callable[[], object]) -> int:
    """Operations of a call; the CPU's fused attention counts as any fused attention does."""
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with FlopCounterMode(display=False, custom_mapping={fused: _attention_flops}) as counter:
        run()
    return counter.get_total_flops()


def expected_flops(shapes: Shapes, variant: Variant) -> int:
    """What ``counted`` must find, by hand; ``joint``, ``st``, ``mc-r`` or ``mc-km``, whole segments."""
    segments = shapes.video_frames // shapes.num_frames
    embed = 2 * 3 * shapes.time * shapes.patch**2 * shapes.dim * shapes.num_tokens
    if variant == "joint":
        return segments * embed + shapes.num_layers * _layer_flops(shapes, segments * shapes.num_tokens, 0)
    kept = min(shapes.kept, shapes.num_tokens) if variant.startswith("mc") else 0
    consolidates = variant == "mc-km" and shapes.num_tokens > kept
    means = 2 * KMEANS_ITERATIONS * shapes.num_tokens * kept * shapes.dim if consolidates else 0
    return sum(
        embed + shapes.num_layers * (_layer_flops(shapes, shapes.num_tokens, number * kept) + means)
        for number in range(segments)
    )


def _layer_flops(shapes: Shapes, tokens: int, memory: int) -> int:
    dim, keys = shapes.dim, tokens + memory
    linear = 2 * tokens * dim * dim * (1 + 1 + 8)  # query, out and the two of the MLP
    return linear + 2 * keys * dim * 2 * dim + 4 * tokens * keys * dim


def _attention_flops(query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_flop_count(query, key, value)


def _warm(shapes: Shapes) -> Shapes:
    """The same kernels on next to nothing."""
    return Shapes(
        video_frames=2 * shapes.time,
        num_frames=shapes.time,
        size=4 * shapes.patch,
        patch=shapes.patch,
        time=shapes.time,
        dim=shapes.dim,
        num_layers=1,
        num_heads=shapes.num_heads,
        kept=4,
    )
