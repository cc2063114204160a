"""A BERT-style text tower: a sentence to one vector (MC-ViT, section 3.3)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn

from longtake.errors import CheckpointError, ConfigError

PAD_TOKEN, UNKNOWN_TOKEN, CLASS_TOKEN = "[PAD]", "[UNK]", "[CLS]"


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Sizes of the text tower and its words."""

    dim: int = 128
    num_layers: int = 3
    num_heads: int = 4
    mlp_dim: int = 512
    max_tokens: int = 64
    """Longest text; what is beyond it is cut off."""
    vocabulary: tuple[str, ...] = ()
    """Lower-case words and punctuation marks that are known (a closed vocabulary); empty: ``tokenizer`` is used."""
    tokenizer: str = ""
    """Hub id or folder of a ``tokenizers`` tokenizer, or the JSON text of one."""
    vocab_size: int = 0
    """Size of that tokenizer's vocabulary, so that the tower can be built before it is loaded."""

    def __post_init__(self) -> None:
        if self.dim % self.num_heads:
            raise ConfigError(f"text dim {self.dim} does not divide by num_heads {self.num_heads}")
        if not self.vocabulary and not (self.tokenizer and self.vocab_size):
            raise ConfigError("a text tower needs a vocabulary, or tokenizer and vocab_size")
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise ConfigError(f"text vocabulary of {len(self.vocabulary)} words has some of them twice")


class TextEncoder(nn.Module):
    """transformers' BERT; the first token's output stands for the text."""

    def __init__(self, config: TextConfig) -> None:
        from transformers import BertConfig, BertModel

        super().__init__()
        self.config = config
        bert = BertConfig(
            vocab_size=len(config.vocabulary) + 3 if config.vocabulary else config.vocab_size,
            hidden_size=config.dim,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            intermediate_size=config.mlp_dim,
            max_position_embeddings=config.max_tokens,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.bert = BertModel(bert, add_pooling_layer=False)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """Text to ids, cut off and padded."""
        config = self.config
        tokenizer = word_tokenizer(config.vocabulary) if config.vocabulary else _read_tokenizer(config.tokenizer)
        if tokenizer.get_vocab_size() > self.bert.config.vocab_size:
            raise ConfigError(
                f"tokenizer {config.tokenizer[:40]!r} has {tokenizer.get_vocab_size()} tokens, the text tower has room "
                f"for {self.bert.config.vocab_size}; set vocab_size"
            )
        tokenizer.enable_truncation(config.max_tokens)
        tokenizer.enable_padding(pad_id=tokenizer.token_to_id(PAD_TOKEN) or 0, pad_token=PAD_TOKEN)
        return tokenizer

    def reads_whole(self, text: str) -> bool:
        """Whether every word of the text is known, and none is cut off."""
        encoded = self.tokenizer.encode(text)
        unknown = self.tokenizer.token_to_id(UNKNOWN_TOKEN)
        return not encoded.overflowing and unknown not in encoded.ids

    def forward(self, texts: Sequence[str]) -> Float[Tensor, "texts dim"]:
        """One vector per text."""
        encoded = self.tokenizer.encode_batch(list(texts))
        device = self.bert.embeddings.word_embeddings.weight.device
        ids = torch.tensor([one.ids for one in encoded], device=device)
        visible = torch.tensor([one.attention_mask for one in encoded], device=device)
        return self.bert(input_ids=ids, attention_mask=visible).last_hidden_state[:, 0]


def word_tokenizer(words: Sequence[str]) -> Tokenizer:
    """A word-level tokenizer over a closed vocabulary: lower case, punctuation apart, a class token in front."""
    vocabulary = {word: index for index, word in enumerate((PAD_TOKEN, UNKNOWN_TOKEN, CLASS_TOKEN, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token=UNKNOWN_TOKEN))
    tokenizer.normalizer = normalizers.Lowercase()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.post_processor = processors.TemplateProcessing(  # pyright: ignore[reportAttributeAccessIssue]
        single=f"{CLASS_TOKEN} $A", special_tokens=[(CLASS_TOKEN, vocabulary[CLASS_TOKEN])]
    )
    return tokenizer


def pretrained_text_encoder(name: str) -> TextEncoder:
    """The tower with the weights and the tokenizer of a BERT by hub id or folder.

    Raises:
        CheckpointError: It cannot be found or read, or is no BERT.
    """
    from transformers import BertModel

    try:
        theirs, text = BertModel.from_pretrained(name, add_pooling_layer=False), _read_tokenizer(name)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"no BERT {name!r}: {' '.join(str(error).split())}") from error
    bert = theirs.config
    config = TextConfig(
        dim=bert.hidden_size,
        num_layers=bert.num_hidden_layers,
        num_heads=bert.num_attention_heads,
        mlp_dim=bert.intermediate_size,
        max_tokens=bert.max_position_embeddings,
        tokenizer=text.to_str(),
        vocab_size=bert.vocab_size,
    )
    encoder = TextEncoder(config)
    encoder.bert.load_state_dict(theirs.state_dict())
    return encoder


def _read_tokenizer(name: str) -> Tokenizer:
    if name.lstrip().startswith("{"):
        return Tokenizer.from_str(name)
    file = Path(name) / "tokenizer.json"
    return Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
