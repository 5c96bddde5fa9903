"""Labels as the methods of the field publish them: each file goes in, on the right units, or says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from experiments.exchange import import_labels
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Label, Layer, VisionModelRow

pytestmark = pytest.mark.usefixtures("redis_url")

FALCON = """group,Unnamed: 0,concept_set_words,concept_set_noun_phrases
3,0,"[('dog', 0.8)]","[('a dog', 0.75), ('fur', 0.5)]"
"""


@pytest.fixture(autouse=True)
def model(db: None) -> VisionModelRow:
    row = VisionModelRow.objects.create(name="hf:own/net")
    for position, (name, kind, units) in enumerate((("layer4", "conv", 8), ("logits", "logit", 4))):
        Layer.objects.create(model=row, position=position, name=name, path=f"net.{name}", kind=kind, units=units)
    return row


def labelled(path: Path, text: str, **about: Any) -> str:
    path.write_text(text)
    return import_labels.import_label_file(path, "hf:own/net", "theirs", **about)


def saved() -> list[tuple[str, int, str]]:
    return list(Label.objects.order_by("pk").values_list("units__layer__name", "units__number", "text"))


@pytest.mark.parametrize(
    ("text", "about", "wanted", "scores"),
    [
        ("layer,unit,description\nlayer4,3,dogs\nfc,1,cats\n", {}, [("layer4", 3, "dogs"), ("logits", 1, "cats")], {}),
        (
            'layer,unit,description,similarity\nlayer4,3,"dogs, big",1.25\n',
            {},
            [("layer4", 3, "dogs, big")],
            {"similarity": 1.25},
        ),
        (
            "unit,Label 1,Label 2,Label 3\n3,dogs,fur,\n",
            {"layer": "layer4"},
            [("layer4", 3, "dogs"), ("layer4", 3, "fur")],
            {},
        ),
        (
            "neuron,concept,concept_id,metric\n3,dogs,n02084071,0.93\n",
            {"layer": "LAYER4"},
            [("layer4", 3, "dogs")],
            {"metric": 0.93},
        ),
        (
            "unit,category,label,score\n1,scene,reception-s,0.1\n8,object,dog,0.2\n",
            {"layer": "layer4", "first": 1},
            [("layer4", 0, "reception-s"), ("layer4", 7, "dog")],
            {"score": 0.1},
        ),
        (FALCON, {"layer": "layer4"}, [("layer4", 3, "a dog"), ("layer4", 3, "fur")], {"Unnamed: 0": 0, "score": 0.75}),
        (
            json.dumps({"layer4": {"3": "dogs", "4": ["fur", "paws"], "5": {"label": "tails"}}}),
            {},
            [("layer4", 3, "dogs"), ("layer4", 4, "fur"), ("layer4", 4, "paws"), ("layer4", 5, "tails")],
            {},
        ),
        (json.dumps({"3": "dogs"}), {"layer": "layer4"}, [("layer4", 3, "dogs")], {}),
    ],
    ids=["milan", "clip-dissect", "dnd", "invert", "netdissect", "falcon", "json", "json of a layer"],
)
def test_each_format_is_read(
    tmp_path: Path, text: str, about: dict[str, Any], wanted: list[tuple[str, int, str]], scores: dict[str, float]
) -> None:
    labelled(tmp_path / "x", text, **about)
    assert saved() == wanted
    assert Label.objects.earliest("pk").scores == scores


def test_columns_of_words_are_named_as_left_out(tmp_path: Path) -> None:
    says = labelled(tmp_path / "x", "layer,unit,label,category,score\nlayer4,3,dog,object,0.5\n")
    assert says.endswith("Columns left out because they hold text: category.")


def test_a_file_that_may_count_from_one_is_said_to(tmp_path: Path) -> None:
    rows = "\n".join(f"layer4,{unit},x" for unit in range(1, 8))
    assert "No unit 0 is in the file" in labelled(tmp_path / "x", f"layer,unit,label\n{rows}\n")
    assert "No unit 0" not in labelled(tmp_path / "x", f"layer,unit,label\n{rows}\nlayer4,0,y\n")
    with pytest.raises(ExchangeError, match=r"not 8[.] If the file counts units from 1, say so"):
        labelled(tmp_path / "x", f"layer,unit,label\n{rows}\nlayer4,8,x\n")
    with pytest.raises(ExchangeError, match="units 1 to 8, not 0"):
        labelled(tmp_path / "x", "layer,unit,label\nlayer4,0,x\n", first=1)


def test_a_score_that_no_float_holds_makes_a_list_of_words_plain_text(tmp_path: Path) -> None:
    text = f"group,concept_set_noun_phrases\n3,\"[('a dog', {10**400})]\"\n"
    labelled(tmp_path / "x", text, layer="layer4")
    assert [label for _, _, label in saved()] == [f"[('a dog', {10**400})]"]


def test_a_layer_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="Leave the field Layer empty"):
        labelled(tmp_path / "x", "layer,unit,label\nlayer4,3,x\n", layer="layer4")


def test_neurons_of_a_layer_are_called_by_their_kind_too(tmp_path: Path, model: VisionModelRow) -> None:
    Layer.objects.create(model=model, position=3, name="conditional", path="conditional", kind="concept", units=4)
    labelled(tmp_path / "x", "layer,unit,label\nand,2,a dog on grass\n")
    assert saved() == [("conditional", 2, "a dog on grass")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps({"layer4": [1, 2]}), "lists units and holds no labels"),
        (json.dumps([{"role": "user"}]), "holds no labels"),
        (json.dumps({"layer4": {"x": "dogs"}}), "'x' is not the number of a unit"),
        (json.dumps({"layer4": {"3": {"items": 1}}}), "no label of at most"),
        (FALCON.replace("'a dog'", "open('x')").replace(",1,", ",1,"), "No column names the layer"),
    ],
)
def test_what_holds_no_labels_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ExchangeError) as caught:
        labelled(tmp_path / "x", text)
    assert says in str(caught.value)
    assert not Label.objects.exists()


def test_weights_that_publications_do_not_mean_are_told(tmp_path: Path) -> None:
    model = VisionModelRow.objects.create(name="hf:microsoft/resnet-152")
    Layer.objects.create(model=model, position=1, name="layer4", path="layer4", kind="conv", units=8)
    (tmp_path / "x").write_text("layer,unit,label\nlayer4,3,dogs\n")
    assert "another unit there" in import_labels.import_label_file(tmp_path / "x", "hf:microsoft/resnet-152", "milan")


def test_the_command_takes_layer_and_count(tmp_path: Path, capsys: Any, owner: Any) -> None:
    path = tmp_path / "counter.csv"
    path.write_text("unit,label,score\n1,dog,0.5\n")
    known = ("--model", "hf:own/net", "--source", "netdissect", "--layer", "layer4", "--units-from", "1")
    call_command("import_runs", path, *known)
    assert saved() == [("layer4", 0, "dog")]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"layer4": {"3": "dogs"}}))
    call_command("import_runs", path, "--model", "hf:own/net", "--source", "maia")
    assert len(saved()) == 2
    path = tmp_path / "labels.jsonl"
    path.write_text('{"layer": "layer4", "unit": 5, "label": "cats"}\n')
    call_command("import_runs", path, "--model", "hf:own/net", "--source", "maia")
    assert saved()[-1] == ("layer4", 5, "cats")
    with pytest.raises(CommandError, match=r"is a folder[.] Bring the files in it: labels[.]json"):
        call_command("import_runs", tmp_path)
