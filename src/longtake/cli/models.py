"""``longtake models``: the models that come with the package, and what any model is made of."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer


def models(
    action: Annotated[Literal["list", "show"], typer.Argument(help="What to do.")] = "list",
    name: Annotated[
        str | None, typer.Argument(help="For show: a bundled name, a preset, a checkpoint folder or a hub id.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """List the bundled models and presets, or show what one is made of."""
    if (action == "show") != (name is not None):
        raise typer.BadParameter("models show NAME, or models list")
    facts = {"models": _bundled_rows() + _preset_rows()} if name is None else describe(name)
    if as_json:
        print(json.dumps(facts))
    elif name is None:
        columns = ["name", "method", "kind", "scores"]
        _print_table(columns, [[row[column] for column in columns] for row in facts["models"]])
    else:
        _print_facts(facts)


def describe(name: str) -> dict[str, Any]:
    """The facts about a model, computed without reading or making any weights."""
    import torch

    from longtake.hub import find, is_video_model, method_class, presets, read_config

    known = presets()
    if name not in known and is_video_model(folder := find(name)):
        from longtake.hub import video_model_module

        return {"name": name} | video_model_module(folder).describe(folder)
    with torch.device("meta"):
        if name in known:
            method, preset = known[name]
            model, notes = method_class(method)(preset()), {}
        else:
            config = read_config(find(name))
            method, notes = config["method"], config.get("notes", {})
            model = method_class(method).from_config(config["config"])
    spec = model.segment_spec
    return {
        "name": name,
        "method": method,
        "segment": f"{spec.num_frames} frames at {spec.fps:g} fps, {spec.width}x{spec.height}",
        "state_bytes": model.max_state_bytes(),
        "parameters": _module(method).parameter_counts(model),
        "notes": notes,
    }


def _bundled_rows() -> list[dict[str, str]]:
    from longtake.hub import bundled, find, is_video_model, read_config

    rows: list[dict[str, str]] = []
    for name in bundled():
        folder = find(name)
        if is_video_model(folder):
            from longtake.methods.statekv_load import read_settings

            method, notes = "statekv", read_settings(folder)[1]
        else:
            config = read_config(folder)
            method, notes = config["method"], config.get("notes", {})
        scores = notes.get("scores", {})
        text = ", ".join(f"{key} {value:.3f}" for key, value in scores.items() if isinstance(value, float))
        rows.append({"name": name, "method": method, "kind": "bundled", "scores": text})
    return rows


def _preset_rows() -> list[dict[str, str]]:
    from longtake.hub import presets

    rows = [{"name": name, "method": method} for name, (method, _) in presets().items()]
    return [row | {"kind": "preset, no weights", "scores": ""} for row in rows]


def _module(method: str) -> Any:
    from importlib import import_module

    from longtake.hub import METHODS

    return import_module(METHODS[method][0])


def _print_facts(facts: dict[str, Any]) -> None:
    rows = [[key, str(facts[key])] for key in ("name", "method", "family", "segment") if key in facts]
    rows += _size_rows(facts)
    rows += [[f"parameters: {part}", f"{count:,}"] for part, count in facts["parameters"].items()]
    rows += [[f"setting: {key}", _short(value)] for key, value in facts.get("settings", {}).items()]
    rows += [[f"notes: {key}", _short(value)] for key, value in facts["notes"].items()]
    _print_table(["what", "value"], rows)


def _size_rows(facts: dict[str, Any]) -> list[list[str]]:
    from rich.filesize import decimal

    carried, detailed = decimal(facts["state_bytes"]), facts.get("detailed_bytes")
    if facts.get("settings", {}).get("policy") == "full":
        return [["carried state", f"grows with the video, at most {carried}"]]
    rows = [["carried state", f"at most {carried}, however long the video"]]
    if detailed is not None:
        text = f"to answer from; grows with the video up to {decimal(detailed)}, which detailed_bytes sets"
        rows.append(["detailed cache", text])
    return rows


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _print_table(columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table, markup=False)
