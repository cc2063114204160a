"""MC-ViT: a video transformer whose layers attend to consolidated activations of all segments before.

frames -> tubelets with their place in space and time -> blocks that attend to the segment and to their memory -> one
vector for the segment; the memory then takes in a few tokens for it. What is known of the video is the mean of its
segments' vectors, weighted by their frames: the class token's output where there is one, else the mean of all outputs.
(The paper concatenates the outputs and does not say how one vector comes from them; this mean needs no more state when
the video gets longer.)

State: bounded for memories of kind ``last`` and ``global`` (per layer ``capacity`` tokens) and without memory;
``joint`` keeps all frames, ``ma`` and ``concat`` something of every segment, ``late`` all outputs, each up to
``memory.max_segments``.

Source: "Memory Consolidation Enables Long-Context Video Understanding", sections 3.1 to 3.3, appendices A to C;
docs/papers.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional

from longtake import hub
from longtake.errors import ConfigError, HorizonReached, StateError, UnsupportedRequest
from longtake.language.text_encoder import TextEncoder
from longtake.methods.baselines.late_fusion import LateFusion
from longtake.methods.baselines.memvit import MemoryPool
from longtake.methods.mcvit_config import MCViTConfig
from longtake.methods.mcvit_memory import keeper, mixed, remembered, visible
from longtake.state.consolidate import Memory, empty_memory
from longtake.types import Answer, Choose, Classify, Embed, Embedding, Label, Request, Response, Segment
from longtake.vision import VideoTransformer, places_in

MAX_SCALE = 100.0
"""Most that similarities are multiplied by."""
TEXTS_AT_ONCE = 256
"""Through the text tower, so that any number of labels takes no more memory than these."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MCViTState:
    """All that the future of a stream depends on."""

    memory: Memory
    mean: Float[Tensor, "batch dim"]
    """Mean of the segments' vectors since ``since_seconds``, weighted by their frames."""
    frames: tuple[UInt8[Tensor, "batch _ 3 height width"], ...] = ()
    """All frames, segment by segment (``joint`` only)."""
    outputs: tuple[Float[Tensor, "batch _ dim"], ...] = ()
    """All output tokens, segment by segment (``late`` only)."""
    seen_frames: int = 0
    seen_segments: int = 0
    total_frames: int = 0
    """Length of the video, told with its first segment; 0: not known, positions then repeat."""
    seed: int = 0
    seen_seconds: float = 0.0
    mean_frames: int = 0
    """Frames that ``mean`` is over: all that were seen, or those since ``begin_stretch``."""
    since_seconds: float = 0.0


class MCViT(nn.Module, hub.Published):
    """An MC-ViT model or one of its baselines; implements ``StreamModel``."""

    def __init__(self, config: MCViTConfig) -> None:
        super().__init__()
        self.config = config
        self.segment_spec = config.segment_spec
        encoder, memory = config.encoder, config.memory
        self.encoder = VideoTransformer(encoder)
        self.pools: nn.ModuleList | None = None
        if memory.variant == "memvit":
            self.pools = nn.ModuleList(MemoryPool(encoder.dim, memory.pool) for _ in range(encoder.num_layers))
        self.fusion: LateFusion | None = None
        if memory.variant == "late":
            self.fusion = LateFusion(
                dim=encoder.dim, num_heads=encoder.num_heads, mlp_dim=encoder.mlp_dim, queries=memory.queries
            )
        self.text = TextEncoder(config.text) if config.text else None
        if self.text:
            self.video_project = nn.Linear(encoder.dim, config.embed_dim, bias=False)
            self.text_project = nn.Linear(self.text.config.dim, config.embed_dim, bias=False)
            self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        elif config.labels:
            self.classifier = nn.Linear(encoder.dim, len(config.labels))

    @classmethod
    def from_config(cls, fields: dict[str, Any]) -> MCViT:
        """Build the model with random weights from ``MCViTConfig.to_dict()``."""
        return cls(MCViTConfig.from_dict(fields))

    @functools.cached_property
    def supports(self) -> frozenset[type[Request]]:
        """``Embed`` always; ``Classify`` if there are labels or words; ``Choose`` with a text tower."""
        if self.text:
            return frozenset({Embed, Classify, Choose})
        return frozenset({Embed, Classify} if self.config.labels else {Embed})

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of config and weights as they are when first asked for."""
        return hub.fingerprint(self)

    # --- the protocol

    def init_state(self, batch: int = 1, *, total_frames: int = 0, seed: int | None = None) -> MCViTState:
        """The state of ``batch`` streams of which nothing has been seen.

        Args:
            total_frames: Their length, if it is known; ``advance`` finds it out by itself.
            seed: Of all draws; None: the config's.
        """
        weight, config = self.encoder.norm.weight, self.config
        return MCViTState(
            memory=empty_memory(weight.new_zeros(config.encoder.num_layers, batch, 0, config.encoder.dim)),
            mean=weight.new_zeros(batch, config.encoder.dim),
            total_frames=total_frames,
            seed=config.memory.seed if seed is None else seed,
        )

    def max_state_bytes(self) -> int:
        """Most bytes of the state of one stream; for the variants that grow, after ``max_segments`` segments."""
        config, memory = self.config, self.config.memory
        token = config.encoder.dim * self.encoder.norm.weight.element_size()
        kept = config.capacity * (config.encoder.num_layers * token + 8)
        segment = 0
        if memory.variant == "joint":
            segment = config.num_frames * 3 * config.encoder.tubelet.size**2
        elif memory.variant == "late":
            segment = (config.tokens_per_segment + 1) * token
        return kept + memory.max_segments * segment + token

    def advance(self, state: MCViTState, segment: Segment) -> MCViTState:
        """Take in one segment of one stream.

        Raises:
            StateError: The state is not of this model, or the segment has more frames or another size than agreed.
            HorizonReached: The state grows with the stream and the stream has ``memory.max_segments`` segments.
        """
        self._check(state, segment)
        frames = segment.pixels.to(self.encoder.norm.weight.device, copy=True).unsqueeze(0)
        if not state.seen_frames and segment.total_seconds:
            total = math.ceil(segment.total_seconds * self.config.fps - 1e-6)
            state = replace(state, total_frames=max(total, frames.shape[1]))
        return replace(self.take_in(state, frames), seen_seconds=segment.end_seconds)

    @torch.no_grad()
    def respond(self, state: MCViTState, request: Request) -> Iterator[Response]:
        """Answer from what has been seen; nothing if that is nothing.

        Raises:
            UnsupportedRequest: As ``check``.
            ConfigError: As ``check``.
        """
        self.check(request)
        if not state.mean_frames:
            return iter(())
        vector = self.vector(state)
        if isinstance(request, Classify):
            return iter(self._classify(vector, request))
        if isinstance(request, Choose):
            return iter([self._choose(vector, request, state.seen_seconds)])
        vector = self.head(vector)[0] if self.text else vector[0]
        return iter([Embedding(vector=vector, start_seconds=state.since_seconds, end_seconds=state.seen_seconds)])

    def check(self, request: Request) -> None:
        """Find out before anything is seen whether ``respond`` will be able to answer.

        Raises:
            UnsupportedRequest: The request is of a kind that is not in ``supports``.
            ConfigError: Labels that the model cannot know, or none where it has none of its own; no options.
        """
        if type(request) not in self.supports:
            served = ", ".join(sorted(kind.__name__ for kind in self.supports))
            raise UnsupportedRequest(f"this MC-ViT model was sent {type(request).__name__}, it serves {served}")
        if isinstance(request, Choose) and not request.options:
            raise ConfigError("got no options, expected one or more to choose from")
        if isinstance(request, Classify):
            self._check_labels(request)

    def begin_stretch(self, state: MCViTState) -> MCViTState:
        """The same stream, of which nothing is told yet: its answers start anew here, its memory stays.

        Raises:
            UnsupportedRequest: The variant sees a video as a whole only.
        """
        if (variant := self.config.memory.variant) in ("joint", "late"):
            raise UnsupportedRequest(
                f"variant {variant!r} sees a video as a whole and has no vectors for stretches of it; "
                "ask once at its end, or choose another variant"
            )
        return replace(state, mean=torch.zeros_like(state.mean), mean_frames=0, since_seconds=state.seen_seconds)

    # --- the one path: what ``advance`` and training share

    def forward(
        self, frames: UInt8[Tensor, "batch time 3 height width"], *, seed: int | None = None
    ) -> Float[Tensor, "batch outputs"]:
        """Whole videos of one length to what losses are made of.

        Returns:
            Embeddings of length 1 with a text tower (see ``similarity``), scores of the classes without one; the
            video's vector if there are no classes either.
        """
        return self.head(self.watch(frames, seed=seed))

    def watch(
        self, frames: UInt8[Tensor, "batch time 3 height width"], *, seed: int | None = None
    ) -> Float[Tensor, "batch dim"]:
        """Whole videos of one length, segment after segment as ``advance`` takes them in, to their vectors.

        Gradients flow within segments and never through memory.
        """
        state = self.init_state(frames.shape[0], total_frames=frames.shape[1], seed=seed)
        for part in frames.split(self.config.num_frames, dim=1):
            state = self.take_in(state, part)
        return self.vector(state)

    def take_in(self, state: MCViTState, frames: UInt8[Tensor, "batch time 3 height width"]) -> MCViTState:
        """The state after one more segment of each stream. Raises HorizonReached as ``advance`` does."""
        memory, num_frames = self.config.memory, frames.shape[1]
        if memory.grows and state.seen_segments >= memory.max_segments:
            raise HorizonReached(
                f"the state of variant {memory.variant!r} grows with the stream and holds at most "
                f"{memory.max_segments} segments; set memory.max_segments, or a variant mc-* of kind last or global"
            )
        seen = replace(
            state,
            seen_frames=state.seen_frames + num_frames,
            seen_segments=state.seen_segments + 1,
            mean_frames=state.mean_frames + num_frames,
        )
        if memory.variant == "joint":
            return replace(seen, frames=(*state.frames, frames))
        seed = mixed(state.seed, state.seen_segments)
        places = self._places(state.seen_frames, num_frames, state.total_frames)
        outputs, kept = self.encoder(
            frames,
            places,
            memory=state.memory.tokens if state.memory.tokens.shape[2] else None,
            keep=keeper(self.config, self.pools, times=places.shape[0], seed=seed),
        )
        if self.fusion:
            return replace(seen, outputs=(*state.outputs, outputs))
        return replace(
            seen,
            memory=remembered(state.memory, kept, self.config, seed=seed) if kept else state.memory,
            mean=state.mean + (self._pooled(outputs) - state.mean) * (num_frames / seen.mean_frames),
        )

    def vector(self, state: MCViTState) -> Float[Tensor, "batch dim"]:
        """What is known of the video, before any head."""
        if self.fusion:
            return self.fusion(torch.cat(state.outputs, dim=1))
        if not state.frames:
            return state.mean
        frames = torch.cat(state.frames, dim=1)
        places = self._places(0, state.seen_frames, state.seen_frames)
        num_tokens = places.shape[0] * self.config.encoder.tubelet.space
        outputs, _ = self.encoder(frames, places, seen=visible(self.config.memory, num_tokens, seed=state.seed))
        return self._pooled(outputs)

    def head(self, vector: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch outputs"]:
        """The video's vector to what ``forward`` returns."""
        if self.text:
            return functional.normalize(self.video_project(vector), dim=-1)
        return self.classifier(vector) if self.config.labels else vector

    def embed_text(self, texts: Sequence[str]) -> Float[Tensor, "texts embed"]:
        """Texts to vectors of length 1 that videos are compared with. Raises ConfigError without a text tower."""
        if not self.text:
            raise ConfigError("this MC-ViT model has no text tower; it knows its own labels only")
        parts = [self.text(texts[at : at + TEXTS_AT_ONCE]) for at in range(0, len(texts), TEXTS_AT_ONCE)]
        return functional.normalize(self.text_project(torch.cat(parts)), dim=-1)

    def half_read(self, texts: Sequence[str]) -> list[str]:
        """Those texts of which the text tower does not know a word, or that are too long for it."""
        return [text for text in texts if self.text and not self.text.reads_whole(text)]

    def similarity(
        self, videos: Float[Tensor, "batch embed"], texts: Float[Tensor, "texts embed"]
    ) -> Float[Tensor, "batch texts"]:
        """The logits of equation 8: scalar products, times a learned scale."""
        return self.log_scale.exp().clamp(max=MAX_SCALE) * videos @ texts.T

    def label_scores(
        self, vector: Float[Tensor, "batch dim"], labels: Sequence[str], *, prompt: str | None = None
    ) -> Float[Tensor, "batch labels"]:
        """Logits over ``labels``: of the classes with a linear head, of their texts with a text tower.

        ``prompt`` takes the place of the config's.
        """
        if self.text:
            return self.similarity(self.head(vector), self.embed_text(self.label_texts(labels, prompt=prompt)))
        places = {label: place for place, label in enumerate(self.config.labels)}
        return self.head(vector)[:, [places[label] for label in labels]]

    def label_texts(self, labels: Sequence[str], *, prompt: str | None = None) -> list[str]:
        """What the text tower is given for each label."""
        return [(self.config.prompt if prompt is None else prompt).replace("{}", label) for label in labels]

    # --- answers and checks

    def _check_labels(self, request: Classify) -> None:
        if request.top < 1:
            raise ConfigError(f"top is {request.top}, expected 1 or more")
        if not (request.labels or self.config.labels):
            raise ConfigError("this MC-ViT model has no labels of its own; give some")
        if self.text:
            if request.prompt is not None and "{}" not in request.prompt:
                raise ConfigError(f"prompt is {request.prompt!r}, expected a text with {{}} in the label's place")
            return
        if request.prompt is not None:
            raise ConfigError("this MC-ViT model has no text tower, so a prompt changes nothing; leave it out")
        if unknown := [label for label in request.labels if label not in self.config.labels]:
            raise ConfigError(
                f"label {unknown[0]!r} is none of the {len(self.config.labels)} that this model was trained with, and "
                "it has no text tower; leave labels out to have its own"
            )

    def _classify(self, vector: Tensor, request: Classify) -> list[Label]:
        labels = request.labels or self.config.labels
        shares = self.label_scores(vector, labels, prompt=request.prompt)[0].double().softmax(-1)
        best = shares.argsort(descending=True, stable=True)[: request.top]
        return [Label(name=labels[place], probability=float(shares[place])) for place in best.tolist()]

    def _choose(self, vector: Tensor, request: Choose, at_seconds: float) -> Answer:
        """The option whose text, with the question before it, is nearest (section 3.3, evaluation)."""
        texts = self.embed_text(option_texts(request))
        shares = self.similarity(self.head(vector), texts)[0].double().softmax(-1)
        best = int(shares.argmax())
        return Answer(
            text=request.options[best], choice=best, probabilities=tuple(shares.tolist()), at_seconds=at_seconds
        )

    def _pooled(self, outputs: Tensor) -> Float[Tensor, "batch dim"]:
        return outputs[:, 0] if self.encoder.embed.class_token is not None else outputs.mean(1)

    def _places(self, first_frame: int, num_frames: int, total_frames: int) -> Float[Tensor, " times"]:
        return places_in(
            self.config.encoder.tubelet,
            first_frame=first_frame,
            num_frames=num_frames,
            total_frames=total_frames if self.config.positions == "stretch" else 0,
            device=self.encoder.norm.weight.device,
        )

    def _check(self, state: MCViTState, segment: Segment) -> None:
        size = self.config.encoder.tubelet.size
        if tuple(segment.pixels.shape[1:]) != (3, size, size) or segment.pixels.shape[0] > self.config.num_frames:
            raise StateError(
                f"segment {segment.index} has shape {tuple(segment.pixels.shape)}, expected at most "
                f"{self.config.num_frames} frames of {(3, size, size)}; cut it with this model's segment_spec"
            )
        layers, batch, _, dim = state.memory.tokens.shape
        if (layers, batch, dim) != (self.config.encoder.num_layers, 1, self.config.encoder.dim):
            raise StateError(
                f"state of {batch} streams, {layers} layers and width {dim}, expected 1 stream, "
                f"{self.config.encoder.num_layers} layers and {self.config.encoder.dim}; use this model's init_state"
            )


def option_texts(request: Choose) -> list[str]:
    """What the text tower is given for each option: the question stands before it."""
    return [f"{request.question} {option}".strip() for option in request.options]


def adapted(model: MCViT, config: MCViTConfig) -> MCViT:
    """A model of ``config`` with the weights of ``model`` wherever both have them; the rest is new.

    So any variant starts from the same encoder, and longer videos from its table of positions, stretched linearly along
    time (section 3.3, initialisation).

    Raises:
        ConfigError: A weight that both have differs in size.
    """
    other = MCViT(config).to(model.encoder.norm.weight)
    embed, known = model.encoder.embed, other.state_dict()
    weights = {name: weight for name, weight in model.state_dict().items() if name in known}
    frames = config.encoder.tubelet.position_frames
    with torch.no_grad():
        places = places_in(embed.config, first_frame=0, num_frames=frames, total_frames=frames)
        weights["encoder.embed.position"] = embed.positions_at(places.to(embed.position.device))
    for name, weight in weights.items():
        if weight.shape != known[name].shape:
            raise ConfigError(
                f"{name} has shape {tuple(weight.shape)}, the new config asks for {tuple(known[name].shape)}; "
                "only memory, heads and the length of the table of positions may differ"
            )
    other.load_state_dict(weights, strict=False)
    return other.train(model.training)


def parameter_counts(model: MCViT) -> dict[str, int]:
    """Parameters by part."""
    counts = {"vision": sum(p.numel() for p in model.encoder.parameters())}
    for name, part in {"text": model.text, "memory": model.pools, "fusion": model.fusion}.items():
        if part is not None:
            counts[name] = sum(p.numel() for p in part.parameters())
    return counts | {"total": sum(p.numel() for p in model.parameters())}
