"""What the documents name exists: functions, tests, commands, files."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def names_of_tests(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(longtake\.[\w.]+)`", PAPERS))))
def test_function_named_for_a_paper_exists(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return
    pytest.fail(f"no module of {name} can be imported")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w./]+::\w+)`", PAPERS))))
def test_test_named_for_a_paper_exists(name: str) -> None:
    path, _, test = name.partition("::")
    assert test in names_of_tests(ROOT / path)


def test_every_row_about_a_paper_names_a_function_and_a_test() -> None:
    rows = [line for line in PAPERS.splitlines() if line.startswith("| ") and not line.startswith("| paper ")]
    assert rows
    assert [row for row in rows if not re.search(r"\| `(longtake|recipes)[^|]*\| `tests/[^|]* \|$", row)] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    names = [re.match(r"[\w-]+", item).group() for item in wanted]  # type: ignore[union-attr]
    assert [name for name in names if not re.search(rf"\| [^|]*\b{name}\b[^|]* \|", reasons)] == []


def test_every_dependency_has_a_tested_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = {extra: project["optional-dependencies"][extra] for extra in ("train", "eval", "dev")}
    wanted = [*project["dependencies"], *(item for extra in installed.values() for item in extra)]
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert {re.match(r"[\w-]+", item).group() for item in wanted} <= pinned  # type: ignore[union-attr]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_examples_exist(path: Path) -> None:
    from longtake.cli.app import COMMANDS

    shown = re.findall(r"^longtake ([a-z]+)\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [command for command in shown if command not in COMMANDS] == []


def test_settings_of_ask_stand_in_their_page_with_their_defaults() -> None:
    from longtake.methods.statekv_config import StateKVConfig

    page = (ROOT / "docs" / "ask.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", page, flags=re.MULTILINE))
    config = StateKVConfig()
    assert rows == {field.name: str(getattr(config, field.name)) for field in fields(StateKVConfig)}


def test_defaults_in_the_help_of_ask_are_those_of_the_code() -> None:
    from longtake.methods.statekv_config import StateKVConfig
    from longtake.vlm.decode import Sampling

    page = " ".join((ROOT / "tests" / "golden" / "help" / "longtake-ask.txt").read_text(encoding="utf-8").split())
    for name in ("policy", "select", "sinks", "budget", "fps", "max_new_tokens"):
        default = getattr(StateKVConfig(), name)
        option = page.partition(f"--{name.replace('_', '-')} ")[2]
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        assert re.match(r"[^\]]*\[default: the model's, else ([^\]]+)\]", option)[1] == shown, name  # type: ignore[index]
    for name in ("temperature", "top_k", "top_p", "seed"):
        option = page.partition(f"--{name.replace('_', '-')} ")[2]
        assert re.match(r"[^\]]*\[default: ([^\]]+)\]", option)[1] == f"{getattr(Sampling(), name):g}", name  # type: ignore[index]


def test_data_sets_stand_in_their_page_as_the_code_has_them() -> None:
    from longtake.data.datasets import DATASETS

    page = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        (f"`{one.name}`", one.task, one.home, ", ".join(one.splits)) for one in DATASETS.values()
    ]
    means = {(): "questions", ("type",): "tasks", ("type", "group"): "groups of means over tasks"}
    for row, one in zip(rows, DATASETS.values(), strict=True):
        assert one.task != "ask" or re.fullmatch(rf"mean over {means[one.mean_over]}(;.*)?", row[5]), one.name


def test_files_named_for_a_data_set_are_those_that_are_asked_for(tmp_path: Path) -> None:
    from longtake.data.datasets import DATASETS
    from longtake.errors import ConfigError

    page = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = {row[1]: row[0] for row in re.findall(r"^(\| `([\w-]+)` \|.*)$", page, flags=re.MULTILINE)}
    for name, dataset in DATASETS.items():
        with pytest.raises(ConfigError, match=f"has no .*had at {re.escape(dataset.home)}") as missing:
            dataset.open(tmp_path)
        first = str(missing.value).partition(" has no ")[2].partition(" or ")[0].partition(",")[0]
        assert f"`{first}`" in rows[name], name


def test_readme_opens_with_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.match(r"# longtake\n\n```bash\nmake demo +#.*\nmake test +#.*\n```\n", readme)


def test_architecture_names_every_room_of_the_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "longtake"
    rooms = [f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()]
    rooms += [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    assert [room for room in rooms if f"`{room}" not in text] == []


def test_python_example_in_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As printed, but for the camera, for which the sample video stands in."""
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert example is not None
    code = example.group(1).replace("rtsp://camera/1", "assets/demo.mp4")
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "camera.state").is_file()
    by_hand = [line for line in capsys.readouterr().out.splitlines() if not line[0].isdigit()]
    assert by_hand, "the example said nothing"
