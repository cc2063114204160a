"""One HTML page of many experiments, whole in one file: tables, pictures, and how to get each number again."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto; padding: 1rem; }
section { margin: 2.5rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #8884; text-align: left; }
td + td, th + th { text-align: right; }
img { max-width: 100%; height: auto; background: white; }
code { font-size: .9em; overflow-wrap: anywhere; }
.source { color: #777; font-size: .9em; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One experiment."""

    name: str
    """Its anchor on the page."""
    title: str
    text: str
    """Markdown with tables; HTML in it is shown as it stands."""
    source: str
    """Markdown too: where the numbers come from, a command and a seed."""
    picture: bytes | None = None
    """A PNG."""


def page(title: str, intro: str, sections: Sequence[Section]) -> str:
    """The page; ``intro`` is Markdown."""
    links = "".join(f'<li><a href="#{escape(one.name)}">{escape(one.title)}</a></li>' for one in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>\n'
        f"<h1>{escape(title)}</h1>\n{rendered(intro)}<ul>{links}</ul>\n"
        + "".join(map(_section, sections))
        + "</body></html>\n"
    )


def rendered(text: str) -> str:
    """Markdown as HTML."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


def _section(one: Section) -> str:
    shown = ""
    if one.picture:
        data = base64.b64encode(one.picture).decode()
        shown = f'<img alt="{escape(one.title)}" src="data:image/png;base64,{data}">\n'
    return (
        f'<section id="{escape(one.name)}"><h2>{escape(one.title)}</h2>\n{rendered(one.text)}{shown}'
        f'<div class="source">{rendered(one.source)}</div></section>\n'
    )
