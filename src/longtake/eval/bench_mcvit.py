"""``longtake bench mcvit``: what consolidation saves against joint attention, and what it costs itself.

Operations and memory as ``longtake.eval.mcvit_cost`` has them, of each variant in a process of its own. Time in
another, with one thread and in CPU time of that thread: k-means over the inputs of every layer, as a segment's forward
gives them, beside that forward without it (and without a memory, which would make it longer); and scikit-learn's on the
same data from the same start with as many iterations.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from statistics import median
from time import thread_time
from typing import Any

import torch
from torch import Tensor

from longtake.eval.apart import measured_apart
from longtake.eval.mcvit_cost import Shapes, expected_flops, measured, noise, random_model
from longtake.methods.mcvit_config import Variant
from longtake.state.consolidate import KMEANS_ITERATIONS, kmeans, random
from longtake.vision import places_in

BARS: dict[str, tuple[float | None, float | None]] = {
    "joint_over_mc_flops": (2.5, None),
    "joint_over_mc_flops_at_224_pixels": (None, None),
    "joint_over_mc_memory": (4.0, None),
    "kmeans_over_forward_time": (None, 0.10),
    "kmeans_over_scikit_learn_inertia": (None, 1.01),
    "kmeans_over_scikit_learn_time": (None, 1.0),
}
"""Least and most that a ratio may be."""
VARIANTS: tuple[Variant, ...] = ("joint", "mc-km")
ROUNDS = 3
VIVIT_SIZE = 224
"""Pixels of the public ViViT weights: 1,568 tokens a segment. Counted by hand: only shapes matter."""


def bench_mcvit(
    shapes: Shapes | None = None, *, rounds: int = ROUNDS, tell: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Measure in processes of their own."""
    shapes = shapes or Shapes()
    text, found = json.dumps(asdict(shapes)), dict[str, Any]()
    for variant in VARIANTS:
        if tell:
            tell(f"{variant}: {shapes.video_frames} frames of {shapes.size} pixels")
        found[variant] = measured_apart(__name__, "cost", text, variant)
    if tell:
        tell("k-means beside a segment's forward")
    times = measured_apart(__name__, "time", text, str(rounds), threads=1)
    joint, ours = (found[variant] for variant in VARIANTS)
    ratios = {
        "joint_over_mc_flops": joint["flops"] / ours["flops"],
        "joint_over_mc_flops_at_224_pixels": _by_hand(replace(shapes, size=VIVIT_SIZE), "mc-km"),
        "joint_over_mc_memory": joint["peak_bytes"] / ours["peak_bytes"],
        **times["ratios"],
    }
    bars = {name: bar for name, bar in BARS.items() if name in ratios}
    by_hand = {variant: _by_hand(shapes, variant) for variant in ("mc-km", "mc-r", "st")}
    raw = {"bars": bars, "shapes": asdict(shapes), **found, "flops_joint_over": by_hand, "times": times}
    return {"name": "mcvit", "ratios": ratios, "raw": raw | {"torch": torch.__version__}}


def measure_time(shapes: Shapes, rounds: int) -> dict[str, Any]:
    """Times of k-means, of the forward and of scikit-learn, in this process, by turns."""
    with torch.inference_mode():
        inputs, forward = layer_inputs(shapes)
    starts = [random(one, shapes.kept, seed=layer)[0, 0] for layer, one in enumerate(inputs)]
    runs: dict[str, Callable[[], object]] = {
        "forward": forward,
        "kmeans": lambda: [kmeans(one, shapes.kept, seed=layer) for layer, one in enumerate(inputs)],
    }
    if (theirs := _scikit_learn(inputs, starts)) is not None:
        runs["scikit_learn"] = theirs
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):  # the first warms up and does not count
        for name, run in runs.items():
            started = thread_time()
            with torch.inference_mode():
                run()
            if number:
                seconds[name].append(thread_time() - started)
    ratios = {"kmeans_over_forward_time": _ratio(seconds["kmeans"], seconds["forward"])}
    if theirs is not None:
        ratios["kmeans_over_scikit_learn_time"] = _ratio(seconds["kmeans"], seconds["scikit_learn"])
        ratios["kmeans_over_scikit_learn_inertia"] = _inertia(inputs, shapes) / _their_inertia(inputs, theirs())
    return {
        "ratios": ratios,
        "seconds": {name: median(taken) for name, taken in seconds.items()},
        "scikit_learn": theirs is not None,
        "threads": torch.get_num_threads(),
    }


def layer_inputs(shapes: Shapes) -> tuple[list[Tensor], Callable[[], object]]:
    """What goes into each layer for a segment of noise, and the forward that gives it, without any memory."""
    encoder = random_model(shapes, "st").encoder
    frames = noise(shapes, shapes.num_frames)
    places = places_in(
        encoder.config.tubelet, first_frame=0, num_frames=shapes.num_frames, total_frames=shapes.num_frames
    )
    _, inputs = encoder(frames, places, keep=lambda hidden, layer: hidden)
    return [one[None] for one in inputs], lambda: encoder(frames, places)


def _by_hand(shapes: Shapes, variant: Variant) -> float:
    """How many operations joint attention takes for one of a variant; tests hold the formula to the counts."""
    return expected_flops(shapes, "joint") / expected_flops(shapes, variant)


def _scikit_learn(inputs: Sequence[Tensor], starts: Sequence[Tensor]) -> Callable[[], list[Any]] | None:
    """Its k-means over every layer, from the same starts; None where it is not installed."""
    try:
        cluster: Any = import_module("sklearn.cluster")
    except ModuleNotFoundError:
        return None
    points = [one[0, 0].numpy() for one in inputs]
    first = [start.numpy() for start in starts]

    def run() -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that so few iterations may not have converged
            return [
                cluster.KMeans(n_clusters=len(start), init=start, n_init=1, max_iter=KMEANS_ITERATIONS, tol=0.0).fit(
                    one
                )
                for one, start in zip(points, first, strict=True)
            ]

    return run


def _inertia(inputs: Sequence[Tensor], shapes: Shapes) -> float:
    return sum(inertia(one[0, 0], kmeans(one, shapes.kept, seed=layer)[0, 0]) for layer, one in enumerate(inputs))


def _their_inertia(inputs: Sequence[Tensor], fitted: Sequence[Any]) -> float:
    return sum(
        inertia(one[0, 0], torch.from_numpy(fit.cluster_centers_).to(one.dtype))
        for one, fit in zip(inputs, fitted, strict=True)
    )


def inertia(points: Tensor, centroids: Tensor) -> float:
    """Sum of squared distances to the nearest centroid."""
    return float(torch.cdist(points.double(), centroids.double()).min(1).values.square().sum())


def _ratio(some: Sequence[float], others: Sequence[float]) -> float:
    return median(one / other for one, other in zip(some, others, strict=True))


if __name__ == "__main__":
    wanted = Shapes(**json.loads(sys.argv[2]))
    if sys.argv[1] == "cost":
        sys.stdout.write(json.dumps(measured(wanted, sys.argv[3])))  # type: ignore[arg-type]
    else:
        torch.set_num_threads(1)
        sys.stdout.write(json.dumps(measure_time(wanted, int(sys.argv[3]))))
