"""Labels of other methods, and MAIA transcripts: taken in as far as they tell, refused with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.exchange import import_labels, maia_history
from experiments.exchange.import_bundle import ImportSource
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Image, ImportedRun, Label, Layer, Observation, Run, SearchText, Unit, VisionModelRow
from tests.support.histories import HISTORY, text, url
from workers.jobs import exchange

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
def layer(db: None) -> Layer:
    model = VisionModelRow.objects.create(name="hf:own/net")
    return Layer.objects.create(model=model, position=4, name="layer4", path="net.layer4", kind="conv", units=64)


# --- labels ---------------------------------------------------------------------------------------------


def labelled(path: Path, text: str | bytes, source: str = "milan", model: str = "hf:own/net") -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_labels.import_label_file(path, model, source)


@pytest.mark.parametrize(
    "text",
    [
        "layer,unit,description\nlayer4,3,dogs\nnet.layer4,5,a <b>cat</b>\n",
        "unit;layer;label\n3;layer4;dogs\n5;LAYER4;a <b>cat</b>\n",
        '\ufeffLayer Name\tNeuron\tCaption\nlayer4\t3\tdogs\n\nlayer4\t5\t"a <b>cat</b>"\n',
    ],
)
def test_columns_are_found_by_their_headers(layer: Layer, tmp_path: Path, text: str) -> None:
    assert labelled(tmp_path / "x.csv", text) == "Labels of hf:own/net from milan: 2 saved, on 2 units."
    found = Label.objects.order_by("units__number").values_list("text", "source", "units__number", "units__layer")
    assert list(found) == [("dogs", "milan", 3, layer.pk), ("a <b>cat</b>", "milan", 5, layer.pk)]
    assert SearchText.objects.filter(normalized__contains="dogs", unit=3).count() == 1


def test_numbers_beside_a_label_are_kept_as_scores(layer: Layer, tmp_path: Path) -> None:
    labelled(tmp_path / "x.csv", "layer,unit,description,pmi,note,auc\nlayer4,3,dogs,0.5,nice,nan\n")
    assert Label.objects.get().scores == {"pmi": 0.5}


def test_several_labels_of_a_unit_are_numbered_and_none_comes_twice(layer: Layer, tmp_path: Path) -> None:
    labelled(tmp_path / "x.csv", "layer,unit,description\nlayer4,3,dogs\nlayer4,3,cats\n")
    again = labelled(tmp_path / "x.csv", "layer,unit,description\nlayer4,3,dogs\nlayer4,3,birds\n")
    assert again == "Labels of hf:own/net from milan: 1 saved, on 1 units. Here already: 1."
    assert list(Label.objects.values_list("text", "position")) == [("dogs", 1), ("cats", 2), ("birds", 2)]
    labelled(tmp_path / "x.csv", "layer,unit,description\nlayer4,3,dogs\n", source="clip-dissect")
    assert Label.objects.filter(text="dogs").count() == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The file is empty."),
        (
            "a,b\n1,2\n",
            "No column names the layer. Call it layer, or say of which layer all units are; the columns are: a, b.",
        ),
        ("layer,unit\n1,2\n", "No column names the description."),
        ("layer,unit,label\nlayer9,2,x\n", "Line 2: hf:own/net has no layer 'layer9'. Its layers are layer4."),
        ("layer,unit,label\nlayer4,64,x\n", "Line 2: layer4 has units 0 to 63, not 64."),
        ("layer,unit,label\nlayer4,1e3,x\n", "Line 2: '1e3' is not the number of a unit."),
        ("layer,unit,label\nlayer4,2,\nlayer4,3,nan\n", "Line 2: the label is empty. Line 3: the label is empty."),
        ("layer,unit,label\n", "a header and no labels"),
        ("layer,unit,label\nlayer4,2\n", "Line 2 has 2 columns, the header 3."),
        ("," * 100_000 + "\n", "has 100,001 columns"),
        ("," * 1_000_000 + "\n", "A line has over 200,000 characters."),
        ('layer,unit,label\nlayer4,2,"x\n', "The file is no CSV"),
        ("layer,unit,label\nlayer4,2,caf\u00e9\n".encode("latin-1"), "not in UTF-8"),
        (b"PK\x03\x04\x00\x00\xff\xff", "a workbook"),
        (b"PAR1\x15", "Parquet"),
        (b"\x89\x00\xff\xff", "UTF-8"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_leaves_nothing(
    layer: Layer, tmp_path: Path, text: str | bytes, says: str
) -> None:
    with pytest.raises(ExchangeError) as caught:
        labelled(tmp_path / "x.csv", text)
    assert says in str(caught.value)
    assert not Label.objects.exists()
    assert not Unit.objects.exists()


def test_labels_in_utf_16_are_read(layer: Layer, tmp_path: Path) -> None:
    labelled(tmp_path / "x.csv", "layer,unit,description\nlayer4,3,\u732b\n".encode("utf-16"))
    assert Label.objects.get().text == "\u732b"


@pytest.mark.parametrize(("source", "model"), [("run", "hf:own/net"), ("", "hf:own/net"), ("milan", "nobody")])
def test_a_source_or_model_that_makes_no_sense_is_refused(
    layer: Layer, tmp_path: Path, source: str, model: str
) -> None:
    with pytest.raises(ExchangeError):
        labelled(tmp_path / "x.csv", "layer,unit,description\nlayer4,3,dogs\n", source, model)


# --- transcripts ------------------------------------------------------------------------------------------


ABOUT = {"model": "hf:own/net", "layer": "layer4", "unit": "7", "backbone_model": "gpt-4", "question": ""}


def told(path: Path, history: Any, by: User, **about: str) -> Run:
    path.write_text(history if isinstance(history, str) else json.dumps(history))
    return maia_history.import_history(path, ImportSource(path.name, by), ABOUT | about, exchange.laboratory()).run


def test_a_published_transcript_becomes_a_run(layer: Layer, owner: User, tmp_path: Path) -> None:
    run = told(tmp_path / "history.json", HISTORY, owner)
    kinds = list(run.events.values_list("kind", flat=True))
    assert kinds == ["started", "reply", "experiment", "result", "reply", "reminder", "reply", "concluded"]
    run.refresh_from_db()
    assert (run.status, run.rounds, run.labels, run.best_activation) == ("concluded", 3, ["dogs"], 3.2)
    assert list(run.hypotheses.values_list("text", flat=True)) == ["dogs <b>", "cats"]
    rows = Observation.objects.order_by("position").values_list("title", "activation", "origin")
    assert list(rows) == [("a dog on grass", 3.2, "external"), ("a cat", -0.5, "external")]
    assert run.events.get(seq=4).payload["entries"][0]["text"] == "Overall dogs win."
    assert run.events.first().payload["instructions"] == "You are an agent."
    assert Unit.objects.get().labels.get().text == "dogs"
    assert ImportedRun.objects.get().kind == "history"
    assert "def execute_command" in run.experiments.get().code
    assert told(tmp_path / "history.json", HISTORY, owner) == run, "brought twice"
    assert Run.objects.count() == 1


def display(*parts: Any) -> dict[str, Any]:
    """A message as the published code of 2025 appends it for each call of `display`."""
    return {"role": "user", "content": [text(part) if isinstance(part, str) else part for part in parts]}


@pytest.mark.parametrize(
    ("messages", "wanted", "left"),
    [
        (
            [display(url(1), "Exemplar 1 - Activation: 36.92"), display(url(2), "Exemplar 2 - Activation: -0.5")],
            [("Exemplar 1", 36.92, 1), ("Exemplar 2", -0.5, 2)],
            0,
        ),
        (
            [display(url(1), "prompt 0 - Activation: 10.5", url(2), "prompt 1 - Activation: 20.5", url(3), "c: 30.5")],
            [("prompt 0", 10.5, 1), ("prompt 1", 20.5, 2)],
            1,
        ),
        (
            [display("Best activation: 40"), display(url(1), "a - Activation: 1"), display("Done")],
            [("a", 1.0, 1)],
            0,
        ),
        ([display("Edits", url(1), "a, activation 2", url(2), "b, activation 3")], [("a", 2.0, 1), ("b", 3.0, 2)], 0),
        ([display("a, activation: 2", url(1), "b, activation: 3", url(2))], [("a", 2.0, 1), ("b", 3.0, 2)], 0),
        ([display(url(1), url(2), "Activations: 1 and 2")], [], 2),
        ([display(url(1))], [], 1),
    ],
    ids=["a call each", "one call", "with output", "after a title", "before", "two for one text", "alone"],
)
def test_every_image_has_its_own_words_whether_they_stand_before_or_after_it(
    owner: User, tmp_path: Path, messages: list[Any], wanted: list[Any], left: int
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([*HISTORY[:3], *messages, *HISTORY[4:]]))
    (taken,) = [maia_history.import_history(path, ImportSource(path.name, owner), ABOUT, exchange.laboratory())]
    keys = {
        n: maia_history.HistoryImages(exchange.laboratory(), tmp_path).key(url(n)["image_url"]["url"], "")
        for n in (1, 2)
    }
    rows = Observation.objects.order_by("position").values_list("title", "activation", "image")
    assert list(rows) == [(title, activation, keys[shade]) for title, activation, shade in wanted]
    says = exchange.describe_result([taken])
    assert (f"Of its {left + len(wanted)} images {left} are left out" in says) == bool(left)
    assert [each for each in taken.run.events.values_list("kind", flat=True) if each == "reminder"] == ["reminder"], (
        "none more"
    )
    words = taken.run.events.get(kind="result").payload["entries"][0]["text"]
    assert all(word in words for word in ("Done", "Best activation: 40")) == (len(messages) == 3)


def test_a_transcript_without_an_end_says_so(owner: User, tmp_path: Path) -> None:
    run = told(tmp_path / "x.json", HISTORY[:3], owner)
    assert (run.status, run.reason) == ("cancelled", "The transcript ends with a program whose result is not in it.")
    run = told(tmp_path / "x.json", HISTORY[:5], owner)
    assert run.reason == "The transcript ends without a conclusion."


def test_an_error_of_a_program_and_an_image_without_an_activation_are_kept_as_such(owner: User, tmp_path: Path) -> None:
    failed = [{"role": "user", "content": "Traceback (most recent call last):\nNameError"}]
    run = told(tmp_path / "x.json", HISTORY[:3] + failed, owner)
    assert (run.experiments.get().status, "NameError" in run.experiments.get().error) == ("program_error", True)
    shown = {"role": "user", "content": [text("just a picture"), url(3)]}
    run = told(tmp_path / "x.json", [*HISTORY[:3], shown], owner)
    assert run.observation_count == 0
    assert "no activation is left out" in run.events.get(kind="result").payload["entries"][0]["text"]


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ("{", "no JSON"),
        ("[]", "A transcript is a list of messages"),
        ({"messages": 3}, "A transcript is a list of messages"),
        ([{"role": "user", "content": "x"}], "No message is the assistant's"),
        ([{"role": "odd", "content": "x"}], "Message 1 has no role"),
        ([{"role": {"items": 1}, "content": "x"}], "Message 1 has no role"),
        ([{"role": "user", "content": [{"type": ["x"]}]}], "Message 1: ['x'] is no kind"),
        ([{"role": "user", "content": 3}], "Message 1: its content is neither"),
        ([{"role": "user", "content": [{"type": "audio"}]}], "Message 1: 'audio' is no kind"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "http://x/y.png"}]}], "data URLs"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": 7}}]}], "the image is 7"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}],
            "Message 1: the image cannot be taken",
        ),
        ([{"role": "user", "content": "x"}] * 2_001, "2,001 messages"),
    ],
)
def test_a_transcript_that_makes_no_sense_is_refused_and_leaves_nothing(
    owner: User, tmp_path: Path, history: Any, says: str
) -> None:
    with pytest.raises(ExchangeError) as caught:
        told(tmp_path / "x.json", history, owner)
    assert says in str(caught.value)
    assert not Run.objects.exists()
    assert not Image.objects.exists()


@pytest.mark.parametrize("about", [{"unit": "x"}, {"model": "m" * 201}, {"unit": "-1"}])
def test_a_transcript_of_a_system_that_makes_no_sense_is_refused(
    owner: User, tmp_path: Path, about: dict[str, str]
) -> None:
    with pytest.raises(ExchangeError):
        told(tmp_path / "x.json", HISTORY, owner, **about)
    assert not Run.objects.exists()
