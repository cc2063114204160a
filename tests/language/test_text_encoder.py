"""The text tower: words to ids, and one vector per text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from longtake.errors import CheckpointError, ConfigError
from longtake.language.text_encoder import TextConfig, TextEncoder, pretrained_text_encoder, word_tokenizer

WORDS = ("red", "car", "jumps", "?")
CONFIG = TextConfig(dim=8, num_layers=1, num_heads=2, mlp_dim=16, max_tokens=5, vocabulary=WORDS)


def test_words_are_known_whatever_their_case_and_punctuation() -> None:
    tokenizer = word_tokenizer(WORDS)
    assert tokenizer.encode("Red car?").tokens == ["[CLS]", "red", "car", "?"]
    assert tokenizer.encode("blue car").tokens == ["[CLS]", "[UNK]", "car"]


@torch.no_grad()
def test_text_does_not_depend_on_its_neighbours_and_is_cut_off() -> None:
    encoder = TextEncoder(CONFIG).double().eval()
    alone, both = encoder(["red"]), encoder(["red", "red car jumps ?"])
    torch.testing.assert_close(both[:1], alone, rtol=1e-12, atol=1e-12)
    long = encoder(["red car jumps ?", "red car jumps ? red red red"])
    assert torch.equal(long[0], long[1])


@torch.no_grad()
def test_named_bert_gives_its_first_token(tmp_path: Path) -> None:
    """The folder of a real BERT class with random weights."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    bert = BertModel(BertConfig(vocab_size=7, max_position_embeddings=6, **sizes), add_pooling_layer=False).eval()
    bert.save_pretrained(tmp_path)
    word_tokenizer(WORDS).save(str(tmp_path / "tokenizer.json"))
    encoder = pretrained_text_encoder(str(tmp_path)).eval()
    expected = bert(input_ids=torch.tensor([[2, 3, 4]])).last_hidden_state[:, 0]
    torch.testing.assert_close(encoder(["red car"]), expected, rtol=1e-5, atol=1e-5)
    again = TextEncoder(encoder.config)
    again.load_state_dict(encoder.state_dict())


def test_text_towers_that_cannot_work_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a vocabulary"):
        TextConfig()
    with pytest.raises(ConfigError, match="twice"):
        TextConfig(vocabulary=("red", "red"))
    with pytest.raises(ConfigError, match="does not divide"):
        TextConfig(dim=6, vocabulary=WORDS)
    too_large = TextEncoder(TextConfig(tokenizer=word_tokenizer(WORDS).to_str(), vocab_size=3))
    with pytest.raises(ConfigError, match="set vocab_size"):
        too_large(["red"])
    with pytest.raises(CheckpointError, match="no BERT"):
        pretrained_text_encoder(str(tmp_path / "nothing"))
