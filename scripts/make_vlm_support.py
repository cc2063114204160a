"""Remake docs/vlm_support.md from the families of frozen video models themselves.

Run by ``make docs``; tests/vlm/test_support_page.py fails when the page has drifted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoConfig

from longtake.errors import ConfigError
from longtake.vlm.families import FAMILIES
from longtake.vlm.families.refuse import refuse_other_attention

PAGE = Path(__file__).resolve().parents[1] / "docs" / "vlm_support.md"
OPENING = """# Frozen video models that StateKV serves

Made by `make docs` from the families themselves (`src/longtake/vlm/families`); do not edit.

A family makes its prompt chunk by chunk: the tokens, positions and answers equal those of transformers' own processor
and model in one call, as long as nothing is dropped. `tests/vlm/test_families.py` holds that for each family with tiny
random models. No pretrained weights have been run in these tests.

- **frames at once**: what the vision tower takes together; a segment of the stream.
- **length first**: whether the prompt says before the first frame how many frames will come and for how long. A live
  source is refused unless it promises both.
- **frame before**: whether a frame's tokens depend on the frame before it.
"""
REFUSED = """## Refused

A decoder must let every token see all before it. Others are refused with the reason, which is read from the model's
config. Some of transformers' models, with the configs they have by default, and what longtake says:
"""
REFUSED_EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gemma3", {}),
    ("paligemma", {}),
    ("mistral3", {"text_config": {"model_type": "mistral", "sliding_window": 4096}}),
    ("qwen3_5", {}),
    ("qwen3_5_moe", {}),
)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    return "\n".join([OPENING, table(), notes(), REFUSED, *(refused(*one) for one in REFUSED_EXAMPLES), ""])


def table() -> str:
    """A row for each family."""
    head = ("family", "model types", "for instance", "frames at once", "frame size", "time of a frame")
    rows = [(*head, "length first", "frame before", "tested with")]
    for kind in FAMILIES:
        types = ", ".join(f"`{name}`" for name in kind.model_types)
        row = (kind.name, types, f"`{kind.example}`", str(kind.frames_per_chunk), kind.frame_size, kind.time_marker)
        rows.append((*row, _said(kind.needs_length), _said(kind.needs_frame_before), kind.tested_with))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""])


def notes() -> str:
    """What is to know about some of them."""
    return "\n".join(["## To know", "", *(f"- {kind.name}: {kind.notes}" for kind in FAMILIES if kind.notes), ""])


def _said(fact: bool) -> str:
    return "yes" if fact else "no"


def refused(model_type: str, fields: dict[str, Any]) -> str:
    """What longtake says of a model it does not serve."""
    try:
        refuse_other_attention(AutoConfig.for_model(model_type, **fields))
    except ConfigError as error:
        return f"- {error}"
    raise AssertionError(f"{model_type} is no longer refused; take it off this list")


if __name__ == "__main__":
    main()
