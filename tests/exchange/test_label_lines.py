"""Files of labels as pandas and spreadsheets write them, and as we do: what can be used goes in, the rest is listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core.spreadsheets import cell, unguard
from experiments.exchange import import_labels
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Label, Layer, VisionModelRow
from tests.support.bundles import exported

pytestmark = pytest.mark.usefixtures("redis_url")

MODEL = "hf:own/net"
HOSTILE = (
    '=HYPERLINK("http://example.org")',
    "'=quoted",
    "-stripes",
    "@handles",
    "café, “naïve” 日本語 🦜",
    "two\nlines",
)


@pytest.fixture(autouse=True)
def layer(db: None) -> Layer:
    return add_layer(MODEL)


def add_layer(model: str) -> Layer:
    row = VisionModelRow.objects.create(name=model)
    return Layer.objects.create(model=row, position=1, name="layer4", path="net.layer4", kind="conv", units=64)


def labelled(path: Path, text: str | bytes, **about: Any) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_labels.import_label_file(path, MODEL, "theirs", **about)


def saved() -> list[tuple[int, str, dict[str, Any]]]:
    return list(Label.objects.order_by("pk").values_list("units__number", "text", "scores"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("layer,unit,label,score\nlayer4,1.0,cars,0.5\nlayer4,2.0,ducks,\n", [(1, "cars", 0.5), (2, "ducks", None)]),
        ("layer;unit;description;score\nlayer4;1,0;cars;0,32\n", [(1, "cars", 0.32)]),
        ("layer\tunit\tdescription\tscore\nlayer4\t1\tcars\t0,325\n", [(1, "cars", 0.325)]),
        ('[{"layer": "layer4", "unit": 1.0, "description": "cars", "score": NaN}]', [(1, "cars", None)]),
        ('{"layer":"layer4","unit":1,"label":"cars","score":0.5}\n', [(1, "cars", 0.5)]),
        (
            '\ufeff{"layer":"layer4","unit":1,"label":"cars","score":0.5}\n\n{"unit":2,"layer":"layer4","label":"ducks"}\n',
            [(1, "cars", 0.5), (2, "ducks", None)],
        ),
        ('{"layer":"layer4","unit":1,"label":["cars","red ones"]}\n', [(1, "cars", None), (1, "red ones", None)]),
        ("# by a script, 2026\n\nlayer,unit,label\nlayer4,1,cars\n", [(1, "cars", None)]),
        ("# layer,unit,label\nlayer4,1,cars\n", [(1, "cars", None)]),
    ],
    ids=[
        "units as floats", "decimal comma", "tabs", "records", "one line", "lines", "several labels", "comment",
        "numpy",
    ],
)  # fmt: skip
def test_tables_are_read_as_pandas_and_spreadsheets_write_them(
    tmp_path: Path, text: str, wanted: list[tuple[int, str, float | None]]
) -> None:
    labelled(tmp_path / "x", text)
    assert [(unit, label, scores.get("score")) for unit, label, scores in saved()] == wanted


def test_a_comma_before_three_digits_may_be_thousands(tmp_path: Path) -> None:
    says = labelled(tmp_path / "x", "layer\tunit\tlabel\tcount\nlayer4\t1\tcars\t1,234\n")
    assert says.endswith("Columns left out because they hold text: count.")
    assert saved() == [(1, "cars", {})]
    says = labelled(tmp_path / "x", "layer;unit;label\nlayer4;1,000;ducks\nlayer4;2;birds\n")
    assert says.endswith("Not usable: 1. Line 2: '1,000' is not the number of a unit.")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("layer4,2,", "the label is empty"),
        ("layer4,2,nan", "the label is empty"),
        ("layer4,2,N/A", "the label is empty"),
        ("layer4.1.conv2,2,ducks", "has no layer 'layer4.1.conv2'. Its layers are layer4."),
        ("layer4,x,ducks", "'x' is not the number of a unit"),
        ("layer4,900,ducks", "layer4 has units 0 to 63, not 900."),
        ("layer4,2", "has 2 columns, the header 3"),
    ],
)
def test_what_cannot_be_used_is_listed_and_the_rest_goes_in(tmp_path: Path, line: str, why: str) -> None:
    says = labelled(tmp_path / "x", f"layer,unit,label\nlayer4,1,cars\n{line}\nlayer4,3,birds\n")
    assert "2 saved, on 2 units. Not usable: 1. Line 3" in says
    assert why in says
    assert [unit for unit, *_ in saved()] == [1, 3]


def test_units_of_json_that_cannot_be_used_are_listed(tmp_path: Path) -> None:
    says = labelled(tmp_path / "x", json.dumps({"layer4": {"1": "cars", "x": "ducks", "3": "", "4": {"n": 1}}}))
    assert "1 saved, on 1 units. Not usable: 3. Unit 'x' of 'layer4'" in says
    says = labelled(tmp_path / "y", '{"layer":"layer4","unit":5,"label":"cars"}\n{broken\n[1]\n')
    assert "Not usable: 2. Line 2 is no JSON" in says
    assert "Line 3 is no object" in says


def test_ten_lines_are_told_and_the_others_counted(tmp_path: Path) -> None:
    says = labelled(tmp_path / "x", "layer,unit,label\nlayer4,1,cars\n" + "layer4,2,\n" * 30)
    assert "Not usable: 30. " in says
    assert says.endswith("Line 12: the label is empty. And 20 more.")


def test_a_file_of_which_nothing_can_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"Not usable: 2[.] Line 2: the label is empty[.] Line 3"):
        labelled(tmp_path / "x", "layer,unit,label\nlayer4,1,\nlayer4,2,nan\n")


# --- our own export ---


@pytest.mark.parametrize("text", [*HOSTILE, "plain", "''=x", "'plain", "\tx", " =x", "'\n"])
def test_a_guard_comes_off_again(text: str) -> None:
    assert unguard(cell(text)) == text
    assert not cell(text).lstrip().startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_labels_that_we_exported_come_back_whole(owner: User, tmp_path: Path, layer: Layer, form: str) -> None:
    other = add_layer("hf:other/net")
    for place, (unit_layer, source) in enumerate([(layer, "milan"), (other, "clip-dissect")] * 3):
        label = Label.objects.create(text=HOSTILE[place], source=source, position=place + 1, scores={"pmi": 0.25})
        label.units.add(unit_layer.unit_set.create(number=place), unit_layer.unit_set.create(number=place + 10))
    before, data = everything(), exported(owner, "labels", form)[1]
    assert "Here already: 12." in labelled(tmp_path / "x", data)
    assert everything() == before
    Label.objects.all().delete()
    says = labelled(tmp_path / "x", data)
    assert says == "Labels of hf:own/net, hf:other/net from theirs: 12 saved, on 12 units."
    assert everything() == before


def everything() -> set[tuple[Any, ...]]:
    """Each label on each of its units."""
    fields = ("text", "source", "position", "scores__pmi", "units__number", "units__layer__model__name")
    return set(Label.objects.values_list(*fields))


def test_labels_of_agents_elsewhere_come_from_what_was_said(owner: User, tmp_path: Path, layer: Layer) -> None:
    label = Label.objects.create(text="cars", source="run")
    label.units.add(layer.unit_set.create(number=3))
    data = exported(owner, "labels", "csv")[1]
    assert "0 saved, on 1 units. Here already: 1." in labelled(tmp_path / "x", data)
    Label.objects.all().delete()
    labelled(tmp_path / "x", data)
    assert list(Label.objects.values_list("text", "source")) == [("cars", "theirs")]


def test_an_export_of_a_network_that_is_not_here_is_listed(owner: User, tmp_path: Path, layer: Layer) -> None:
    for unit_layer in (layer, add_layer("hf:other/net")):
        label = Label.objects.create(text="cars", source="milan")
        label.units.add(unit_layer.unit_set.create(number=3))
    data = exported(owner, "labels", "csv")[1]
    Label.objects.all().delete()
    VisionModelRow.objects.filter(name="hf:other/net").delete()
    assert "The layers of 'hf:other/net' are not known here" in labelled(tmp_path / "x", data)
    assert len(saved()) == 1
    assert data.startswith("\ufeff".encode())
