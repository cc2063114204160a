"""The models that the contract suite runs over: add each new StreamModel here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from longtake.protocol import StreamModel
from longtake.types import Caption, Event, Segment, SegmentSpec


@dataclass(frozen=True, kw_only=True)
class Case:
    """How to make one model, the same each time."""

    name: str
    make: Callable[[], StreamModel[Any]]
    make_other: Callable[[], StreamModel[Any]]
    """Of the same class and state type, with other weights."""
    make_batch: Callable[[StreamModel[Any]], Any]
    """A state of two streams."""
    carried: Callable[[Any], tuple[torch.Tensor, ...]] | None = None
    """The part of a state that must not depend on where the stream was cut, if the method promises that."""
    keeps_everything: bool = False
    """The state holds a part of each segment for good, within ``max_state_bytes``: its growth is even, not nothing."""


def make_colours() -> StreamModel[Any]:
    from tests.contract.colours import Colours

    return Colours()


def make_other_colours() -> StreamModel[Any]:
    from tests.contract.colours import Colours

    return Colours(decay=0.5)


def make_captioner(method: str, seed: int) -> StreamModel[Any]:
    """Real classes, random weights; the decoder's are made larger and it is biased to speak, so that its words vary."""
    from longtake.methods.baselines.sdc import SDC
    from longtake.methods.baselines.sdc_config import SDCConfig
    from longtake.methods.sts import STS
    from longtake.methods.sts_config import STSConfig

    before = torch.random.get_rng_state()
    torch.manual_seed(seed)
    if method == "sdc":
        model = SDC(replace(SDCConfig.tiny(), event_bias=3.0)).eval()
    else:
        model = STS(replace(STSConfig.tiny(), event_bias=3.0)).eval()
    torch.random.set_rng_state(before)
    for weights in model.decoder.parameters():
        weights.data *= 6
    return model


@functools.cache
def talkative_seed(method: str) -> int:
    """The first seed whose model says different things in different segments: a silent one would prove nothing."""
    for seed in range(100):
        model = make_captioner(method, seed)
        state, said = model.init_state(), set()
        with torch.inference_mode():
            for segment in make_segments(model.segment_spec, 8):
                state = model.advance(state, segment)
                said.add(tuple(event.text for event in model.respond(state, Caption()) if isinstance(event, Event)))
        if len(said) >= 3:
            return seed
    raise AssertionError(f"no seed below 100 gives a tiny {method} that says three different things")


def captioner_case(method: str, carried: Callable[[Any], tuple[torch.Tensor, ...]]) -> Case:
    return Case(
        name=method,
        make=lambda: make_captioner(method, talkative_seed(method)),
        make_other=lambda: make_captioner(method, talkative_seed(method) + 1),
        make_batch=lambda model: model.init_state(batch=2),  # type: ignore[attr-defined]
        carried=carried,
    )


def make_statekv(name: str, *, louder: float = 1.0) -> StreamModel[Any]:
    """A family's real classes with random weights, over a past so short that most of a stream is dropped from it."""
    from tests.vlm.families import make, options

    from longtake.methods.statekv import StateKV
    from longtake.methods.statekv_config import StateKVConfig
    from longtake.vlm.families import family_of

    model, processor = make(name)
    for weights in model.requires_grad_(False).parameters():
        weights *= louder
    config = StateKVConfig(fps=4.0, budget=48, max_new_tokens=5, caption_seconds=1.0, detailed_bytes=50_000_000)
    return StateKV(family_of(model, processor, **options(name)), config, name=name)


def two_streams(model: StreamModel[Any]) -> Any:
    """StateKV serves one stream at a time: a state with twice the heads stands for two of them."""
    from longtake.methods.statekv_prefill import empty_state

    family: Any = model.family  # type: ignore[attr-defined]
    shape = (family.num_layers, 2 * family.num_kv_heads, family.head_dim)
    return replace(model.init_state(), kv=empty_state(*shape, dtype=family.dtype, device=family.device))


def statekv_case(family: str) -> Case:
    return Case(
        name=f"statekv-{family}",
        make=functools.partial(make_statekv, family),
        make_other=functools.partial(make_statekv, family, louder=1.01),
        make_batch=two_streams,
        keeps_everything=True,
    )


def make_mcvit(*, seed: int = 0, **memory: Any) -> StreamModel[Any]:
    """Real classes, random weights; the encoder's are made larger, so that what differs in the video is heard."""
    from longtake.methods.mcvit import MCViT
    from longtake.methods.mcvit_config import MCViTConfig

    before = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = MCViT(MCViTConfig.tiny(**memory)).eval()
    torch.random.set_rng_state(before)
    for weights in model.encoder.parameters():
        weights.data *= 2
    return model


def mcvit_case(name: str, *, keeps_everything: bool = False, **memory: Any) -> Case:
    return Case(
        name=name,
        make=functools.partial(make_mcvit, **memory),
        make_other=functools.partial(make_mcvit, seed=1, **memory),
        make_batch=lambda model: model.init_state(batch=2),  # type: ignore[attr-defined]
        keeps_everything=keeps_everything,
    )


MCVIT_CASES = (
    mcvit_case("mcvit-joint", variant="joint", keeps_everything=True),
    mcvit_case("mcvit-joint-masked", variant="joint", mask=0.25, keeps_everything=True),
    mcvit_case("mcvit-st", variant="st"),
    mcvit_case("mcvit-ma", variant="ma", keeps_everything=True),
    mcvit_case("mcvit-mc-r", variant="mc-r"),
    mcvit_case("mcvit-mc-cs", variant="mc-cs"),
    mcvit_case("mcvit-mc-km", variant="mc-km"),
    mcvit_case("mcvit-mc-km-last", variant="mc-km", kind="last"),
    mcvit_case("mcvit-mc-km-concat", variant="mc-km", kind="concat", keeps_everything=True),
    mcvit_case("mcvit-memvit", variant="memvit"),
    mcvit_case("mcvit-late", variant="late", keeps_everything=True),
)

CASES = {
    case.name: case
    for case in (
        *MCVIT_CASES,
        Case(
            name="colours",
            make=make_colours,
            make_other=make_other_colours,
            make_batch=lambda model: model.init_state(batch=2),  # type: ignore[attr-defined]
            carried=lambda state: (state.echo, state.counts),
        ),
        captioner_case("sts", lambda state: state.carried),
        captioner_case("sdc", lambda state: (state.memory.tokens, state.memory.weights, state.memory.places)),
        statekv_case("qwen3-vl"),
        statekv_case("llava-onevision"),
    )
}


def make_segments(spec: SegmentSpec, count: int, *, seed: int = 0, num_frames: int | None = None) -> list[Segment]:
    """Noise over stretches of one colour: something happens, and no two frames are equal."""
    generator = torch.Generator().manual_seed(seed)
    per_segment = num_frames or spec.num_frames
    total = count * per_segment
    tint = torch.zeros(total, 3)
    colours = torch.randint(0, 3, (total // 3 + 1,), generator=generator)
    for index in range(total):
        tint[index, colours[index // 3]] = 120
    noise = torch.randint(0, 120, (total, 3, spec.height, spec.width), generator=generator)
    frames = (noise + tint[:, :, None, None]).to(torch.uint8)
    return [
        cut(frames, spec, start, start + per_segment, index) for index, start in enumerate(range(0, total, per_segment))
    ]


def cut(frames: torch.Tensor, spec: SegmentSpec, start: int, stop: int, index: int) -> Segment:
    """Frames ``start`` to ``stop`` of a video on the grid."""
    return Segment(
        pixels=frames[start:stop].clone(),
        pts_seconds=tuple(number / spec.fps for number in range(start, stop)),
        index=index,
        start_seconds=start / spec.fps,
        end_seconds=stop / spec.fps,
    )
