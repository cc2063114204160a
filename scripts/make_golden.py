"""Remake what is made from the commands themselves: tests/golden/help/*.txt and docs/cli.md.

Run by ``make docs``; tests/cli/test_help.py fails when a page has drifted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HELP = ROOT / "tests" / "golden" / "help"
CLI_PAGE = ROOT / "docs" / "cli.md"


def main() -> None:
    """Write all pages anew, and remove those of commands that are gone."""
    pages = help_pages()
    HELP.mkdir(parents=True, exist_ok=True)
    for old in HELP.glob("*.txt"):
        old.unlink()
    for name, text in pages.items():
        (HELP / f"{name}.txt").write_text(text, encoding="utf-8")
    CLI_PAGE.write_text(cli_page(pages), encoding="utf-8")


def help_pages() -> dict[str, str]:
    """The help page of ``longtake``, of each command and of each command below it, by words joined with ``-``."""
    pages: dict[str, str] = {}
    waiting: list[list[str]] = [[]]
    while waiting:
        words = waiting.pop(0)
        text = help_page(words)
        pages["-".join(["longtake", *words])] = text
        _, _, listing = text.partition("\nCommands:\n")
        names = [line.split()[0] for line in listing.splitlines() if line.startswith("  ") and line[2] != " "]
        waiting += [[*words, name] for name in names]
    return pages


def help_page(words: list[str]) -> str:
    """What ``longtake WORDS --help`` prints, at a fixed width and without colour."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "TERMINAL_WIDTH": "100"}
    command = [sys.executable, "-m", "longtake.cli", *words, "--help"]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def cli_page(pages: dict[str, str]) -> str:
    """docs/cli.md, from the help pages."""
    parts = ["# Command line\n\nMade by `make docs` from the commands themselves; do not edit.\n"]
    parts += [f"## {name.replace('-', ' ')}\n\n```text\n{text.strip()}\n```\n" for name, text in pages.items()]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
