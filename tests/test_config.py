"""Recipes: nothing unknown is accepted, errors are one line that helps, and plain values give the config back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.config import apply_overrides, from_dict, load_recipe, suggest, to_dict
from longtake.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Model:
    budget_tokens: int = 64
    rate: float = 0.5
    kind: Literal["small", "large"] = "small"
    words: tuple[str, ...] = ()
    size: tuple[int, int] = (4, 4)
    limit: int | None = None
    scale: float | int = 1
    extra: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.budget_tokens < 1:
            raise ConfigError(f"budget_tokens is {self.budget_tokens}, expected 1 or more")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    name: str
    output: Path = Path("runs")
    quick: bool = False
    model: Model = field(default_factory=Model)
    parts: tuple[Model, ...] = ()


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_recipe_reads_nested_tables(tmp_path: Path) -> None:
    path = write(
        tmp_path, 'name = "a"\n[model]\nbudget_tokens = 7\nrate = 1\nwords = ["x", "y"]\n[[parts]]\nlimit = 3\n'
    )
    recipe = load_recipe(path, Recipe)
    assert recipe.model == Model(budget_tokens=7, rate=1.0, words=("x", "y"))
    assert type(recipe.model.rate) is float
    assert recipe.parts == (Model(limit=3),)


def test_override_replaces_a_nested_value(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "a"\n[model]\nbudget_tokens = 7\n')
    overrides = ["model.budget_tokens=9", "model.kind=large", 'output="x y"', "quick=true", "model.words=['p', 'q']"]
    recipe = load_recipe(path, Recipe, overrides)
    assert (recipe.model.budget_tokens, recipe.model.kind, recipe.output) == (9, "large", Path("x y"))
    assert recipe.quick is True
    assert recipe.model.words == ("p", "q")


def test_override_leaves_its_input_alone() -> None:
    tables = {"model": {"rate": 1.0}}
    assert apply_overrides(tables, ["model.rate=2.0", "new.deep.key=1"]) == {
        "model": {"rate": 2.0},
        "new": {"deep": {"key": 1}},
    }
    assert tables == {"model": {"rate": 1.0}}


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        ('nmae = "a"', [], ["unknown key 'nmae'", "did you mean 'name'"]),
        ('name = "a"\n[model]\nbudget_token = 3', [], ["model: unknown key 'budget_token'", "'budget_tokens'"]),
        ('name = "a"\n[model]\nzzz = 3', [], ["expected one of budget_tokens,"]),
        ("quick = true", [], ["name is missing, expected str"]),
        ("name = 3", [], ["name is 3 (int), expected str"]),
        ('name = "a"\nquick = 1', [], ["quick is 1 (int), expected bool"]),
        ('name = "a"\n[model]\nbudget_tokens = true', [], ["budget_tokens is true (bool), expected int"]),
        ('name = "a"\n[model]\nbudget_tokens = 1.5', [], ["budget_tokens is 1.5 (float), expected int"]),
        ('name = "a"\n[model]\nlimit = "x"', [], ['limit is "x" (str), expected int']),
        ('name = "a"\n[model]\nscale = "x"', [], ['scale is "x" (str), expected float or int']),
        ('name = "a"\n[model]\nkind = "larg"', [], ["kind is", "did you mean 'large'"]),
        ('name = "a"\n[model]\nkind = 3', [], ["kind is 3 (int)", "one of small, large"]),
        ('name = "a"\n[model]\nsize = [1, 2, 3]', [], ["size has 3 values"]),
        ('name = "a"\n[model]\nwords = ["x", 3]', [], ["words[1] is 3 (int), expected str"]),
        ('name = "a"\n[model]\nwords = "x"', [], ["words is", "expected tuple[str, ...]"]),
        ('name = "a"\n[model.extra]\nx = "y"', [], ["model: extra.x is", "expected float"]),
        ('name = "a"\nmodel = 3', [], ["model is 3 (int), expected a table of budget_tokens,"]),
        ('name = "a"\n[model]\nbudget_tokens = 0', [], ["budget_tokens is 0, expected 1 or more"]),
        ('name = "a', [], ["is not TOML", "Unterminated string"]),
        ('name = "a"', ["model.budget_tokens"], ["expected key=value"]),
        ('name = "a"', ["=3"], ["expected key=value"]),
        ('name = "a"', ["rate=1", "rate=2"], ["rate is given twice, last as '2'"]),
        ('name = "a"', ["name.deeper=3"], ["name is a value, not a table"]),
        ('name = "a"', ["model.rat=3"], ["did you mean 'rate'"]),
    ],
)
def test_wrong_recipe_is_refused_in_one_line(tmp_path: Path, text: str, overrides: list[str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(write(tmp_path, text), Recipe, overrides)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_missing_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_recipe(tmp_path / "none.toml", Recipe)


def test_binary_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not TOML"):
        load_recipe(tmp_path / "recipe.toml", Recipe)


def test_to_dict_refuses_what_is_no_config() -> None:
    with pytest.raises(ConfigError, match="got int, expected a config dataclass"):
        to_dict(3)


def test_suggestion_lists_all_when_nothing_is_near() -> None:
    assert suggest("qqq", ["b", "a"]) == "expected one of a, b"
    assert suggest("budgt", ["budget", "rate"]) == "did you mean 'budget'?"
    assert suggest("x", []) == "nothing is known here"


models = st.builds(
    Model,
    budget_tokens=st.integers(1, 10**6),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    kind=st.sampled_from(["small", "large"]),
    words=st.lists(st.text()).map(tuple),
    size=st.tuples(st.integers(), st.integers()),
    limit=st.none() | st.integers(),
    scale=st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    extra=st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)


@given(
    st.builds(
        Recipe,
        name=st.text(),
        output=st.text("abc/", min_size=1).map(Path),
        quick=st.booleans(),
        model=models,
        parts=st.lists(models, max_size=3).map(tuple),
    )
)
def test_plain_values_give_the_config_back(recipe: Recipe) -> None:
    plain: dict[str, Any] = json.loads(json.dumps(to_dict(recipe)))
    again = from_dict(Recipe, plain)
    assert again == recipe
    assert type(again.model.scale) is type(recipe.model.scale)
