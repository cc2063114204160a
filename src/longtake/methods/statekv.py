"""StateKV: any frozen video VLM over a stream, at constant cost per frame.

frames -> the model's own vision tower and decoder, chunk by chunk, over the carried keys and values -> a bounded past
for the next chunk, and a detailed cache from which answers are read.

State: per layer and KV head at most ``budget`` carried keys and values, and all of them in the detailed cache. A
question reads the detailed cache on a copy; the stream goes on undisturbed.

Source: docs/papers.md, StateKV.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import torch
from jaxtyping import UInt8
from torch import Tensor

from longtake.errors import CapacityError, StateError, UnsupportedRequest
from longtake.methods.statekv_answer import Conversation
from longtake.methods.statekv_caption import events_of
from longtake.methods.statekv_config import StateKVConfig
from longtake.methods.statekv_prefill import KVState, Selection, empty_state, take_in
from longtake.state.kv import rule_named
from longtake.types import Ask, Caption, Choose, Event, Request, Response, Segment, SegmentSpec
from longtake.vlm.decode import Sampling
from longtake.vlm.families.family import Chunk, Family


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateKVState:
    """All that the future of a stream depends on."""

    kv: KVState
    position: int = 0
    """Where the next chunk's positions begin."""
    num_chunks: int = 0
    """Chunks of frames so far."""
    last_frame: UInt8[Tensor, "3 height width"] | None = None
    """For families whose chunks depend on the frame before."""
    spoken_seconds: float = 0.0
    """The last decoding point before the last segment: captions tell what happened since."""
    seen_seconds: float = 0.0


class StateKV:
    """A frozen model as a ``StreamModel``."""

    supports: frozenset[type[Request]] = frozenset({Ask, Choose, Caption})
    fps_range = (1 / 60, 60.0)

    def __init__(self, family: Family, config: StateKVConfig, *, name: str = "") -> None:
        """``name`` is what the model was loaded by, for messages and fingerprints."""
        self.family, self.config, self.name = family, config, name
        self.segment_spec = SegmentSpec(
            num_frames=family.frames_per_chunk, fps=config.fps, height=family.height, width=family.width
        )
        rule = rule_named(config.policy, per_layer=config.select == "layer", num_sinks=config.sinks)
        self.selection = Selection(
            budget=config.budget, rule=rule, listens=config.policy == "statekv", per_query=config.per_query
        )

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of the model's weights and every choice that its states depend on."""
        digest = hashlib.sha256(json.dumps([asdict(self.config), self.family.name], sort_keys=True).encode())
        for name, tensor in sorted(self.family.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    # --- the protocol

    def init_state(self) -> StateKVState:
        """A stream of which nothing has been seen."""
        family = self.family
        kv = empty_state(
            family.num_layers, family.num_kv_heads, family.head_dim, dtype=family.dtype, device=family.device
        )
        return StateKVState(kv=kv)

    def max_state_bytes(self) -> int:
        """Bytes of the carried part at most, and of the detailed cache as far as the config lets it grow."""
        family = self.family
        per_key = family.num_layers * family.num_kv_heads * (2 * family.head_dim * family.dtype.itemsize + 8)
        last_frame = 3 * family.height * family.width
        if self.config.policy == "full":
            return 2 * self.config.detailed_bytes + last_frame
        return self.config.budget * per_key + self.config.detailed_bytes + last_frame

    def advance(self, state: StateKVState, segment: Segment) -> StateKVState:
        """Take in one segment: one chunk of frames.

        Raises:
            StateError: The state is not of this model.
            ConfigError: The frames have another size or number than agreed.
            CapacityError: The detailed cache is full.
        """
        self._check(state)
        if not state.num_chunks and (preamble := self.family.preamble()):
            state = self._take(state, preamble, segment.start_seconds)
        chunk = self.family.frames(
            segment.pixels.to(self.family.device),
            segment.pts_seconds,
            index=state.num_chunks,
            position=state.position,
            before=state.last_frame,
        )
        state = self._take(state, chunk, segment.end_seconds)
        return replace(
            state,
            num_chunks=state.num_chunks + 1,
            last_frame=segment.pixels[-1].clone() if self.family.needs_frame_before else None,
            spoken_seconds=max(state.spoken_seconds, self._decoding_point(state.seen_seconds)),
            seen_seconds=segment.end_seconds,
        )

    def respond(self, state: StateKVState, request: Request) -> Iterator[Response]:
        """Answer on a copy of the detailed cache.

        Raises:
            UnsupportedRequest: For what is neither ``Ask``, ``Choose`` nor ``Caption``.
            StateError: Nothing has been seen yet.
        """
        self._check(state)
        if isinstance(request, Ask):
            return iter([self.converse(state).answer(request.question)])
        if isinstance(request, Choose):
            return iter([self.converse(state).choose(request.question, request.options)])
        if isinstance(request, Caption):
            return iter(self._caption(state))
        raise UnsupportedRequest(
            f"a StateKV model was sent {type(request).__name__}, it serves Ask, Choose and Caption; "
            "use an MC-ViT model for labels and embeddings"
        )

    # --- beyond the protocol

    def converse(self, state: StateKVState, sampling: Sampling | None = None) -> Conversation:
        """A conversation about what has been seen, on a copy of its own."""
        if not state.num_chunks:
            raise StateError("nothing has been seen yet; take in at least one segment before asking")
        sampling = sampling or Sampling(max_new_tokens=self.config.max_new_tokens)
        return Conversation(self.family, state.kv, state.position, state.seen_seconds, sampling)

    def last_words(self, state: StateKVState) -> tuple[StateKVState, list[Event]]:
        """The stream has ended: what happened since the last decoding point, and the state in which that is told."""
        self._check(state)
        # what a decoding point within the last segment has told is told
        start = max(state.spoken_seconds, self._decoding_point(state.seen_seconds))
        if not state.num_chunks or state.seen_seconds <= start:
            return state, []
        events = self._tell(state, start, state.seen_seconds)
        return replace(state, spoken_seconds=state.seen_seconds), events

    def as_of(self, state: StateKVState, at_seconds: float) -> StateKVState:
        """The state as answers would have read it at that moment: what was seen later is left out.

        The detailed cache tells it exactly. The carried part does not go back, so this state answers and cannot go on.

        Raises:
            StateError: That moment lies before the first segment's end or after the last one's.
        """
        blocks = state.kv.detailed
        ends = [block.end_seconds for block in blocks]
        count = bisect.bisect_right(ends, at_seconds + 1e-6)
        first = ends[1] if len(ends) > 1 and self.family.preamble() else ends[0] if ends else 0.0
        if not first <= at_seconds + 1e-6 <= state.seen_seconds + 2e-6:
            raise StateError(
                f"asked about {at_seconds:g} s, this stream was seen from {first:g} to {state.seen_seconds:g} s; "
                "choose a moment in between"
            )
        kv = replace(state.kv, detailed=blocks[:count])
        return replace(state, kv=kv, position=blocks[count - 1].next_position, seen_seconds=ends[count - 1])

    def _take(self, state: StateKVState, chunk: Chunk, end_seconds: float) -> StateKVState:
        kv, _ = take_in(
            state.kv,
            lambda cache: self.family.forward(chunk, cache),
            self.selection,
            end_seconds=end_seconds,
            next_position=chunk.next_position,
        )
        size = sum(block.keys.nbytes + block.values.nbytes for block in kv.detailed[-1:]) * len(kv.detailed)
        if size > self.config.detailed_bytes:
            raise CapacityError(
                f"the detailed cache would take about {size / 1e6:.0f} MB after {end_seconds:g} s, the limit is "
                f"{self.config.detailed_bytes / 1e6:.0f} MB; raise detailed_bytes or lower fps"
            )
        return replace(state, kv=kv, position=chunk.next_position)

    def _decoding_point(self, seconds: float) -> float:
        return seconds // self.config.caption_seconds * self.config.caption_seconds

    def _caption(self, state: StateKVState) -> list[Event]:
        """At a decoding point: what happened since the one before, with times from our clock."""
        point = self._decoding_point(state.seen_seconds)
        if point <= state.spoken_seconds or not state.num_chunks:
            return []
        return self._tell(state, state.spoken_seconds, point)

    def _tell(self, state: StateKVState, start_seconds: float, end_seconds: float) -> list[Event]:
        question = self.config.caption_question.format(start=f"{start_seconds:.1f}", end=f"{end_seconds:.1f}")
        return events_of(self.converse(state).answer(question), start_seconds, end_seconds)

    def _check(self, state: StateKVState) -> None:
        family, keys = self.family, state.kv.carried.keys
        expected = (family.num_layers, family.num_kv_heads, family.head_dim)
        if (keys.shape[0], keys.shape[1], keys.shape[3]) != expected:
            raise StateError(
                f"state of {keys.shape[0]} layers, {keys.shape[1]} KV heads and head size {keys.shape[3]}, expected "
                f"{expected[0]}, {expected[1]} and {expected[2]}; use this model's init_state"
            )
