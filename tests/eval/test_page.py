"""The page of all experiments: whole in one file, tables as tables, nothing that a name could smuggle in."""

from __future__ import annotations

import base64

from longtake.eval.page import Section, page

PICTURE = b"\x89PNG not really"
SECTION = Section(
    name="one", title="One & <two>", text="| a | b |\n|---|---:|\n| <b>x</b> | 1 |\n", source="`go`", picture=PICTURE
)


def test_tables_pictures_and_sources_are_on_the_page() -> None:
    text = page("All", "Intro *here*.", [SECTION])
    assert '<td style="text-align:right">1</td>' in text
    assert f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}" in text
    assert "<code>go</code>" in text
    assert "<em>here</em>" in text
    assert '<a href="#one">' in text
    assert '<section id="one">' in text


def test_names_are_shown_as_they_stand() -> None:
    text = page("All", "", [SECTION])
    assert "One &amp; &lt;two&gt;" in text
    assert "<b>" not in text
    assert "&lt;b&gt;x" in text


def test_page_needs_nothing_from_elsewhere() -> None:
    text = page("All", "", [SECTION])
    assert "http" not in text
    assert "<script" not in text
