"""Recipes and configs: TOML into frozen dataclasses, ``--set a.b=value`` on top, and back into plain values.

Each component's config is a dataclass in the component's own file; here is only what they share. Nothing is accepted in
silence: an unknown key fails and names the nearest one, a value of another type fails and says which was expected.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from longtake.errors import ConfigError

ConfigT = TypeVar("ConfigT")


def load_recipe(path: str | Path, recipe_type: type[ConfigT], overrides: Iterable[str] = ()) -> ConfigT:
    """Read a TOML recipe into ``recipe_type``, with ``a.b=value`` overrides on top.

    Raises:
        ConfigError: The file is missing or is not TOML, a key is unknown, a value has another type.
    """
    return from_dict(recipe_type, apply_overrides(read_toml(path), overrides), where=Path(path).name)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises ConfigError if it is missing or damaged."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"recipe {path}: {error.strerror or error}; expected a readable TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe {path} is not TOML: {error}") from error


def apply_overrides(tables: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A copy of ``tables`` with ``a.b=value`` settings applied; values are TOML, anything else is taken as a string."""
    result = _copy_tables(tables)
    given: set[str] = set()
    for override in overrides:
        dotted, equals, text = override.partition("=")
        keys = [key.strip() for key in dotted.split(".")]
        if not equals or not all(keys):
            raise ConfigError(f"override {override!r}: expected key=value, for example name=value or table.name=value")
        table = result
        for depth, key in enumerate(keys[:-1], 1):
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ConfigError(f"override {override!r}: {'.'.join(keys[:depth])} is a value, not a table")
        if (name := ".".join(keys)) in given:
            raise ConfigError(f"{name} is given twice, last as {text.strip()!r}; give it once")
        given.add(name)
        table[keys[-1]] = _parse_value(text.strip())
    return result


def merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` with ``changes`` in it, table by table; a change of anything else replaces it."""
    result = dict(tables)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if nested else value
    return result


def from_dict(config_type: type[ConfigT], values: Mapping[str, Any], *, where: str = "config") -> ConfigT:
    """Build a dataclass, nested ones included, from plain values as TOML and JSON give them.

    Raises:
        ConfigError: An unknown or missing key, a value of another type, or what the dataclass's own checks refuse.
    """
    hints = get_type_hints(config_type)
    known = {field.name: field for field in fields(cast(Any, config_type)) if field.init}
    for key in values:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; {suggest(key, known)}")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"{where}: {name} is missing, expected {_describe(hints[name])}")
    built = {key: _convert(value, hints[key], f"{where}: {key}") for key, value in values.items()}
    return config_type(**built)


def to_dict(config: object) -> dict[str, Any]:
    """The plain values of a dataclass, nested ones included; ``from_dict`` gives the dataclass back."""
    if not is_dataclass(config) or isinstance(config, type):
        raise ConfigError(f"got {type(config).__name__}, expected a config dataclass")
    return {field.name: _to_plain(getattr(config, field.name)) for field in fields(config) if field.init}


def suggest(name: str, known: Iterable[str]) -> str:
    """Words for the end of an error line: the known name nearest to a wrong one, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"expected one of {', '.join(names)}" if names else "nothing is known here"


def _copy_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy_tables(value) if isinstance(value, Mapping) else value for key, value in tables.items()}


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _to_plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(item) for item in value]
    return value


def _convert(value: Any, annotation: Any, where: str) -> Any:
    """``value`` as ``annotation`` wants it, or a ConfigError."""
    if annotation is Any or annotation is object:
        return value
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _convert_union(value, annotation, where)
    if origin is Literal:
        return _convert_literal(value, annotation, where)
    if origin in (tuple, list) and isinstance(value, (list, tuple)):
        return _convert_array(value, annotation, where)
    if origin is dict and isinstance(value, Mapping):
        item_type = get_args(annotation)[1]
        return {key: _convert(item, item_type, f"{where}.{key}") for key, item in value.items()}
    return _convert_one(value, annotation, where)


def _convert_one(value: Any, annotation: Any, where: str) -> Any:
    if isinstance(annotation, type):
        if is_dataclass(annotation) and isinstance(value, Mapping):
            return from_dict(annotation, value, where=where)
        if annotation is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if annotation is Path and isinstance(value, str):
            return Path(value)
        # True is an int to Python, never to a person
        if isinstance(value, annotation) and (annotation is bool or not isinstance(value, bool)):
            return value
    raise ConfigError(f"{where} is {_show(value)}, expected {_describe(annotation)}")


def _convert_union(value: Any, annotation: Any, where: str) -> Any:
    options = get_args(annotation)
    if value is None and NoneType in options:
        return None
    # an exact fit first: 3 stays an int in float | int
    options = sorted((option for option in options if option is not NoneType), key=lambda option: option is float)
    for option in options[:-1]:
        try:
            return _convert(value, option, where)
        except ConfigError:
            continue
    if len(options) == 1:
        return _convert(value, options[0], where)
    try:
        return _convert(value, options[-1], where)
    except ConfigError:
        raise ConfigError(f"{where} is {_show(value)}, expected {_describe(annotation)}") from None


def _convert_literal(value: Any, annotation: Any, where: str) -> Any:
    options = get_args(annotation)
    for option in options:
        if option == value and type(option) is type(value):
            return option
    hint = suggest(value, [str(option) for option in options]) if isinstance(value, str) else ""
    hint = hint or f"expected {_describe(annotation)}"
    raise ConfigError(f"{where} is {_show(value)}; {hint}")


def _convert_array(value: Sequence[Any], annotation: Any, where: str) -> Any:
    item_types = get_args(annotation)
    if get_origin(annotation) is list or (len(item_types) == 2 and item_types[1] is Ellipsis):
        item_types = (item_types[0],) * len(value)
    if len(item_types) != len(value):
        raise ConfigError(f"{where} has {len(value)} values, expected {_describe(annotation)}")
    pairs = zip(value, item_types, strict=True)
    items = [_convert(item, item_type, f"{where}[{index}]") for index, (item, item_type) in enumerate(pairs)]
    return items if get_origin(annotation) is list else tuple(items)


def _show(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"


def _describe(annotation: Any) -> str:
    """An annotation in words a person can act on."""
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(str(option) for option in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join("nothing" if option is NoneType else _describe(option) for option in get_args(annotation))
    if isinstance(annotation, type) and is_dataclass(annotation):
        return f"a table of {', '.join(field.name for field in fields(annotation))}"
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
