"""The ``longtake`` command: finds the command asked for, and turns errors into one line.

Only the command that is called is imported, so that ``longtake --help`` answers at once and never loads torch.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from longtake.cli.plain import on_one_line
from longtake.cli.usage import is_usage_error, usage_line
from longtake.errors import LongtakeError

if TYPE_CHECKING:
    # typer carries its own click from 0.20 on; the methods below are told by their names alone
    Context = Any
    Formatter = Any


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "caption": Entry("longtake.cli.caption", "caption", "Events of a video, each as soon as it ends."),
    "ask": Entry("longtake.cli.ask", "ask", "Answers about a video, from any frozen video-language model."),
    "classify": Entry("longtake.cli.classify", "classify", "What a video is: labels with probabilities."),
    "embed": Entry("longtake.cli.embed", "embed", "Vectors of videos, or of their stretches."),
    "probe": Entry("longtake.cli.probe", "probe", "What the reader sees in a video: frames, times, losses."),
    "toybox": Entry("longtake.cli.toybox", "app", "Make videos of Toybox, the procedural world."),
    "train": Entry("longtake.cli.train", "train", "Train a model from a recipe."),
    "eval": Entry("longtake.cli.evaluate", "app", "Run a model over a data set and measure it."),
    "score": Entry("longtake.cli.score", "app", "Score predictions that are already there."),
    "report": Entry("longtake.cli.report", "app", "The papers' tables in kind, run or read."),
    "bench": Entry("longtake.cli.bench", "bench", "Measure speed and memory."),
    "models": Entry("longtake.cli.models", "models", "List the bundled models, or show one."),
    "doctor": Entry("longtake.cli.doctor", "doctor", "Say what longtake finds on this machine."),
}

# packages of the extras, named when one of them is missing
_EXTRAS = {
    "accelerate": "train",
    "peft": "train",
    "matplotlib": "eval",
    "pycocoevalcap": "eval",
    "starlette": "serve",
    "uvicorn": "serve",
    "ray": "scale",
}


class LazyGroup(TyperGroup):
    """Knows its commands by name; imports one when it is called."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        target = getattr(import_module(entry.module), entry.attribute)
        command: Any = typer.main.get_group(target) if isinstance(target, typer.Typer) else _single(target)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Context, formatter: Formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        # typer suggests from this mapping when a name is mistyped
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]
        return super().resolve_command(ctx, args)


def _single(function: Any) -> Any:
    application = typer.Typer(add_completion=False, rich_markup_mode=None)
    application.command()(function)
    return typer.main.get_command(application)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> bool:
    if not wanted:
        return False
    from longtake import __version__

    print(f"longtake {__version__}")
    raise typer.Exit


@app.callback()
def configure(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done, to stderr.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Understand video that is long or never ends.

    SOURCE is a file, an http(s):// or rtsp:// address, webcam:0 or a device, a folder of images, or - for standard
    input. Results go to stdout, everything else to stderr.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="longtake: %(levelname)s: %(message)s",
        stream=sys.stderr,
    )


def main() -> None:
    """Entry of the console script. SIGTERM ends it as Ctrl-C does, with everything put away."""
    terminated: list[int] = []

    def terminate(number: int, _: object) -> None:
        terminated.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    status = run(sys.argv[1:])
    sys.exit(128 + terminated[0] if terminated else status)


def run(arguments: list[str]) -> int:
    """Run the command line; the exit status: 0, 1 for an error of ours, 2 for wrong usage, 130 for Ctrl-C."""
    _open_streams()
    try:
        status = _run_command(arguments)
    except LongtakeError as error:
        status = _complain(str(error))
    except BrokenPipeError:
        status = 1  # whoever read stdout is gone
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        status = _complain(f"{place}{error.strerror or error}; check the path, its permissions and the space left")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        status = _complain(f"{package} is not installed; pip install 'longtake[{_EXTRAS[package]}]'")
    except KeyboardInterrupt:
        status = 130
    return status if _flush() else 1


def _run_command(arguments: list[str]) -> int:
    try:
        status: object = app(arguments, prog_name="longtake", standalone_mode=False)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception as error:
        if not is_usage_error(error):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            return 2
        return _complain(usage_line(error), status=2)
    return status if isinstance(status, int) else 0


def _complain(message: str, *, status: int = 1) -> int:
    with contextlib.suppress(OSError):
        print(f"longtake: {on_one_line(message)}", file=sys.stderr)
    return status


def _open_streams() -> None:
    """UTF-8 on stdout and stderr whatever the locale; what cannot be shown becomes a question mark, never an error.

    A stream that was closed before the start takes everything and keeps nothing.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _flush() -> bool:
    """Hand the last output over; False if its reader is gone, which is no reason for a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            _complain(f"cannot write to stdout: {error.strerror}; choose another place for it")
        return False
    return True
