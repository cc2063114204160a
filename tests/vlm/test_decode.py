"""Words as they become certain: whatever the pieces, together they are the answer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.vlm.decode import REPEATS, Piece, Sampling, certain_length, chooser, say

END = 0


class Bytes:
    """A tokenizer whose token n is the byte n."""

    def decode(self, tokens: list[int], **_: object) -> str:
        return bytes(tokens).decode("utf-8", errors="replace")


def logits_of(token: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor(token), 256).float()


def pieces(text: str, sampling: Sampling) -> list[Piece]:
    rest = iter([*text.encode(), END])
    return list(say(logits_of(next(rest)), lambda _: logits_of(next(rest)), Bytes(), [END], sampling))


@given(st.text(alphabet="abcé猫🚗 ", min_size=1, max_size=40))
def test_pieces_together_are_the_text_and_no_character_is_ever_half(text: str) -> None:
    said = pieces(text, Sampling(max_new_tokens=1000))
    if said[-1].finish == "stop":
        assert "".join(piece.text for piece in said) == text
    assert not any("\ufffd" in piece.text for piece in said)


@given(st.text(alphabet="ab.", max_size=30), st.sampled_from([("ab",), ("..", "ba"), ("abab.",)]))
def test_answer_ends_before_the_first_stop_string(text: str, stops: tuple[str, ...]) -> None:
    said = pieces(text, Sampling(max_new_tokens=1000, stop=stops))
    if said[-1].finish == "stop":
        first = min((at for at in (text.find(stop) for stop in stops) if at >= 0), default=len(text))
        assert "".join(piece.text for piece in said) == text[:first]


def test_length_and_repeats_are_told() -> None:
    assert pieces("hello there", Sampling(max_new_tokens=5))[-1].finish == "length"
    said = pieces("ok " + "no " * 50, Sampling())
    assert said[-1].finish == "repeats"
    assert said[-1].num_tokens == 2 + 3 * REPEATS


@pytest.mark.parametrize(("text", "stop", "length"), [("abc", "cd", 2), ("abc", "xyz", 3), ("ab\ufffd", "x", 2)])
def test_what_may_still_change_is_held_back(text: str, stop: str, length: int) -> None:
    assert certain_length(text, [stop]) == length


def test_sampling_is_the_same_for_a_seed_and_honours_its_limits() -> None:
    logits = torch.linspace(0, 3, 50)

    def draw(sampling: Sampling) -> list[int]:
        choose = chooser(sampling)
        return [choose([], logits) for _ in range(40)]

    assert draw(Sampling(temperature=1.0, seed=1)) == draw(Sampling(temperature=1.0, seed=1))
    assert draw(Sampling(temperature=1.0, seed=1)) != draw(Sampling(temperature=1.0, seed=2))
    assert set(draw(Sampling(temperature=5.0, top_k=3))) == {47, 48, 49}
    assert set(draw(Sampling())) == {49}
    assert chooser(Sampling(repetition_penalty=50.0))([49], logits) == 48


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_new_tokens": 0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_k": -1},
        {"repetition_penalty": 0.0},
        {"stop": ("",)},
    ],
)
def test_sampling_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Sampling(**wrong)  # type: ignore[arg-type]
