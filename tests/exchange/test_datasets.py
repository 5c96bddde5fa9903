"""Exports as datasets: opened by `datasets` without a network, with images and typed columns; whole runs come back."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.test import Client
from PIL import Image as Pillow

from experiments.exchange.formats.column_words import COLUMN_WORDS
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Export, Image, Job, Observation, Run
from tests.support import blind_runs
from tests.support.api_world import KEY
from tests.support.bundles import HOSTILE, brought, exported, forgotten, full_run
from tests.support.people import member
from workers.jobs import dataset_folder, long

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def runs(owner: User) -> list[Run]:
    return [full_run(owner), full_run(owner, f"=cmd|' /C calc'!A0 {HOSTILE}\n\"two\" lines, 日本語 🦜")]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens a table of the zip of a dataset, without a network and with a cache of its own."""
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def load(data: bytes, *name: str) -> Any:
        import datasets

        folder = tmp_path / "folder"
        zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
        return datasets.load_dataset(str(folder), *name, split="train", cache_dir=str(tmp_path / "cache"))

    return load


def lines(owner: User, what: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(owner, what, "jsonl")[1].splitlines()]


def test_observations_open_with_their_images(owner: User, runs: list[Run], opened: Any) -> None:
    from datasets import ClassLabel, Value

    job, data = exported(owner, "observations", "dataset")
    assert job.result == "4 observations"
    table = opened(data)
    assert isinstance(table.features["origin"], ClassLabel)
    assert table.features["activation"] == Value("float64")
    assert [table.features["origin"].int2str(each) for each in table["origin"]] == ["generated", "edited"] * 2
    for row, seen in zip(Observation.objects.order_by("pk"), table, strict=True):
        assert (seen["activation"], seen["title"], seen["image_key"]) == (row.activation, row.title, row.image_id)
        with default_storage.open(Image.path_of(row.image_id)) as file:
            assert seen["image"].tobytes() == Pillow.open(file).tobytes()
        assert (seen["masked"] is None) == (row.masked_id is None)


@pytest.mark.parametrize("what", ["runs", "labels", "observations"])
def test_rows_are_those_of_the_table(owner: User, runs: list[Run], opened: Any, what: str) -> None:
    table = opened(exported(owner, "runs", "dataset")[1], what)
    wanted = lines(owner, what)
    assert len(table) == len(wanted)
    for seen, line in zip(table, wanted, strict=True):
        for name, value in line.items():
            assert _plain(table, name, seen) == value, name


def _plain(table: Any, name: str, row: dict[str, Any]) -> Any:
    """A value as JSON Lines have it."""
    value = row[f"{name}_key"] if f"{name}_key" in row else row[name]
    if hasattr(table.features[name], "int2str"):
        return table.features[name].int2str(value)
    if name in {"options", "limits", "versions", "scores", "parameters"} and value is not None:
        return json.loads(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def test_runs_of_a_dataset_come_back_whole(owner: User, runs: list[Run], tmp_path: Path) -> None:
    before = {what: _without_numbers(lines(owner, what)) for what in ("runs", "observations", "labels")}
    (tmp_path / "runs.zip").write_bytes(exported(owner, "observations", "dataset-runs")[1])
    forgotten(*runs)
    taken = brought(tmp_path / "runs.zip", owner)
    assert [each.known for each in taken] == [False, False]
    assert {what: _without_numbers(lines(owner, what)) for what in before} == before
    assert [each.known for each in brought(tmp_path / "runs.zip", owner)] == [True, True]


def _without_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows but for the number of the run, which is another wherever it is, and where it came from."""
    return [{name: value for name, value in row.items() if name not in {"run", "imported_from"}} for row in rows]


def test_a_dataset_without_whole_runs_says_what_can_be_imported(owner: User, runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(exported(owner, "observations", "dataset")[1])
    with pytest.raises(ExchangeError, match="it is a dataset without full runs"):
        brought(tmp_path / "x.zip", owner)


def test_files_are_of_bounded_size(owner: User, runs: list[Run], opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_folder, "GROUP_ROWS", 1)
    monkeypatch.setattr(dataset_folder, "FILE_ROWS", 3)
    data = exported(owner, "observations", "dataset")[1]
    names = [name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if "observations" in name]
    assert names == ["data/observations-00000.parquet", "data/observations-00001.parquet"]
    assert opened(data)["position"][:] == [1, 2, 1, 2]


def test_an_image_that_the_store_has_lost_is_empty(owner: User, runs: list[Run], opened: Any) -> None:
    default_storage.delete(Image.path_of(Observation.objects.order_by("pk")[0].image_id))
    table = opened(exported(owner, "observations", "dataset")[1])
    assert [each is None for each in table["image"]].count(True) >= 1
    assert all(table["image_key"])


def test_the_card_names_every_column_and_no_filter_is_markdown(owner: User, runs: list[Run]) -> None:
    data = exported(owner, "observations", "dataset", "q=ball")[1]
    card = zipfile.ZipFile(io.BytesIO(data)).read("README.md").decode()
    for what, words in COLUMN_WORDS.items():
        assert set(words) == set(dataset_folder.features_of(what))
        assert all(f"| `{name}` |" in card for name in words)
    assert "license: unknown" in card


def test_whoever_is_to_judge_a_run_unseen_gets_no_place_and_no_whole_run(owner: User, as_owner: Client) -> None:
    blind_runs.catalogue()
    Image.objects.create(key=KEY, width=8, height=8, origin="generated")
    run = blind_runs.blind_run(owner)
    blind_runs.queued(run, judge := member("judge", "REVIEWER"))
    packed = zipfile.ZipFile(io.BytesIO(exported(judge, "runs", "dataset", f"run={run.pk}")[1]))
    assert blind_runs.TOLD.encode() not in b"".join(map(packed.read, packed.namelist()))
    job, data = exported(judge, "runs", "dataset-runs", f"run={run.pk}")
    assert (job.status, data) == ("failed", b"")
    assert "You are still to judge" in job.result
    as_owner.force_login(judge)
    page = as_owner.post("/exports/make/", {"what": "runs", "format": "dataset-runs", "run": run.pk})
    assert page.status_code == 400
    assert "You are still to judge" in page.content.decode()


@pytest.mark.parametrize(
    ("what", "form"), [("experiments", "dataset"), ("labels", "dataset-runs"), ("runs", "cosy"), ("labels", "zip")]
)
def test_a_format_that_does_not_fit_is_refused(as_owner: Client, runs: list[Run], what: str, form: str) -> None:
    page = as_owner.post("/exports/make/", {"what": what, "format": form})
    assert page.status_code == 400
    assert "Choose a format" in page.content.decode()
    assert not Export.objects.exists()


@pytest.mark.parametrize("what", ["runs", "labels", "experiments", "bundle"])
def test_the_page_offers_the_formats_that_fit(as_owner: Client, runs: list[Run], what: str) -> None:
    page = as_owner.get(f"/exports/?what={what}&format=dataset").content.decode()
    assert ('<option value="cosy"' in page) == (what == "labels")
    assert ('<option value="dataset" selected' in page) == (what in {"runs", "labels"})


def test_the_file_says_what_it_is(as_owner: Client, runs: list[Run]) -> None:
    as_owner.post("/exports/make/", {"what": "runs", "format": "dataset"})
    long.work(Job.objects.latest("pk").pk)
    export = Export.objects.get()
    answer = as_owner.get(f"/exports/{export.pk}/file/")
    assert answer["Content-Disposition"] == f'attachment; filename="maia-runs-dataset-{export.pk}.zip"'
    assert zipfile.is_zipfile(io.BytesIO(b"".join(answer.streaming_content)))  # type: ignore[attr-defined]
