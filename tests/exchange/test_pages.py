"""The pages of exports and imports: asked for, followed, downloaded, deleted; bad input loses nothing."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from experiments.core import transfers
from experiments.exchange import form
from experiments.models import Export, Import, Job, Label, Run
from tests.support.builders import make_run
from tests.support.bundles import HOSTILE, bundled, forgotten, full_run
from workers.jobs import exchange, long

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def run(owner: User) -> Run:
    return full_run(owner, HOSTILE)


def worked() -> Job:
    """The newest job, after a worker has done it."""
    job = Job.objects.latest("pk")
    long.work(job.pk)
    job.refresh_from_db()
    return job


def test_an_export_is_asked_for_made_downloaded_and_deleted(as_owner: Client, run: Run) -> None:
    page = as_owner.get(f"/exports/?what=bundle&run={run.pk}").content.decode()
    assert "This selection holds 1 run." in page
    as_owner.post("/exports/make/", {"what": "bundle", "query": f"run={run.pk}"})
    export = Export.objects.get()
    assert as_owner.get(f"/exports/{export.pk}/file/").status_code == 404, "not before it is whole"
    assert worked().status == "done"
    assert f"/exports/{export.pk}/file/" in as_owner.get("/exports/").content.decode()
    answer = as_owner.get(f"/exports/{export.pk}/file/")
    data = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    assert answer["Content-Disposition"] == f'attachment; filename="maia-runs-{export.pk}.zip"'
    assert (answer["X-Content-Type-Options"], answer["Content-Length"]) == ("nosniff", str(len(data)))
    as_owner.post(f"/exports/{export.pk}/delete/")
    assert not Export.objects.exists()
    assert not transfers.file_exists(export.place)


def test_the_exports_of_one_person_are_nobody_elses(as_owner: Client, run: Run, client: Client, teammate: User) -> None:
    as_owner.post("/exports/make/", {"what": "runs", "format": "csv"})
    worked()
    export = Export.objects.get()
    client.force_login(teammate)
    assert client.get(f"/exports/{export.pk}/file/").status_code == 404
    assert client.post(f"/exports/{export.pk}/delete/").status_code == 404
    assert f"/exports/{export.pk}/" not in client.get("/exports/").content.decode()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"what": "odd"}, "Choose what to export."),
        ({"what": "runs", "format": "zip"}, "Choose a format"),
        ({"what": "runs", "format": "csv", "query": "unit=abc"}, "is no unit"),
        ({"what": "labels", "format": "csv", "query": "layer=a%00b"}, "layer: remove the zero byte"),
        ({"what": "runs", "format": "csv", "query": "model=nobody"}, "Nothing matches"),
        ({"what": "runs", "format": "csv", "query": "q=" + "x" * 20_001}, "20,003 characters"),
    ],
)
def test_an_export_that_makes_no_sense_is_refused_and_what_was_typed_stays(
    as_owner: Client, run: Run, given: dict[str, str], says: str
) -> None:
    answer = as_owner.post("/exports/make/", given)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert says in page
    assert given.get("query", "").partition("=")[2].partition("%")[0][:40] in page
    assert not Job.objects.exists()


def test_what_has_expired_is_swept(as_owner: Client, run: Run) -> None:
    as_owner.post("/exports/make/", {"what": "runs", "format": "csv"})
    worked()
    export = Export.objects.get()
    Export.objects.update(expires=timezone.now() - timedelta(hours=1))
    assert as_owner.get(f"/exports/{export.pk}/file/").status_code == 404
    exchange.remove_expired()
    assert not Export.objects.exists()
    transfers.remove_others("exports", set(), exchange.FORGOTTEN_SECONDS)
    assert transfers.file_exists(export.place), "a file of the last hour may belong to a row that is not saved yet"


def test_the_lists_take_a_constant_number_of_queries(
    as_owner: Client, run: Run, django_assert_max_num_queries: Any
) -> None:
    for count in (1, 4):
        for _ in range(count):
            Export.objects.create(
                job=Job.objects.create(kind="export", asked_by=run.owner, status="done"), what="runs", format="csv"
            )
            Import.objects.create(
                job=Job.objects.create(kind="import", asked_by=run.owner), kind="bundle", name=HOSTILE
            )
        for path in ("/exports/", "/imports/"):
            with django_assert_max_num_queries(17):
                as_owner.get(path)


def test_a_bundle_is_brought_through_the_page(as_owner: Client, run: Run, tmp_path: Path) -> None:
    path = bundled(run, path=tmp_path / "run.zip")
    forgotten(run)
    answer = bring(as_owner, "bundle", path)
    assert answer.status_code == 302
    file = Import.objects.get().place
    assert transfers.file_exists(file)
    assert worked().status == "done"
    assert not transfers.file_exists(file)
    again = Run.objects.get()
    assert f'href="/runs/{again.pk}/"' in as_owner.get("/imports/").content.decode()
    assert "Imported from run.zip, where owner asked it as run" in as_owner.get(f"/runs/{again.pk}/").content.decode()


def bring(client: Client, kind: str, path: Path, **told: str) -> Any:
    return client.post(
        "/imports/bring/", {"kind": kind, "file": SimpleUploadedFile(path.name, path.read_bytes()), **told}
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kind": "odd"}, "Choose what the file is."),
        ({"kind": "bundle"}, "Choose a file that is not empty."),
        ({"kind": "history", "model": "toybox", "file": "x"}, "Enter the layer, or name the file like"),
        (
            {"kind": "history", "model": "m", "layer": "typed <b>", "unit": "x", "file": "x"},
            "is not the number of a unit",
        ),
        ({"kind": "labels", "model": "toybox", "file": "x"}, "Enter the source."),
    ],
)
def test_an_import_that_makes_no_sense_is_refused_and_what_was_typed_stays(
    as_owner: Client, given: dict[str, Any], says: str
) -> None:
    if "file" in given:
        given = given | {"file": SimpleUploadedFile("x", b"x")}
    answer = as_owner.post("/imports/bring/", given)
    assert answer.status_code == 400
    assert says in answer.content.decode()
    assert ("typed &lt;b&gt;" in answer.content.decode()) == ("typed <b>" in given.values())
    assert not Job.objects.exists()


def test_an_upload_over_the_limit_is_refused(as_owner: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "UPLOAD", 3)
    (tmp_path / "x.zip").write_bytes(b"1234")
    answer = bring(as_owner, "bundle", tmp_path / "x.zip")
    assert answer.status_code == 400
    assert "at most" in answer.content.decode()


def test_a_file_that_is_refused_says_why_and_is_gone(as_owner: Client, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"not a zip")
    bring(as_owner, "bundle", tmp_path / "x.zip")
    file = Import.objects.get().place
    job = worked()
    assert (job.status, transfers.file_exists(file)) == ("failed", False)
    page = as_owner.get("/imports/").content.decode()
    assert "not a complete zip archive" in page
    assert "Nothing was imported." in page


def test_the_commands_do_the_same(run: Run, owner: User, tmp_path: Path) -> None:
    path = tmp_path / "out.zip"
    call_command("export_run", str(run.pk), "--to", str(path))
    forgotten(run)
    call_command("import_runs", str(path))
    assert Run.objects.get().question == run.question
    labels = tmp_path / "milan.csv"
    labels.write_text("layer,unit,description\nlayer4,3,dogs\n")
    call_command("import_runs", str(labels), "--model", "toybox", "--source", "milan")
    assert Label.objects.get(source="milan").text == "dogs"
    for arguments in ([str(path.with_suffix(".odd"))], [str(labels)], [str(path), "--owner", "nobody"]):
        with pytest.raises(CommandError):
            call_command("import_runs", *arguments)
    with pytest.raises(CommandError, match="There is no run 999"):
        call_command("export_run", "999")


def test_an_export_of_nothing_shows_a_form_and_an_empty_list(as_owner: Client, owner: User) -> None:
    make_run(owner)
    page = as_owner.get("/exports/?what=labels&unit=1").content.decode()
    assert "No exports yet" in page
    assert "holds 0 labels" in page
