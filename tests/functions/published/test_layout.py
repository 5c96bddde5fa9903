"""The published layout: read and written again without loss, and what is bad in it is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.find_folder import CLEAN, NETWORK, change_json, write_code, write_find_folder
from workers.errors import MissingPart, RequestError
from workers.functions.published.conflicts import MAX_CODE, explain_trouble
from workers.functions.published.layout import CATEGORIES, find_root, read_layout
from workers.functions.published.writer import write_layout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_find_folder(tmp_path / "find-dataset")


def list_files(root: Path) -> dict[str, Any]:
    """Every file below: JSON as parsed, others as bytes."""
    return {
        str(path.relative_to(root)): json.loads(path.read_bytes()) if path.suffix == ".json" else path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def find_trouble(folder: Path, family: Any, number: int) -> str:
    return explain_trouble(read_layout(folder).categories[family], number)


def test_what_is_read_is_written_again(folder: Path, tmp_path: Path) -> None:
    write_layout(read_layout(folder), tmp_path / "again")
    assert list_files(tmp_path / "again") == list_files(folder)
    assert "a field of later" in (tmp_path / "again" / "numeric" / "data.json").read_text()


def test_bad_input_is_written_again_too(folder: Path, tmp_path: Path) -> None:
    (folder / "numeric" / "data.json").write_text("[{")
    (folder / "numeric" / "f00000" / "function_code.py").write_bytes(b"\xff\xfe")
    (folder / "numeric" / "f00001" / "large.bin").write_bytes(b"x" * (2 << 20))
    change_json(folder, "strings/test_data.json", lambda rows: rows.append(3))
    write_layout(read_layout(folder), tmp_path / "again")
    assert (tmp_path / "again" / "numeric" / "data.json").read_text() == "[{"
    kept = [path for path in folder.rglob("*") if path.is_file() and path != folder / "numeric" / "data.json"]
    for path in kept:
        other = tmp_path / "again" / path.relative_to(folder)
        assert other.exists(), path
        if path.suffix != ".json":
            assert other.read_bytes() == path.read_bytes()
    assert json.loads((tmp_path / "again" / "strings" / "test_data.json").read_text())[-1] == 3


def test_a_folder_that_is_not_empty_is_not_written_into(folder: Path) -> None:
    with pytest.raises(RequestError, match="not an empty folder"):
        write_layout(read_layout(folder), folder)


@pytest.mark.parametrize("inside", ["", "find-dataset", "src/find-dataset"])
def test_the_folder_may_hold_the_benchmark(tmp_path: Path, inside: str) -> None:
    write_find_folder(tmp_path / "clone" / inside)
    assert find_root(tmp_path / "clone") == tmp_path / "clone" / inside


@pytest.mark.parametrize("name", ["nowhere", "", "x" * 300])
def test_a_folder_without_the_benchmark_says_where_it_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingPart, match=r"8039658") as raised:
        read_layout(tmp_path / name)
    assert str(tmp_path) in str(raised.value)


def test_an_incomplete_folder_is_ordinary(folder: Path) -> None:
    numeric = read_layout(folder).categories["numeric"]
    assert (len(numeric.rows), len(numeric.functions)) == (7, 6)
    assert "folder is not here" in explain_trouble(numeric, 6)
    assert {number: explain_trouble(numeric, number) for number in numeric.functions} == dict.fromkeys(range(6), "")


def test_a_missing_category_is_left_out(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder / "strings")
    assert {*read_layout(folder).categories} == {*CATEGORIES} - {"strings"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[{", "is no JSON"),
        ("{}", "holds a dict"),
        ("\udcff", "is no JSON"),
        ("[" * 99_999, "is no JSON"),
        ('["\\ud800"]', "is no JSON"),
    ],
)
def test_a_broken_list_makes_its_category_unreadable_alone(folder: Path, text: str, says: str) -> None:
    (folder / "numeric" / "data.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    categories = read_layout(folder).categories
    assert says in categories["numeric"].unreadable
    assert says in explain_trouble(categories["numeric"], 0)
    assert explain_trouble(categories["strings"], 0) == ""


@pytest.mark.parametrize("name", ["../x", "/etc/f00000", "f0", 7, None, "f00000\n"])
def test_an_odd_folder_name_is_listed_and_not_followed(folder: Path, name: Any) -> None:
    change_json(folder, "numeric/data.json", lambda rows: rows[0].update(dir=name))
    numeric = read_layout(folder).categories["numeric"]
    assert "not a folder's name" in numeric.troubles[0]
    assert "does not name it" in explain_trouble(numeric, 0)


def test_a_row_of_another_form_is_named(folder: Path) -> None:
    change_json(folder, "neurons_entities/data.json", lambda rows: rows[0].update(concept1=3))
    assert "not as published" in find_trouble(folder, "concepts", 0)


def test_tests_of_another_form_are_named(folder: Path) -> None:
    change_json(folder, "strings/unit_test_data.json", lambda rows: rows[0].update(correct_inx=[4] * 10))
    assert "10 tests" in find_trouble(folder, "strings", 0)


def test_a_link_that_leads_out_is_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text(CLEAN)
    code = folder / "numeric" / "f00000" / "function_code.py"
    code.unlink()
    code.symlink_to(secret)
    outside = write_code(tmp_path, "outside", CLEAN).parent
    (folder / "numeric" / "f00009").symlink_to(outside)
    numeric = read_layout(folder).categories["numeric"]
    for number in (0, 9):
        assert "leads out" in explain_trouble(numeric, number)
        assert not any(secret.read_bytes() == data for data in numeric.functions[number].files.values())


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (b"#" * (MAX_CODE + 1), "over 100,000"),
        (b"\xff", "no UTF-8"),
        (b"a\0b", "zero byte"),
        (None, "has no function_code"),
    ],
)
def test_code_that_is_no_text_is_not_run(folder: Path, code: bytes | None, says: str) -> None:
    path = folder / "numeric" / "f00000" / "function_code.py"
    path.unlink()
    if code is not None:
        path.write_bytes(code)
    assert says in find_trouble(folder, "numeric", 0)


def _ship(number: int, file: str) -> Callable[[Path], None]:
    key = f"f{number:05d}"
    return lambda folder: change_json(folder, "numeric/func_name_dict.json", lambda names: names.update({key: file}))


@pytest.mark.parametrize(
    ("family", "number", "change"),
    [
        ("numeric", 0, _ship(0, "load_mlp.py")),
        ("numeric", 0, lambda folder: write_code(folder, "numeric/f00000", NETWORK)),
        ("numeric", 2, _ship(2, "function_code.py")),
        ("numeric", 0, _ship(0, "noised_function_code.py")),
        (
            "numeric",
            2,
            lambda folder: change_json(folder, "numeric/data.json", lambda rows: rows[2].update(noise_type="normal")),
        ),
        ("numeric", 0, lambda folder: change_json(folder, "numeric/data.json", lambda rows: rows.append(rows[0]))),
        ("concepts", 0, lambda folder: write_code(folder, "neurons_entities/f00000", "concept = 'seaside'")),
        ("relations", 0, lambda folder: write_code(folder, "neurons_relations/f00000", "con1 = 'a country'")),
        ("strings", 0, lambda folder: change_json(folder, "strings/unit_test_data.json", lambda rows: rows.pop(0))),
        ("strings", 0, lambda folder: change_json(folder, "strings/test_data.json", lambda rows: rows.pop(0))),
        ("concepts", 1, lambda folder: (folder / "neurons_entities/f00001/initial.json").write_text('["sand"]')),
    ],
)
def test_a_function_of_two_versions_is_never_guessed(
    folder: Path, family: Any, number: int, change: Callable[[Path], Any]
) -> None:
    before = find_trouble(folder, family, number)
    change(folder)
    assert "two versions" not in before
    assert "of two versions" in find_trouble(folder, family, number)


def test_the_digest_changes_with_any_file(folder: Path) -> None:
    before = read_layout(folder).digest()
    assert read_layout(folder).digest() == before
    (folder / "strings" / "f00001" / "function_code.py").write_text("def function(string):\n    return ''\n")
    assert read_layout(folder).digest() != before
