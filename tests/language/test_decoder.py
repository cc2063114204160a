"""The local decoder: what it says follows the grammar, and step by step equals all at once."""

from __future__ import annotations

import pytest
import torch

from longtake.errors import ConfigError
from longtake.language.decoder import CaptionDecoder, DecoderConfig, allowed_next
from longtake.language.tokenizer import EOS, EVENT, FIRST_TIME, PAD, CaptionTokenizer, TimedText

TOKENIZER = CaptionTokenizer.from_words(("a", "red", "car"), num_buckets=5)


@pytest.fixture
def decoder() -> CaptionDecoder:
    torch.manual_seed(0)
    config = DecoderConfig(dim=16, num_layers=2, num_heads=2, mlp_dim=32, max_tokens=30)
    decoder = CaptionDecoder(config, TOKENIZER.vocab_size, memory_dim=12).double().eval()
    torch.nn.init.normal_(decoder.stack.embed_tokens.weight, std=1.0)
    return decoder


def test_generate_matches_teacher_forcing(decoder: CaptionDecoder) -> None:
    memory = torch.randn(6, 7, 12, dtype=torch.float64)
    said = decoder.generate(memory, TOKENIZER, event_bias=3.0)
    assert any(said)
    for row, events in enumerate(said):
        ids = [PAD, *TOKENIZER.encode(events)[:-1]]  # without the end, which is missing where max_tokens cut it off
        with torch.no_grad():
            logits = decoder(memory[row : row + 1], torch.tensor([ids[:-1]]))[0]
        logits[:, EVENT] += 3.0
        for place in range(len(ids) - 1):
            allowed = allowed_next(torch.tensor([ids[: place + 1]]), TOKENIZER)[0]
            assert logits[place].masked_fill(~allowed, float("-inf")).argmax() == ids[place + 1]


def test_prefix_is_read_and_not_said_again(decoder: CaptionDecoder) -> None:
    memory = torch.randn(1, 7, 12, dtype=torch.float64)
    told = [TimedText(start_bucket=0, end_bucket=2, text="red car"), TimedText(start_bucket=1, end_bucket=1, text="a")]
    prefix = TOKENIZER.encode(told)
    said = decoder.generate(memory, TOKENIZER, event_bias=3.0, prefix=torch.tensor([prefix]))[0]
    assert said
    ids = [PAD, *prefix, *TOKENIZER.encode(said)[:-1]]
    with torch.no_grad():
        logits = decoder(memory, torch.tensor([ids[:-1]]))[0]
    logits[:, EVENT] += 3.0
    for place in range(len(prefix), len(ids) - 1):
        allowed = allowed_next(torch.tensor([ids[: place + 1]]), TOKENIZER)[0]
        assert logits[place].masked_fill(~allowed, float("-inf")).argmax() == ids[place + 1]
    nothing = torch.zeros(1, 0, dtype=torch.long)
    assert decoder.generate(memory, TOKENIZER, event_bias=3.0, prefix=nothing) == decoder.generate(
        memory, TOKENIZER, event_bias=3.0
    )


def test_rows_do_not_influence_each_other(decoder: CaptionDecoder) -> None:
    memory = torch.randn(5, 7, 12, dtype=torch.float64)
    together = decoder.generate(memory, TOKENIZER, event_bias=3.0)
    alone = [decoder.generate(memory[row : row + 1], TOKENIZER, event_bias=3.0)[0] for row in range(5)]
    assert [[(e.start_bucket, e.end_bucket, e.text) for e in row] for row in together] == [
        [(e.start_bucket, e.end_bucket, e.text) for e in row] for row in alone
    ]


def test_hidden_memory_is_not_read(decoder: CaptionDecoder) -> None:
    memory = torch.randn(2, 7, 12, dtype=torch.float64)
    visible = torch.ones(2, 7, dtype=torch.bool)
    visible[:, :3] = False
    ids = torch.tensor([[PAD, EVENT], [PAD, EVENT]])
    changed = memory.clone()
    changed[:, :3] += 5.0
    with torch.no_grad():
        torch.testing.assert_close(decoder(memory, ids, visible), decoder(changed, ids, visible))


def test_grammar_lets_an_event_be_two_times_in_order_and_words() -> None:
    start, word = FIRST_TIME + 2, TOKENIZER.first_word + 1

    def after(*ids: int) -> set[int]:
        return set(allowed_next(torch.tensor([[PAD, *ids]]), TOKENIZER)[0].nonzero().flatten().tolist())

    words = set(range(TOKENIZER.first_word + 1, TOKENIZER.vocab_size))
    assert after() == {EVENT, EOS}
    assert after(EVENT) == set(range(FIRST_TIME, FIRST_TIME + 5))
    assert after(EVENT, start) == {FIRST_TIME + 2, FIRST_TIME + 3, FIRST_TIME + 4}
    assert after(EVENT, start, start + 1) == words
    assert after(EVENT, start, start + 1, word) == words | {EVENT, EOS}


def test_decoder_config_is_refused_when_heads_do_not_divide() -> None:
    with pytest.raises(ConfigError, match="does not divide"):
        DecoderConfig(dim=10, num_heads=4)
