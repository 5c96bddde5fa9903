"""A part of each kind from one file: rows, forms, pages, the API, a run in a terminal; never in the sandbox."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from experiments.core import catalogue as names
from experiments.core import parts, worker_status
from experiments.models import Backbone, Dataset, Experiment, Run, Toolset, VisionModelRow
from experiments.runs.asking.form import QueryForm
from tests.support.builders import make_run
from tests.support.plugin_files import WHOLE, write_plugin
from workers import registry
from workers.jobs import catalogue, heartbeat
from workers.jobs.laboratory import build_laboratory, laboratory
from workers.plugins.loading import load_plugins
from workers.record.systems import SystemSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("laboratory", "one_thread")]


@pytest.fixture
def plugin(tmp_path: Path, settings) -> Iterator[Path]:
    """The file, named by the setting beside one that fails."""
    path = write_plugin(tmp_path / "plugins", WHOLE)
    settings.PLUGINS = [path, write_plugin(tmp_path / "plugins", "raise ValueError('three')\n", "bad.py")]
    build_laboratory.cache_clear()
    yield Path(path)
    load_plugins((), 1)


def write_rows() -> None:
    catalogue.write_model("our-net")
    catalogue.write_model("our-mean")
    catalogue.write_dataset("our-pictures")
    catalogue.write_toolset("our-tools")
    catalogue.write_backbone("our-scientist")


def forget() -> None:
    """From now on this process is as one of pages: rows alone know plug-ins."""
    load_plugins((), 1)
    build_laboratory.cache_clear()
    assert "our-net" not in registry.VISION_MODELS


def test_a_whole_run_with_parts_of_a_plug_in_alone(plugin: Path) -> None:
    out = StringIO()
    call_command(
        "investigate", "--model", "our-net", "--layer", "stem", "--unit", "2", "--dataset", "our-pictures",
        "--toolset", "our-tools", "--backbone", "our-scientist", "--max-rounds", "3", "--json", stdout=out,
    )  # fmt: skip
    told = json.loads(out.getvalue())
    assert (told["status"], told["labels"]) == ("concluded", ["grey"])
    (experiment,) = Experiment.objects.all()
    assert experiment.error == ""
    assert experiment.observations.count() == 2
    run = Run.objects.get()
    assert (run.toolset, run.backbone) == ("our-tools", "our-scientist")
    # The program ran in the sandbox's own process, which has not loaded the file
    assert plugin.with_suffix(".pids").read_text().split() == [str(os.getpid())]


def test_rows_tell_path_and_version_and_pages_need_no_plug_in(plugin: Path, as_owner: Client, owner: User) -> None:
    write_rows()
    rows = (
        VisionModelRow.objects.get(name="our-net"),
        Dataset.objects.get(key="our-pictures"),
        Toolset.objects.get(key="our-tools"),
        Backbone.objects.get(key="our-scientist"),
    )
    assert {row.available for row in rows} == {True}
    (plugin_of,) = {row.plugin for row in rows}
    assert plugin_of.startswith(f"{plugin}, version ")
    forget()
    assert parts.list_toolsets()["our-tools"] == parts.label_toolset("our-tools") == "Our tools"
    assert parts.list_backbones()["our-scientist"] == parts.label_backbone("our-scientist") == "Our scientist (fixed)"
    text = as_owner.get("/settings/models/").content.decode()
    assert text.count(f"Plug-in {plugin_of}") == 4
    sent = {
        "question": "What does it respond to?", "task": "describe", "model": "our-net", "layer": "stem", "unit": "3",
        "dataset": "our-pictures", "toolset": "our-tools", "backbone": "our-scientist",
    }  # fmt: skip
    form = QueryForm(sent)
    assert form.is_valid(), form.errors
    run = make_run(owner, model="our-net", layer="stem", unit=3, toolset="our-tools", backbone="our-scientist")
    assert names.find_unknown(run) == ""


def test_a_plug_in_that_is_gone_is_no_longer_offered(plugin: Path, settings, owner: User) -> None:
    write_rows()
    settings.PLUGINS = []
    forget()
    write_rows()
    gone = (VisionModelRow, Dataset, Toolset, Backbone)
    assert [kind._default_manager.filter(available=True).exists() for kind in gone] == [False] * 4
    assert "There is no toolset 'our-tools'" in Toolset.objects.get().remedy
    run = make_run(owner, toolset="our-tools")
    assert "There is no toolset “our-tools”" in names.find_unknown(run)
    assert not {"our-tools", "our-scientist"} & {*parts.list_toolsets(), *parts.list_backbones()}


def test_units_of_a_layer_of_its_own_kind_are_studied_by_its_system(plugin: Path) -> None:
    write_rows()
    layer = VisionModelRow.objects.get(name="our-mean").layers.get()
    assert registry.system_of(layer.kind) == "our-kind"
    lab = laboratory()
    spec = SystemSpec("our-kind", "our-mean", "means", 0, {"dataset": "our-pictures"})
    images = [lab.dataset("our-pictures")[0].image]
    plain = float(lab.model("our-mean").maps(images, ["means"])["means"].max())
    assert lab.subject(spec).respond(images)[0].activation == pytest.approx(2 * plain)


def test_the_worker_its_page_the_api_and_check_tell_of_plug_ins(plugin: Path, as_owner: Client, redis_url) -> None:
    assert heartbeat.list_problems() == heartbeat.list_plugins() == []
    laboratory()
    report = heartbeat.Heartbeat(1).report()
    (found,) = report["plugins"]
    assert (found["path"], found["adds"][0]) == (str(plugin), "vision model our-net")
    (problem,) = report["problems"]
    assert problem.endswith(
        "ValueError: three (line 1). Nothing of it is added; correct it and start the worker again."
    )
    assert heartbeat.summarize_report(report) != heartbeat.summarize_report(report | {"plugins": []})
    worker_status.publish_status("lab:17", report)
    text = as_owner.get("/settings/workers/").content.decode()
    assert str(plugin) in text
    assert f"version {found['version']}" in text
    assert "ValueError: three (line 1)" in text
    (row,) = as_owner.get("/api/v1/workers").json()["items"]
    assert (row["plugins"], row["problems"]) == ([found], [problem])
    out = StringIO()
    call_command("check", stdout=out, stderr=out)
    assert f"  {plugin}, version {found['version']}: vision model our-net" in out.getvalue()
    assert f"  left out: {problem}" in out.getvalue()
