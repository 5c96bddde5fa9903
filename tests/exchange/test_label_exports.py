"""Labels as CoSy, delphi and Neuronpedia read them: every character comes back, and places that are hidden stay so."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.exchange import import_labels
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Image, Label, Layer, VisionModelRow
from tests.support import blind_runs
from tests.support.api_world import KEY
from tests.support.bundles import exported
from tests.support.people import member

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

MODEL = "hf:own/net"
FORMATS = ("cosy", "delphi", "neuronpedia")
TEXTS = (
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://example.org")',
    "'=quoted",
    "+1, -1; @x|%y",
    "two\nlines",
    "\r\nlines\rof\n three systems \t",
    'a "quoted", comma; tab\there',
    "café, “naïve” 日本語 🦜",
    "nan",
    "None",
    "['a', 'b']",
    "[('dog', 0.5)]",
    "</title><script>alert(1)</script>",
    '{"json": true}',
)


@pytest.fixture
def layer() -> Layer:
    return add_layer(MODEL)


def add_layer(model: str, name: str = "layer4/mlp") -> Layer:
    row, _ = VisionModelRow.objects.get_or_create(name=model)
    return Layer.objects.create(model=row, position=1, name=name, path=name, kind="conv", units=64)


def fill_labels(*layers: Layer) -> None:
    """Hostile labels of units from two sources, several on one unit, and one on two units."""
    for place, text in enumerate(TEXTS):
        source = ("milan", "clip dissect/2")[place % 2]
        label = Label.objects.create(
            text=text, source=source, position=place + 1, scores={"auc": 0.1 + place, "=n": -2.0}
        )
        for layer in layers:
            label.units.add(layer.unit_set.get_or_create(number=place // 3)[0])


def rows() -> list[tuple[Any, ...]]:
    """Each label on each of its units, with everything that is kept of it."""
    place = ("units__layer__model__name", "units__layer__name", "units__number")
    found = Label.objects.values_list(*place, "text", "source", "position", "scores__auc", "scores__=n")
    return sorted(found, key=str)


def brought(path: Path, data: bytes, **about: Any) -> str:
    path.write_bytes(data)
    return import_labels.import_label_file(path, MODEL, "theirs", **about)


@pytest.mark.parametrize("form", [*FORMATS, "csv", "jsonl", "dataset"])
def test_labels_come_back_with_every_character(owner: User, tmp_path: Path, layer: Layer, form: str) -> None:
    fill_labels(layer, add_layer("hf:other/net"), add_layer(MODEL, "layer4_mlp"))
    before = rows()
    assert len(before) == 3 * len(TEXTS)
    job, data = exported(owner, "labels", form)
    assert job.status == "done", job.result
    Label.objects.all().delete()
    says = brought(tmp_path / "x", data)
    assert f"{len(before):,} saved" in says
    assert "Not usable" not in says
    assert rows() == before
    assert f"Here already: {len(before)}." in brought(tmp_path / "x", data), "brought twice"
    assert rows() == before


def test_cosy_finds_the_label_of_a_unit_and_no_cell_is_a_formula(owner: User, layer: Layer) -> None:
    fill_labels(layer)
    table = list(csv.reader(io.StringIO(exported(owner, "labels", "cosy")[1].decode("utf-8-sig"), newline="")))
    assert table[0][:3] == ["layer", "unit", "description"]
    assert [int(row[1]) for row in table[1:]] == [place // 3 for place in range(len(TEXTS))]
    assert not [cell for row in table for cell in row if cell.lstrip().startswith(("=", "+", "-", "@", "|", "%"))]


def test_delphi_finds_the_label_of_a_latent_as_json(owner: User, tmp_path: Path, layer: Layer) -> None:
    fill_labels(layer)
    packed = zipfile.ZipFile(io.BytesIO(exported(owner, "labels", "delphi")[1]))
    folder = "hf_own_net/milan/explanations"
    assert json.loads(packed.read(f"{folder}/layer4_mlp_latent0.txt")) == TEXTS[0]
    assert json.loads(packed.read("hf_own_net/milan-2/explanations/layer4_mlp_latent0.txt")) == TEXTS[2]
    assert all(name == "index.jsonl" or ".." not in name for name in packed.namelist())


def test_files_that_delphi_wrote_itself_are_read_by_their_names(owner: User, tmp_path: Path) -> None:
    add_layer(MODEL, "layers.5")
    with zipfile.ZipFile(tmp_path / "theirs.zip", "w") as packed:
        packed.writestr("run/explanations/layers.5_latent12.txt", json.dumps("boats\n=1"))
        packed.writestr("run/explanations/layers.5_latent13.txt", "not json")
        packed.writestr("run/scores/detection/layers.5_latent12.txt", "[]")
    says = import_labels.import_label_file(tmp_path / "theirs.zip", MODEL, "delphi")
    assert "1 saved, on 1 units. Not usable: 1. explanations/layers.5_latent13.txt is no JSON" in says
    assert list(Label.objects.values_list("text", "source", "units__number")) == [("boats\n=1", "delphi", 12)]


def test_a_line_has_the_fields_of_neuronpedia(owner: User, layer: Layer) -> None:
    fill_labels(layer)
    line = json.loads(exported(owner, "labels", "neuronpedia")[1].splitlines()[0])
    assert (line["modelId"], line["layer"], line["index"]) == (MODEL, "layer4/mlp", "0")
    assert (line["description"], line["typeName"], line["explanationModelName"]) == (TEXTS[0], "milan", None)
    scores = {each["explanationScoreTypeName"]: each["value"] for each in line["scores"]}
    assert scores == {"auc": 0.1, "=n": -2.0}


def test_lines_of_neuronpedia_itself_are_read_for_the_model_that_is_said(tmp_path: Path, layer: Layer) -> None:
    theirs = {"modelId": "gpt2-small", "layer": "layer4/mlp", "index": "7", "description": "boats", "typeName": "x"}
    brought(tmp_path / "x", json.dumps(theirs).encode() + b"\n")
    assert list(Label.objects.values_list("text", "source", "units__number")) == [("boats", "theirs", 7)]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"index.jsonl": '{"file": "a.txt"}\n', "a.txt": "[]"}, "holds no text"),
        ({"index.jsonl": '{"file": "a.txt", "unit": "x"}\n', "a.txt": '"dogs"'}, "'x' is not the number of a unit"),
        ({"index.jsonl": '{"file": "../a.txt"}\n', "../a.txt": '"dogs"'}, "a path outside the archive"),
        ({"explanations/layer4_latent1.txt": '"' + "x" * 2_000_000 + '"'}, "is larger than"),
        ({"explanations/layer4_latent1.txt": '""'}, "the label is empty"),
        ({"xl/workbook.xml": "<x/>"}, "The file is Parquet or a workbook."),
    ],
)  # fmt: skip
def test_archives_that_hold_no_labels_are_refused(
    tmp_path: Path, layer: Layer, members: dict[str, str], says: str
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        for name, text in members.items():
            packed.writestr(name, text)
    with pytest.raises(ExchangeError, match=says):
        import_labels.import_label_file(tmp_path / "x.zip", MODEL, "theirs")
    assert not Label.objects.exists()


@pytest.mark.parametrize("form", [*FORMATS, "dataset"])
def test_whoever_is_to_judge_a_run_unseen_reads_its_label_and_no_place(owner: User, tmp_path: Path, form: str) -> None:
    blind_runs.catalogue()
    Image.objects.create(key=KEY, width=1, height=1, origin="generated")
    blind_runs.queued(blind_runs.blind_run(owner), judge := member("judge", "REVIEWER"))
    told, hidden = exported(owner, "labels", form)[1], exported(judge, "labels", form)[1]
    assert blind_runs.TOLD in _text_of(told)
    assert blind_runs.TOLD not in _text_of(hidden)
    if form != "dataset":
        assert "red balls" in _text_of(told)
    add_layer(MODEL)
    with pytest.raises(ExchangeError, match=r"not the number of a unit|names no unit"):
        brought(tmp_path / "x", hidden)


def _text_of(data: bytes) -> str:
    """Names and contents of the members of an archive, or a file that is none."""
    if not data.startswith(b"PK"):
        return data.decode()
    packed = zipfile.ZipFile(io.BytesIO(data))
    return "\n".join(name + packed.read(name).decode(errors="replace") for name in packed.namelist())
