"""The notebook of the docs: it is one, it is shown, and each of its cells runs against a live installation."""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.installation import Installation, installed
from tests.support.python_client import CLIENT, NOTEBOOK

TOKEN = """
from django.contrib.auth.models import User
from experiments.models import ApiToken, TokenScope
print(ApiToken.issue(User.objects.get(), "notebook", TokenScope.RUN)[1])
"""
PATIENCE = 180.0


def read_cells() -> list[dict[str, Any]]:
    return json.loads(NOTEBOOK.read_text())["cells"]


def run_cell(source: str, space: dict[str, Any]) -> str:
    """What a notebook would show of the last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    found = eval(compile(ast.Expression(last.value), "cell", "eval"), space) if last else None
    return found._repr_html_() if hasattr(found, "_repr_html_") else repr(found)


def test_the_file_is_a_notebook() -> None:
    book = json.loads(NOTEBOOK.read_text())
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book.keys() == {"nbformat", "nbformat_minor", "metadata", "cells"}
    assert book["metadata"]["kernelspec"].keys() == {"name", "display_name", "language"}
    both = {"cell_type", "id", "metadata", "source"}
    keys = {"markdown": both, "code": both | {"execution_count", "outputs"}}
    for cell in book["cells"]:
        assert cell.keys() == keys[cell["cell_type"]]
        assert "".join(cell["source"]).strip()
        assert (cell.get("execution_count"), cell.get("outputs", [])) == (None, []), "it is published without results"
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"]) > 10


def test_the_docs_show_it(as_owner: Client) -> None:
    page = as_owner.get("/api/v1/docs/notebook").content.decode()
    cells = read_cells()
    assert page.count('<pre class="code wrap">') == sum(cell["cell_type"] == "code" for cell in cells)
    assert "Ask about a unit from Python" in page
    assert 'href="/static/client/maia.ipynb" download="maia.ipynb"' in page
    assert '/api/v1/docs/notebook"' in as_owner.get("/api/v1/docs").content.decode()


@pytest.fixture
def site(quick_state: Path) -> Iterator[Installation]:
    """An installation whose worker has named toybox and its backbone."""
    with installed(quick_state, "--no-example") as one:
        one.link()
        named = "SELECT 1 FROM experiments_layer, experiments_backbone WHERE name = 'layer4' AND key = 'scripted'"
        one.until(lambda: one.rows(named), "the worker named no layer or backbone", PATIENCE)
        yield one


@pytest.mark.more
@pytest.mark.timeout(600)
def test_each_cell_runs_against_an_installation(site: Installation, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("MAIA_URL", site.url)
    monkeypatch.setenv("MAIA_TOKEN", site.manage("shell", "-v0", "-c", TOKEN).strip())
    monkeypatch.syspath_prepend(str(CLIENT.parent))
    monkeypatch.delitem(sys.modules, "maia_client", raising=False)
    space: dict[str, Any] = {}
    shown, sent, begun = [], [], time.monotonic()
    for cell in read_cells():
        if cell["cell_type"] == "code":
            shown.append(run_cell("".join(cell["source"]), space))
            if len(shown) == 1:
                space["maia"]._http.session.hooks["response"].append(lambda answer, **_: sent.append(answer.url))
    seconds, said = time.monotonic() - begun, capsys.readouterr()
    print(f"The notebook: {len(shown)} cells, {len(sent)} calls, {seconds:.1f} s")
    run = space["run"]
    assert run.status == "concluded"
    assert f"Labels: {', '.join(run.labels)}" in said.out
    assert f"Run {run.id}" in said.err
    images = [html.count('src="data:image/') for html in shown if "<figure" in html]
    assert images[:2] == [8, 4]
    assert images[2] > 0, "exemplars"
    assert len(space["table"]) == run.data["observations"] > 0
    assert (space["check"]["status"], space["check"]["text"]) == ("done", " OR ".join(run.labels))
    assert f"({space['check']['id']}, 'done', " in "".join(shown)
    assert f"{run.id} concluded" in said.out
