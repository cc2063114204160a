"""Wrong usage in one line, for every command: what was got, what was expected, where to look."""

from __future__ import annotations

from typing import Any

_EXPECTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of fewer digits",
    "float_parsing": "a number",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
}
"""By the names that pydantic, which typer validates with, gives to what it refuses."""


def is_usage_error(error: Exception) -> bool:
    """Whether typer raised it. typer carries its own click from 0.20 on, so that only its form is sure."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def usage_line(error: Any) -> str:
    """One line for an error of typer's; what validators say is put in our words."""
    command = getattr(getattr(error, "ctx", None), "command_path", "longtake")
    return f"{' '.join(_what(error).split()).removesuffix('.')}; see {command} -h"


def _what(error: Any) -> str:
    param: Any = getattr(error, "param", None)
    cause: Any = getattr(error, "__cause__", None)
    refused = cause.errors()[0] if param is not None and hasattr(cause, "errors") else {}
    if expected := _EXPECTED.get(refused.get("type", "")):
        bounds = {key: f"{bound:g}" for key, bound in refused.get("ctx", {}).items() if isinstance(bound, (int, float))}
        return f"{_name(param)} is {str(refused['input'])[:40]!r}, expected {expected.format(**bounds)}"
    return error.format_message().replace("Value error, ", "").removeprefix("Invalid value: ")


def _name(param: Any) -> str:
    return next((name for name in param.opts if name.startswith("--")), str(param.name).upper())
