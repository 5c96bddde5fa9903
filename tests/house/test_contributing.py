"""CONTRIBUTING.md is true: its recipes are followed in a copy of the tree, and what they make works there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from subprocess import PIPE, STDOUT

import pytest
from django.utils.module_loading import import_string
from django.utils.text import slugify

from experiments.display.glossary import ENTRIES
from tests import ROOT
from tests.support import event_table
from tests.support.recipes import RECIPES
from tests.support.recipes.recipe import Recipe

pytestmark = pytest.mark.timeout(900)  # a second pytest starts in the copy, and makes a database of its own
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
COPIED = ("maia_web", "experiments", "workers", "templates", "static", "tests", "docker", ".ci")
NAMED = r"`([\w.<>-]+(?:/[\w.<>-]*)+|[A-Z]\w+\.md)`"
"""A path in a recipe; <…> stands for what one chooses."""
ONLY_TOLD = {
    "workers/protocols/models.py",
    "workers/protocols/conversation.py",
    "experiments/core/search_index/texts.py",
}
"""Paths that recipes name for what is to be read there, or seldom to be changed."""


def recipes() -> dict[str, str]:
    """Heading -> its text."""
    chapter = TEXT.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    return dict(part.split("\n", 1) for part in chapter.split("\n### ")[1:])


def covers(pattern: str, path: str) -> bool:
    """Whether a path is one that a recipe names, be it by its folder."""
    wanted = re.sub(r"<\w+>", r"[\\w-]+", pattern.replace(".", r"\."))
    return bool(re.match(wanted if pattern.endswith("/") else f"{wanted}$", path))


@pytest.mark.parametrize("heading", RECIPES)
def test_a_recipe_names_the_files_that_it_takes_and_no_others(heading: str) -> None:
    named, touched = set(re.findall(NAMED, recipes()[heading])) - ONLY_TOLD, RECIPES[heading].touched
    assert {path for path in touched if not any(covers(name, path) for name in named)} == set()
    assert {name for name in named if not any(covers(name, path) for path in touched)} == set()


def test_every_recipe_is_followed() -> None:
    assert list(recipes()) == list(RECIPES)
    assert max(len(text.strip().splitlines()) for text in recipes().values()) <= 14


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of a copy of the tree in which every recipe was followed."""
    copy = tmp_path_factory.mktemp("copy") / "tree"
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, copy)
    for recipe in RECIPES.values():
        recipe.follow(copy)
    subprocess.run([sys.executable, "-m", "tests.support.event_table"], cwd=copy, check=True)
    wanted = [test for recipe in RECIPES.values() for test in (recipe.test[0], *recipe.accepted)]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rpfEs",
        "--tb=short",
        "--show-capture=no",
        "-p",
        "no:cacheprovider",
        *wanted,
        *OF_ALL,
    ]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAIA_", "PYTEST_", "TESTS_"))}
    return subprocess.run(command, cwd=copy, env=own, stdout=PIPE, stderr=STDOUT, text=True).stdout


OF_ALL = ("tests/house/test_docs.py",)
"""What looks at every folder and document."""


def passed(report: str, test: str) -> bool:
    """Whether the test, or every test of the file, was run there and passed."""
    said = re.findall(rf"^(PASSED|FAILED|ERROR|SKIPPED) {re.escape(test)}(?=[ :\[\n]|$)", report, flags=re.MULTILINE)
    return bool(said) and set(said) == {"PASSED"}


@pytest.mark.more
@pytest.mark.parametrize("heading", RECIPES)
def test_what_a_recipe_makes_works(heading: str, reported: str) -> None:
    recipe: Recipe = RECIPES[heading]
    assert [test for test in (recipe.test[0], *recipe.accepted) if not passed(reported, test)] == [], reported[-8000:]


@pytest.mark.more
def test_what_recipes_make_is_accepted_by_the_house(reported: str) -> None:
    assert [test for test in OF_ALL if not passed(reported, test)] == [], reported[-8000:]


def test_the_table_of_events_is_that_of_the_code() -> None:
    assert event_table.PAGE.read_text() == event_table.table(), (
        f"{event_table.PAGE.relative_to(ROOT)} is out of date. Make it again: "
        ".venv/bin/python -m tests.support.event_table"
    )


def test_the_code_that_the_glossary_names_exists() -> None:
    chapter = TEXT.partition("\n## Words\n")[2]
    rows = [line.strip("|").split("|") for line in chapter.splitlines() if line.startswith("| ")][1:]
    names = [name for *_, code in rows for name in re.findall(r"`([\w.]+)`", code)]
    assert len(rows) > 20
    assert [name for name in names if not exists(name)] == []


def test_the_words_of_the_code_are_those_of_the_glossary() -> None:
    table = TEXT.partition("\n## Words\n")[2].partition("|---|---|\n")[2].partition("\n\n")[0]
    words = {line.strip("| ").partition(" |")[0] for line in table.splitlines()}
    assert {word for word in words if slugify(word) not in ENTRIES} == set()


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        return bool(import_module(name) if name.rpartition(".")[2].islower() else import_string(name))
    except ImportError:
        return False
