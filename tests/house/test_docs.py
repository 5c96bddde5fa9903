"""The documentation is true: every setting, command and folder it names exists, and the other way round."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from django.core.management import get_commands
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT
from tests.support.settings_table import OPERATIONS, settings_in_code, settings_in_table

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
COMMANDS = (ROOT / "experiments/management/COMMANDS.md").read_text()
ALL = README + COMMANDS + OPERATIONS + CONTRIBUTING + (ROOT / "workers/OWN_PARTS.md").read_text()
PACKAGES = [
    init.parent
    for top in ("maia_web", "experiments", "workers")
    for init in sorted((ROOT / top).rglob("__init__.py"))
    if init.parent.name not in {"migrations", "management"}
]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- settings ---------------------------------------------------------------------------------------


def test_every_setting_stands_in_the_table_and_the_other_way_round() -> None:
    assert sorted(settings_in_table()) == sorted(settings_in_code())


def test_the_table_gives_the_defaults_of_the_code() -> None:
    told = settings_in_table()
    wrong = {
        name: (default, told[name])
        for name, default in settings_in_code().items()
        if default is not None and told[name] != f"`{default}`"
    }
    assert wrong == {}


def test_no_other_module_reads_settings_of_its_own() -> None:
    read: set[str] = set()
    for package in PACKAGES:
        for path in package.glob("*.py"):
            read |= set(re.findall(r"environ[.\w]*[(\[]\s*\"(MAIA_\w+)\"", path.read_text()))
    assert {name.removesuffix("_FILE") for name in read} <= settings_in_code().keys()


# --- commands ---------------------------------------------------------------------------------------


def test_every_make_target_stands_in_the_readme_and_the_other_way_round() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", ALL)) == targets


def test_make_alone_lists_every_target() -> None:
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert re.findall(r"^  make ([\w-]+)", listed, flags=re.MULTILINE) == targets


def test_every_command_that_is_named_exists_and_ours_are_explained() -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", ALL))
    known = get_commands()
    assert named <= known.keys()
    assert {name for name, app in known.items() if app == "experiments"} <= set(
        re.findall(r"`manage\.py ([a-z_]+)", COMMANDS)
    )


def test_the_readme_is_short_and_says_under_which_licence() -> None:
    assert len(README.splitlines()) < 200
    licences = [path.name for path in ROOT.iterdir() if path.stem.upper() in {"LICENSE", "LICENCE", "COPYING"}]
    assert ("No licence is chosen yet" in README) == (licences == []), "the owner chooses; until then it says so"


@pytest.mark.parametrize(
    "path",
    ["README.md", "docker/README.md", "CONTRIBUTING.md", "workers/OWN_PARTS.md", "experiments/management/COMMANDS.md"],
)
def test_every_file_that_is_named_exists(path: str) -> None:
    text = (ROOT / path).read_text()
    linked = {name for name in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in name}
    named = set(re.findall(r"`((?:experiments|workers|tests|templates|static|docker|maia_web)/[\w./]+)`", text))
    missing = [name for name in linked if not (ROOT / path).parent.joinpath(name).exists()]
    assert missing + [name for name in named if not (ROOT / name).exists()] == []


# --- folders ----------------------------------------------------------------------------------------


def tree() -> list[str]:
    """The paths of the README's file tree."""
    block = README.rpartition("```text\n")[2].partition("```")[0]
    paths: list[str] = []
    above: list[str] = []
    for line in block.splitlines():
        name = line.strip().split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        above = [*above[:depth], name]
        paths.append("".join(above))
    return paths


def test_the_file_tree_names_what_exists() -> None:
    assert [path for path in tree() if not (ROOT / path).exists()] == []


def test_the_file_tree_names_every_room() -> None:
    packages = {f"{relative(package)}/" for package in PACKAGES if len(package.relative_to(ROOT).parts) <= 2}
    assert packages - set(tree()) == set()


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_every_package_has_a_readme_with_one_file_a_line(package: Path) -> None:
    lines = [line for line in (package / "README.md").read_text().splitlines() if line.strip()]
    listed = [line for line in lines if line.startswith("- ")]
    named = [match[1] for line in listed if (match := re.match(r"- `(\w+\.py)`: \S", line))]
    assert lines[0].startswith(f"# {relative(package)}: ")
    assert sorted(named) == sorted(path.name for path in package.glob("*.py") if path.name != "__init__.py")
    assert [line for line in listed if len(line) > 120] == []


ROOMS = [
    path
    for top in ("maia_web", "experiments", "workers", "templates", "static")
    for path in sorted((ROOT / top).rglob("README.md"))
]


@pytest.mark.parametrize("readme", ROOMS, ids=relative)
def test_what_a_room_names_exists(readme: Path) -> None:
    """Files and folders below it, beside it, or from the top."""
    named = re.findall(r"`([\w./-]+(?:\.(?:py|md|html|css|js|toml)|/))`", readme.read_text())
    places = [*readme.parents[: len(readme.relative_to(ROOT).parts)], ROOT / "templates"]
    assert [name for name in named if not is_there(name, readme.parent, places)] == []


def is_there(name: str, folder: Path, places: list[Path]) -> bool:
    return any((place / name).exists() for place in places) or any(folder.rglob(name.rstrip("/")))


def test_a_module_names_others_as_they_are_called() -> None:
    """What the words at the top of a module put in backticks is a module, a folder or a name in the code."""
    sources = {path: path.read_text() for package in PACKAGES for path in package.glob("*.py")}
    known = {name for path in sources for name in (path.stem, path.parent.name)}
    for text in sources.values():
        known |= set(re.findall(r"\w+", re.sub(r'"""[\s\S]*?"""|#.*', "", text)))
    told = {path: ast.get_docstring(ast.parse(text)) or "" for path, text in sources.items()}
    named = {(path, name) for path, text in told.items() for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", text)}
    assert [(relative(path), name) for path, name in sorted(named) if not set(name.split(".")) <= known] == []


# --- packages ---------------------------------------------------------------------------------------


def pins() -> dict[str, str]:
    """Package -> pinned version, as the lock file has it."""
    lines = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line) for line in lines), "a hash or a local version"
    return {(name := line.partition("==")[0]): line.removeprefix(f"{name}==").partition(" ")[0] for line in lines}


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(line) for line in [*project["dependencies"], *project["optional-dependencies"]["dev"]]]


def test_every_dependency_is_pinned_as_asked() -> None:
    pinned = pins()
    for requirement in wanted():
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_everything_that_a_dependency_needs_is_pinned_too() -> None:
    pinned = pins()
    waiting = [(requirement, extra) for requirement in wanted() for extra in ["", *requirement.extras]]
    seen = set()
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        seen.add((name, extra))
        assert name in pinned, requirement
        for line in importlib.metadata.requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed, each) for each in ["", *needed.extras]]
