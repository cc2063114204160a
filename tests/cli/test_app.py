"""The command line as a whole: quick to start, one line for an error, exit statuses that scripts can rely on."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

from longtake.cli import app
from longtake.errors import SourceError

HEAVY = ("torch", "torchvision", "av", "transformers", "numpy", "huggingface_hub", "matplotlib", "accelerate", "rich")


def longtake(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, after ``code``."""
    script = f"import sys\n{code}\nfrom longtake.cli.app import run\nstatus = run(sys.argv[1:])\n"
    script += f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
    script += "print('loaded:', *loaded, file=sys.stderr)\nsys.exit(status)"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Commands that fail in the ways commands do, in place of ``doctor``."""
    monkeypatch.setitem(app.COMMANDS, "doctor", app.Entry(__name__, "raise_ours", "Fails."))
    return monkeypatch


def raise_ours() -> None:
    raise SourceError("no frames in x.mp4,\nexpected a video; give another file")


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def raise_missing_extra() -> None:
    import_error = ModuleNotFoundError("No module named 'accelerate.state'")
    import_error.name = "accelerate.state"
    raise import_error


def raise_missing_other() -> None:
    raise ModuleNotFoundError("No module named 'nothing'", name="nothing")


def raise_bug() -> None:
    raise ZeroDivisionError("a bug of ours")


def exit_three() -> None:
    raise typer.Exit(3)


def log_a_lot() -> None:
    logging.getLogger("longtake.test").info("detail")
    logging.getLogger("longtake.test").warning("trouble")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["no-such-command"], []])
def test_overview_loads_nothing_heavy(arguments: list[str]) -> None:
    assert longtake(*arguments).stderr.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("name", list(app.COMMANDS))
def test_command_help_loads_neither_torch_nor_av(name: str) -> None:
    done = longtake(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"longtake {name}" in done.stdout
    assert done.stderr.splitlines()[-1] == "loaded:"


def test_listed_commands_all_have_a_file() -> None:
    assert [name for name, entry in app.COMMANDS.items() if find_spec(entry.module) is None] == []


def test_help_lists_every_command() -> None:
    done = longtake("--help")
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in app.COMMANDS)


def test_version_is_that_of_the_package() -> None:
    done = longtake("--version")
    assert (done.returncode, done.stdout) == (0, f"longtake {__import__('longtake').__version__}\n")


def test_mistyped_command_is_usage_error_with_the_nearest_name() -> None:
    done = longtake("docter")
    assert done.returncode == 2
    assert "No such command 'docter'. Did you mean 'doctor'?" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [[], ["doctor", "--no-such-option"], ["doctor", "surplus"], ["models", "show"]])
def test_wrong_usage_exits_with_two(arguments: list[str]) -> None:
    done = longtake(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["ask", "x.mp4", "what?", "--budget", "abc"],
            "--budget is 'abc', expected a whole number; see longtake ask -h",
        ),
        (
            ["ask", "x.mp4", "what?", "--height", "1.5"],
            "--height is '1.5', expected a whole number; see longtake ask -h",
        ),
        (["ask", "x.mp4", "what?", "--at", "soon"], "--at is 'soon', expected a number; see longtake ask -h"),
        (["ask", "x.mp4", "what?", "--timeout", "0"], "--timeout is '0', expected 0.1 or more; see longtake ask -h"),
        (
            ["ask", "x.mp4", "what?", "--timeout", "inf"],
            "--timeout is 'inf', expected 86400 or less; see longtake ask -h",
        ),
        (["caption", "x.mp4", "--fps", "fast"], "--fps is 'fast', expected a number; see longtake caption -h"),
        (["caption", "x.mp4", "--fps", "0"], "--fps is '0', expected 0.001 or more; see longtake caption -h"),
        (["toybox", "make", "x", "--videos", "x", "--seed", "3"], "--videos is 'x', expected a whole number; see"),
        (["ask", "x.mp4"], "Missing argument 'QUESTION'; see longtake ask -h"),
        (["ask", "x.mp4", "what?", "--policy", "newest"], "'newest' is not one of 'statekv', 'sink-recency'"),
        (["models", "show"], "models show NAME, or models list; see longtake models -h"),
        (
            ["eval", "ask", "--dataset", "toybox", "--data", "x", "--seed", "3"],
            "--seed are of videos that are rendered",
        ),
        (["ask", "x.mp4", "what?", "--choose-by", "generation"], "--choose-by goes with --choice"),
        (["ask", "x.mp4", "what?", "--choice", "a", "--choice", "b", "--stop", "x"], "--stop: a choice by likelihood"),
        (
            ["ask", "x.mp4", "what?", "--top-k", "3", "--seed", "1"],
            "--top-k, --seed: nothing is sampled at temperature 0",
        ),
    ],
)
def test_wrong_usage_is_one_line_in_our_words(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("longtake: ")
    assert line in err
    assert "Input should" not in err


@pytest.mark.usefixtures("broken")
def test_error_of_ours_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["doctor"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "longtake: no frames in x.mp4, expected a video; give another file\n"


def test_interrupt_exits_with_130(broken: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken.setitem(app.COMMANDS, "doctor", app.Entry(__name__, "raise_interrupt", "Fails."))
    assert app.run(["doctor"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_missing_extra_says_what_to_install(broken: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken.setitem(app.COMMANDS, "doctor", app.Entry(__name__, "raise_missing_extra", "Fails."))
    assert app.run(["doctor"]) == 1
    assert capsys.readouterr().err == "longtake: accelerate is not installed; pip install 'longtake[train]'\n"


@pytest.mark.parametrize(("function", "kind"), [("raise_bug", ZeroDivisionError), ("raise_missing_other", ImportError)])
def test_bug_of_ours_keeps_its_traceback(broken: pytest.MonkeyPatch, function: str, kind: type[Exception]) -> None:
    broken.setitem(app.COMMANDS, "doctor", app.Entry(__name__, function, "Fails."))
    with pytest.raises(kind):
        app.run(["doctor"])


def test_status_of_a_command_is_passed_on(broken: pytest.MonkeyPatch) -> None:
    broken.setitem(app.COMMANDS, "doctor", app.Entry(__name__, "exit_three", "Fails."))
    assert app.run(["doctor"]) == 3


def test_verbose_logs_to_stderr_and_quiet_is_the_default() -> None:
    swap = "import sys; sys.path.insert(0, '.'); from longtake.cli import app\n"
    swap += f"app.COMMANDS['doctor'] = app.Entry({__name__!r}, 'log_a_lot', 'Logs.')"
    quiet, verbose = longtake("doctor", code=swap), longtake("--verbose", "doctor", code=swap)
    assert quiet.stderr.startswith("longtake: WARNING: trouble\n")
    assert verbose.stderr.startswith("longtake: INFO: detail\nlongtake: WARNING: trouble\n")
    assert quiet.stdout == verbose.stdout == ""


def test_reader_that_leaves_early_causes_no_traceback() -> None:
    command = f"{sys.executable} -m longtake.cli --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode in (0, 1)  # 0 if the page was written before the reader left


def test_console_script_and_module_are_the_same() -> None:
    done = subprocess.run([sys.executable, "-m", "longtake.cli", "--version"], capture_output=True, text=True)
    assert done.stdout == longtake("--version").stdout


def raise_from_the_system() -> None:
    raise PermissionError(13, "Permission denied", "/locked/street.mp4")


def test_error_of_the_system_is_one_line(broken: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken.setitem(app.COMMANDS, "doctor", app.Entry(__name__, "raise_from_the_system", "Fails."))
    assert app.run(["doctor"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("longtake: /locked/street.mp4: Permission denied; ")
    assert message.count("\n") == 1


@pytest.mark.parametrize(("redirection", "status"), [("> /dev/full", 1), (">&-", 0), ("2>&-", 0)])
def test_output_that_cannot_be_written_is_no_traceback(redirection: str, status: int) -> None:
    command = f"{sys.executable} -m longtake.cli models list --json {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (1 if status else 0)


def test_terminated_process_puts_away_what_it_made(tmp_path: Path) -> None:
    arguments = ["toybox", "make", str(tmp_path / "videos"), "--videos", "50", "--seed", "1"]
    command = [sys.executable, "-c", "from longtake.cli.app import main; main()", *arguments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not list(tmp_path.iterdir()):
            time.sleep(0.05)
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


def test_preset_has_no_weights_to_load(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["caption", "street.mp4", "--model", "sts-large"]) == 1
    assert "sizes without weights" in capsys.readouterr().err
