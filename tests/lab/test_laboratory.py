"""The laboratory: plug-ins loaded once, names checked, a context for each experiment."""

import threading

import pytest

from tests.support import tiny_lab
from tests.support.tiny_lab import RED, SPEC, square, tiny_bench
from workers import registry
from workers.errors import Cancelled, UnknownName
from workers.lab.imaging import decode_image_base64, image_key
from workers.lab.laboratory import MAX_SUBJECTS
from workers.record.systems import SystemSpec


def keys_of(masks):
    return [image_key(decode_image_base64(mask)) for mask in masks]


def test_it_knows_the_layers_of_a_model(lab):
    assert [(info.name, info.units) for info in lab.layers("tiny")] == [("patches", 4), ("logits", 4)]


def test_it_loads_each_plugin_once_however_many_threads_ask(lab, monkeypatch):
    loaded, models, gate = [], [], threading.Barrier(8)

    def load(settings):
        loaded.append(settings)
        return tiny_lab.TinyModel()

    monkeypatch.setattr(tiny_lab, "load_model", load)

    def ask():
        gate.wait()
        models.append(lab.model("tiny"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 1
    assert len({id(model) for model in models}) == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SystemSpec("orchestra", "tiny", "patches", 0), "no 'orchestra' here. Choose one of: unit"),
        (SystemSpec("unit", "resnet", "patches", 0), "no 'resnet' here. Choose one of: tiny"),
        (SystemSpec("unit", "tiny", "layer9", 0), "tiny has no layer 'layer9'. Choose one of: patches, logits"),
        (SystemSpec("unit", "tiny", "patches", 4), "patches of tiny has no unit 4. Choose one from 0 to 3"),
        (SystemSpec("unit", "tiny", "patches", -1), "no unit -1"),
        (SystemSpec("unit", "tiny", "patches", True), "no unit True"),
        (SystemSpec("unit", "tiny", "patches", 0, {"dataset": "imagenet"}), "no 'imagenet' here. Choose one of: tiny"),
    ],
)
def test_it_names_what_there_is_instead_of_what_there_is_not(lab, spec, message):
    with pytest.raises(UnknownName, match=message):
        lab.subject(spec)


def test_it_keeps_a_subject_and_forgets_the_oldest_when_there_are_too_many(lab):
    first = lab.subject(SPEC)
    assert lab.subject(SystemSpec("unit", "tiny", "patches", RED, {})) is first
    for number in range(MAX_SUBJECTS):
        lab.subject(SystemSpec("unit", "tiny", "patches", RED, {"note": number}))
    assert lab.subject(SPEC) is not first


def test_it_sets_up_a_bench_on_which_a_whole_experiment_runs(lab):
    context = tiny_bench(lab)
    assert context.facts["system.layer"] == "patches"
    calls = context.calls("function")
    activations, masked = calls["tools.dataset_exemplars"]("system")
    calls["tools.log_experiment"](activations, masked, ["a", "b", "c"], calls["tools.summarize_images"](masked))
    images, titles = calls["tools.edit_images"](["a blue one"], ["make it green"])
    calls["tools.log_experiment"](*calls["system.neuron"](images), titles)
    first, second = context.tools.entries
    assert [seen.activation for seen in first.observations] == pytest.approx([1.0, 1.0, 0.2])
    assert [(seen.activation, seen.origin) for seen in second.observations] == [(0.0, "original"), (0.0, "edited")]
    assert context.tools.exemplar_mean == pytest.approx(2.2 / 3)


def test_it_says_what_it_indexes_and_can_be_cancelled_meanwhile(lab):
    said = []
    tiny_bench(lab, progress=lambda *each: said.append(each))
    assert said[0] == ("Indexing tiny patches", 0, 6)

    def stop(what, done, total):
        raise Cancelled("A person stopped the run.")

    with pytest.raises(Cancelled):
        tiny_bench(lab, SystemSpec("unit", "tiny", "logits", RED), progress=stop)


def test_two_runs_at_once_on_one_model_get_what_each_would_get_alone(lab):
    images = [square(colour, corner) for colour in ("red", "grey", "blue") for corner in range(4)]
    alone = tiny_bench(lab).system.neuron(images)
    found: list[tuple[list[float], list[str]]] = []

    def work():
        context = tiny_bench(lab)
        found.extend(context.system.neuron(images) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # PyTorch may sum in another order on another thread, and the deflate is free to write the same pixels otherwise.
    assert [activations for activations, _ in found] == [pytest.approx(alone[0], abs=1e-6)] * 40
    assert [keys_of(masks) for _, masks in found] == [keys_of(alone[1])] * 40


def test_it_loads_no_describer_nor_editor_until_one_is_needed(lab, monkeypatch):
    monkeypatch.setitem(registry.TOOLSETS, "poor", registry.Toolset("Poor", "tiny", "nothing", "nothing"))
    context = tiny_bench(lab, toolset="poor")
    context.tools.text2image(["red"])
    with pytest.raises(UnknownName, match="no 'nothing' here"):
        context.tools.summarize_images([square("red")])
    assert image_key(decode_image_base64(context.system.neuron([square("red")])[1][0]))
