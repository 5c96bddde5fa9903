"""The benches of evaluations, each in a small size: that they still run, and print what they
promise. Those that play whole runs take longest, and are tested by make test-more."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.benches import bench_bias, bench_gpu, bench_metrics, bench_spurious, bench_synthetic
from tests.support import pipelines
from tests.support.quick_laboratory import QUICK_IMAGES
from tests.support.sanity import make_units, read_real_units
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.sandbox.host import ZygoteSandbox
from workers.spurious.evaluation import SpuriousSpec

TINY = SpuriousSpec("toybox-grounds:seed-{seed}-of-160", units=4)


@pytest.fixture(scope="module")
def settings(quick_laboratory: Path) -> LabSettings:
    return LabSettings(quick_laboratory, dataset_images=QUICK_IMAGES, words_per_second=0)


@pytest.fixture(scope="module")
def sandbox():
    with ZygoteSandbox() as sandbox:
        yield sandbox


@pytest.mark.more
def test_headline_metrics_fall_on_real_neurons_too(settings, capsys):
    real = read_real_units(settings.state, 12, 100)[:8]
    shares = bench_metrics.print_table({"0.1": make_units(2, 0.1, seed=0), "toybox-eyes": real})
    for metric in ("Pearson r", "AUPRC"):
        missing, extra = shares[metric][1]
        assert min(missing, extra) > 0.9
    assert "toybox-eyes" in capsys.readouterr().out


@pytest.mark.more
def test_fresh_neurons(settings, sandbox):
    laboratory = Laboratory(settings)
    layer = laboratory.layers(f"{bench_synthetic.MODEL}:seed-100")[0]
    right, seconds = bench_synthetic.study(laboratory, sandbox, 100, [(layer, 0)])
    assert len(right[layer.name]) == len(seconds) == 1
    assert min(bench_synthetic.measure_truth(settings.state, 40)) > 0.7


@pytest.mark.more
def test_a_class_with_a_planted_bias(settings, sandbox, capsys):
    laboratory = Laboratory(settings)
    model = laboratory.model("toybox-biased:seed-0")
    noun = next(iter(model.planted))
    row = bench_bias.study(laboratory, sandbox, model, noun, 0, fresh=40)
    assert bench_bias.print_sums([row])[1] <= 1
    assert noun in bench_bias.write_line(noun, 0, row)
    assert "planted 1" in capsys.readouterr().out


@pytest.mark.more
def test_table_two(settings, sandbox, capsys):
    table = bench_spurious.measure(settings, sandbox, 0, TINY, most=1)
    assert 0 < len(table.unfinished) < TINY.units
    assert [row.title for row in table.rows]
    assert "repair" in capsys.readouterr().out


@pytest.mark.more
@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore")
def test_what_a_gpu_is_measured_on(tmp_path: Path) -> None:
    size = bench_gpu.SMALL
    networks = list(bench_gpu.measure_networks(tmp_path, size, "cpu"))
    assert [each[:2] for each in networks] == [(name, kind) for name in size.networks for kind in size.precisions]
    errors = {kind: [cost.error for _, each, cost in networks if each == kind] for kind in size.precisions}
    assert max(errors["float32"]) < 1e-5 < min(errors["bfloat16"]) < max(errors["bfloat16"]) < 0.2
    assert all(min(cost.bare, cost.indexed, cost.neuron, cost.two_threads) > 0 for *_, cost in networks)
    made = list(bench_gpu.measure_pipelines(tmp_path, size, "cpu"))
    assert [each[0] for each in made] == ["draws", "draws", "edits", "edits"]
    assert all(cost.error < 1 / 255 for *_, cost in made), "ours draw what the bare pipeline draws of a seed"


def test_the_shapes_are_the_published_ones() -> None:
    with torch.device("meta"):
        found = pipelines.published_networks(4)
    sizes = {name: sum(each.numel() for each in network.parameters()) for name, network in found.items()}
    assert sizes == {"unet": 859_520_964, "vae": 83_653_863, "text_encoder": 123_060_480}
