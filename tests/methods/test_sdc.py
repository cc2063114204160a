"""Streaming DVC as a model: what it remembers, what it says again to itself, its sizes, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.methods.test_sts import cut, film

from longtake.errors import ConfigError, StateError, UnsupportedRequest
from longtake.language.tokenizer import TimedText
from longtake.methods.baselines.sdc import SDC, SDCState, parameter_counts, restated
from longtake.methods.baselines.sdc_config import ClusterConfig, SDCConfig, sdc_large
from longtake.methods.sts import STS
from longtake.methods.sts import parameter_counts as sts_parameter_counts
from longtake.methods.sts_config import TimeConfig, sts_large
from longtake.state.tree import num_bytes
from longtake.types import Ask, Segment

TINY = SDCConfig.tiny()


def build(config: SDCConfig = TINY) -> SDC:
    torch.manual_seed(0)
    return SDC(config).double().eval()


def run(model: SDC, segments: list[Segment]) -> list[SDCState]:
    """The state after each segment."""
    states = [model.init_state()]
    with torch.no_grad():
        for segment in segments:
            states.append(model.advance(states[-1], segment))
    return states[1:]


def caption(start: int, end: int, text: str) -> TimedText:
    return TimedText(start_bucket=start, end_bucket=end, text=text)


@pytest.mark.parametrize("sizes", [[1] * 12, [3, 1, 4, 2, 2], [4, 4, 3, 1]])
def test_memory_does_not_depend_on_the_cuts(sizes: list[int]) -> None:
    model = build()
    whole, pieces = (run(model, cut(film(12), lengths))[-1].memory for lengths in ([4, 4, 4], sizes))
    for name in ("tokens", "weights", "places"):
        torch.testing.assert_close(getattr(whole, name), getattr(pieces, name), rtol=1e-10, atol=1e-10)


def test_memory_stands_for_all_tokens_and_never_holds_more_than_its_size() -> None:
    model = build()
    for number, state in enumerate(run(model, cut(film(40), [4] * 10)), 1):
        assert state.memory.tokens.shape[1] == min(number * 4 * TINY.bottleneck.num_tokens, TINY.memory.size)
        assert float(state.memory.weights.sum()) == number * 4 * TINY.bottleneck.num_tokens
        assert num_bytes(state) <= model.max_state_bytes()


def test_places_are_the_buckets_that_the_decoder_would_say() -> None:
    roomy = replace(TINY, memory=ClusterConfig(size=99))
    last = TINY.time.num_buckets - 1
    (state,) = run(build(roomy), cut(film(4), [4]))
    assert state.memory.places[0].tolist() == [float(last - back) for back in (4, 3, 2, 1) for _ in range(3)]
    shares = replace(roomy, time=TimeConfig(encoding="video", num_buckets=32))
    (state,) = run(build(shares), cut(film(4), [4], total_seconds=2.0))
    assert state.memory.places[0].tolist() == pytest.approx(
        [31 * t / 2 for t in (0, 0.25, 0.5, 0.75) for _ in range(3)]
    )


def test_what_the_decoder_reads_has_its_place_between_two_buckets() -> None:
    model = build()
    memory = run(model, cut(film(8), [4, 4]))[-1].memory
    shown = model.show(memory) - memory.tokens
    lower, table = memory.places.floor().long(), model.time_position
    share = (memory.places - lower).unsqueeze(-1)
    torch.testing.assert_close(shown, (1 - share) * table[lower] + share * table[lower + 1])
    at_the_end = replace(memory, places=torch.full_like(memory.places, len(table) - 1))
    torch.testing.assert_close(model.show(at_the_end) - memory.tokens, table[-1].expand_as(shown))


def test_earlier_captions_are_read_before_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, given = build(), []

    def generate(*_: object, prefix: torch.Tensor, **__: object) -> list[list[TimedText]]:
        given.append(prefix[0].tolist())
        return [[caption(12, 16, "a red car enters")]] if len(given) == 1 else [[]]

    monkeypatch.setattr(model.decoder, "generate", generate)
    run(model, cut(film(12), [4, 4, 4]))
    encode = model.tokenizer.encode
    later = [caption(8, 12, "a red car enters"), caption(4, 8, "a red car enters")]
    assert given == [[], encode(later[:1]), encode(later[1:])]


def test_past_is_that_of_the_newest_captions_that_fit() -> None:
    model = build()
    past: tuple[TimedText, ...] = ()
    for number in range(9):
        past = model.prefix(past, [caption(10, 12 + number % 4, "a red car")], 2)
    assert len(model.prefix_ids(past)) <= TINY.prefix_tokens < len(model.prefix_ids((*past, past[0])))
    assert [item.end_bucket for item in past] == [(12 + n % 4) - 2 * (9 - n) for n in range(9)][-len(past) :]
    assert build(replace(TINY, prefix_tokens=0)).prefix((), [caption(0, 1, "car")], 2) == ()


def test_captions_are_restated_as_of_a_later_border() -> None:
    said = caption(3, 9, "car")
    assert restated(said, TimeConfig(num_buckets=17), 4) == caption(0, 5, "car")
    assert restated(said, TimeConfig(encoding="video", num_buckets=32), 4) == said


def test_video_encoding_needs_a_length() -> None:
    model = build(replace(TINY, time=TimeConfig(encoding="video", num_buckets=32)))
    with pytest.raises(ConfigError, match="parts of the video's length"):
        model.advance(model.init_state(), cut(film(4), [4])[0])


def test_state_of_two_streams_is_refused() -> None:
    model = build()
    with pytest.raises(StateError, match="state of 2 streams"):
        model.advance(model.init_state(batch=2), cut(film(4), [4])[0])


def test_other_requests_are_refused() -> None:
    model = build()
    with pytest.raises(UnsupportedRequest, match="serves Caption only"):
        model.respond(model.init_state(), Ask(question="why?"))


@pytest.mark.parametrize("fields", [{"size": 0}, {"iterations": 0}, {"place_weight": -1.0}])
def test_a_memory_that_makes_no_sense_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="memory"):
        ClusterConfig(**fields)


def test_large_preset_has_the_encoder_and_the_decoder_of_sts() -> None:
    with torch.device("meta"):
        ours, theirs = parameter_counts(SDC(sdc_large())), sts_parameter_counts(STS(sts_large()))
    assert (ours["vision"], ours["decoder"]) == (theirs["vision"], theirs["decoder"])
    assert sdc_large().memory.size == 2 * 485


def test_config_round_trips() -> None:
    for config in (TINY, sdc_large()):
        assert SDCConfig.from_dict(config.to_dict()) == config


def test_save_pretrained_and_from_pretrained_give_the_model_back(tmp_path: Path) -> None:
    model = SDC(TINY)
    model.save_pretrained(tmp_path / "model")
    assert SDC.from_pretrained(tmp_path / "model").fingerprint == model.fingerprint
