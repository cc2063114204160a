"""StateKV: any frozen video VLM over a stream, at constant cost per frame.

frames -> the model's own vision tower and decoder, chunk by chunk, over the carried keys and values -> a bounded past
for the next chunk, and a detailed cache from which answers are read.

State: per layer and KV head at most ``budget`` carried keys and values, and all of them in the detailed cache, which
grows with the stream up to ``detailed_bytes``. A question reads it on a copy, whole or as far as it matters to the
question; the stream goes on undisturbed.

Source: docs/papers.md, StateKV.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from longtake.errors import ConfigError, StateError, UnsupportedRequest
from longtake.files import check_writable
from longtake.methods.statekv_answer import ROOM, Conversation
from longtake.methods.statekv_bounded import BoundedPast
from longtake.methods.statekv_caption import events_of
from longtake.methods.statekv_config import StateKVConfig
from longtake.methods.statekv_horizon import Horizon
from longtake.methods.statekv_prefill import Holding, KVState, Selection, empty_state, take_in, whole_past
from longtake.state.kv import rule_named
from longtake.state.pages import no_summary, settled, tier_named, until
from longtake.state.retrieval import RETRIEVALS, Retrieval, Turn
from longtake.types import Ask, Caption, Choose, Event, Request, Response, Segment, SegmentSpec
from longtake.vlm.cache import answer_cache
from longtake.vlm.decode import Sampling
from longtake.vlm.families.family import Chunk, Family
from longtake.vlm.horizon import positions_served, turner


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

    def __init__(
        self, family: Family, config: StateKVConfig, *, name: str = "", retrieval: Retrieval | None = None
    ) -> None:
        """A model ready for streams.

        Args:
            family: A loaded model and its prompts.
            config: How it is run.
            name: What the model was loaded by, for messages and fingerprints.
            retrieval: How bounded answers find their chunks, instead of what ``config.retrieve`` names.

        Raises:
            ConfigError: The family cannot do what the config says.
        """
        self.family, self.config, self.name = family, config, name
        self.retrieval = retrieval or RETRIEVALS[config.retrieve]
        if config.at_horizon == "compact" and family.places_from_start:
            raise ConfigError(
                f"{family.name} places frames by their distance to the first one, which compact would break; "
                "choose at_horizon 'stop' or 'reanchor'"
            )
        if config.at_horizon != "stop":
            self._turn  # noqa: B018 refuses a model whose keys cannot be turned
        self.segment_spec = SegmentSpec(
            num_frames=family.frames_per_chunk, fps=config.fps, height=family.height, width=family.width
        )
        rule = rule_named(config.policy, per_layer=config.select == "layer", num_sinks=config.sinks)
        self.selection = Selection(
            budget=config.budget, rule=rule, listens=config.policy == "statekv", per_query=config.per_query
        )

        if config.detailed_folder is not None:
            check_writable(Path(config.detailed_folder).expanduser() / "page.kv")  # hours before the first page is full
        self.holding = Holding(
            tier=tier_named(config.detailed, config.detailed_folder),
            limit_bytes=config.detailed_bytes,
            summarise=self.retrieval.summarise if config.answer == "bounded" else no_summary,
        )
        served = positions_served(family.text_config)
        self.horizon = Horizon(
            positions=served - min(served // 4, ROOM + config.max_new_tokens), at_end=config.at_horizon
        )

    @functools.cached_property
    def _turn(self) -> Turn:
        return turner(self.family.model)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of the model's weights and every choice that its states depend on."""
        digest = hashlib.sha256(json.dumps([self.config.of_states(), self.family.name], sort_keys=True).encode())
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
        return self.max_carried_bytes() + self.config.detailed_bytes

    def max_carried_bytes(self) -> int:
        """Bytes of what crosses from chunk to chunk, at most: all that a stream needs to go on."""
        family, config = self.family, self.config
        entries = family.num_layers * family.num_kv_heads
        per_key = entries * (2 * family.head_dim * family.dtype.itemsize + 16)
        least = entries * 2 * family.head_dim * (1 if config.detailed == "int8" else family.dtype.itemsize)
        keys = config.detailed_bytes // least if config.policy == "full" else config.budget
        last_frame = 3 * family.height * family.width
        return keys * per_key + last_frame

    def advance(self, state: StateKVState, segment: Segment) -> StateKVState:
        """Take in one segment: one chunk of frames.

        Raises:
            StateError: The state is not of this model.
            ConfigError: The frames have another size or number than agreed.
            CapacityError: The detailed cache is full; HorizonReached if it is the positions that are used up.
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

    def converse(
        self, state: StateKVState, sampling: Sampling | None = None, *, bounded: bool | None = None
    ) -> Conversation:
        """A conversation about what has been seen, on a copy of its own.

        Args:
            state: Stays as it is.
            sampling: How words are chosen; by default greedily.
            bounded: Whether to read only what matters to each question; by default as the config says.

        Raises:
            StateError: Nothing has been seen yet.
            ConfigError: Bounded answers need a state that was made for them.
        """
        if not state.num_chunks:
            raise StateError("nothing has been seen yet; take in at least one segment before asking")
        bounded = self.config.answer == "bounded" if bounded is None else bounded
        if bounded and self.config.answer != "bounded":
            raise ConfigError("this stream kept nothing to find chunks by; load the model with answer = 'bounded'")
        kv = state.kv
        turn = self._turn if kv.origin else _no_turn
        if bounded:
            # all keys are carried by the policy "full": they would be read anyway, and are found in the chunks
            past = BoundedPast(
                kv, self.retrieval, self.config.answer_chunks, turn, with_carried=self.config.policy != "full"
            )
            cache = past.cache(ROOM)
        else:
            cache = answer_cache(whole_past(kv, turn), ROOM)
        return Conversation(
            self.family,
            cache,
            position=state.position,
            origin=kv.origin,
            at_seconds=state.seen_seconds,
            sampling=sampling or Sampling(max_new_tokens=self.config.max_new_tokens),
        )

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
            StateError: That moment lies before the first segment's end or after the last one's, or beyond the horizon.
        """
        detailed = until(state.kv.detailed, at_seconds + 1e-6)
        pages = state.kv.detailed.all_pages()[:2]
        ends = [end for page in pages for end in page.end_seconds[:2]]
        opened = bool(pages) and not pages[0].first_place and self.family.preamble() is not None
        first = ends[min(int(opened), len(ends) - 1)] if ends else 0.0
        if not at_seconds + 1e-6 >= first:
            why = "before it nothing is held any more" if pages[0].first_place else "the first step is complete then"
            raise StateError(
                f"asked about {at_seconds:g} s, there is nothing to answer about before {first:g} s ({why}); "
                f"ask about {first:g} s or later"
            )
        if not at_seconds <= state.seen_seconds + 1e-6:
            raise StateError(
                f"asked about {at_seconds:g} s, this stream was seen to {state.seen_seconds:g} s; "
                "ask about that moment or an earlier one"
            )
        last = detailed.all_pages()[-1]
        kv = replace(state.kv, detailed=detailed)
        return replace(state, kv=kv, position=last.next_positions[-1], seen_seconds=last.end_seconds[-1])

    def settle(self, state: StateKVState) -> StateKVState:
        """A state that was loaded, with its pages where this model holds them.

        Raises:
            StateError: Pages that it refers to are gone or damaged.
        """
        return replace(state, kv=replace(state.kv, detailed=settled(state.kv.detailed, self.holding.tier)))

    def _take(self, state: StateKVState, chunk: Chunk, end_seconds: float) -> StateKVState:
        start, after = state.position, chunk.next_position
        before = self.horizon.room_for(
            state.kv, start, after, self._turn if self.config.at_horizon != "stop" else _no_turn
        )
        kv, _ = take_in(
            before,
            lambda cache: self.family.forward(chunk.seen_from(before.origin), cache),
            self.selection,
            holding=self.holding,
            start=start,
            next_position=after,
            end_seconds=end_seconds,
        )
        self.horizon.warn(kv, start, after)
        return replace(state, kv=kv, position=after)

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


def _no_turn(keys: Tensor, by: Tensor | int) -> Tensor:
    raise AssertionError("keys of a stream within its horizon lie where they were made")
