"""Several files brought together: each an import of its own, and in whose name an admin may bring them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from experiments.exchange import form, pages
from experiments.models import AuditEntry, Import, Job, Member, Role, Run
from tests.support.api_world import Script
from tests.support.histories import HISTORY
from tests.support.people import member
from workers.jobs import long

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

GOOD = json.dumps(HISTORY).encode()
ABOUT = {"kind": "history", "model": "hf:own/net"}


def bring(client: Client, files: dict[str, bytes], **told: Any) -> Any:
    given = [SimpleUploadedFile(name, data) for name, data in files.items()]
    return client.post("/imports/bring/", {**ABOUT, "file": given, **told})


def worked() -> list[Job]:
    """All jobs after a worker has done them, oldest first."""
    for job in Job.objects.order_by("pk"):
        long.work(job.pk)
    return list(Job.objects.order_by("pk"))


@pytest.fixture
def admin(owner: User) -> User:
    Member.objects.filter(user=owner).update(role=Role.ADMIN)
    return owner


def test_each_of_several_files_is_an_import_with_a_report_of_its_own(as_owner: Client) -> None:
    files = {"layer4_3.json": GOOD, "layer4_5.json": b"{", "layer3-unit-7.json": GOOD}
    assert bring(as_owner, files).status_code == 302
    assert list(Import.objects.order_by("pk").values_list("name", flat=True)) == list(files)
    assert [job.status for job in worked()] == ["done", "failed", "done"]
    assert list(Run.objects.order_by("pk").values_list("layer", "unit")) == [("layer4", 3), ("layer3", 7)]
    page = as_owner.get("/imports/").content.decode()
    assert page.count("Nothing was imported.") == 1
    assert all(f"Imported as run {run.pk}." in page for run in Run.objects.all())


def test_a_file_that_cannot_be_taken_is_named_and_does_not_keep_the_others(as_owner: Client) -> None:
    files = {"layer4_3.json": GOOD, "layer4_4.json": b"", "nameless <b>.json": GOOD}
    page = as_owner.get(bring(as_owner, files).url).content.decode()
    assert [row.name for row in Import.objects.all()] == ["layer4_3.json"]
    assert "layer4_4.json is left out. Choose a file that is not empty." in page
    assert "nameless &lt;b&gt;.json is left out. Enter the layer, or name the file" in page


def test_where_no_file_can_be_taken_nothing_is_begun(as_owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = bring(as_owner, {"a.json": GOOD, "b.json": GOOD}, question="typed")
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "a.json: Enter the layer" in page
    assert "b.json: Enter the layer" in page
    assert 'value="typed"' in page
    monkeypatch.setattr(form, "AT_ONCE", 1)
    answer = bring(as_owner, {"layer4_1.json": GOOD, "layer4_2.json": GOOD})
    assert (answer.status_code, "2 files at once are too many" in answer.content.decode()) == (400, True)
    assert not Job.objects.exists()


def test_the_list_shows_as_many_imports_as_can_be_brought_together() -> None:
    assert pages.MAX_IMPORTS >= form.AT_ONCE


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("layer4_122.json", {}, {"layer": "layer4", "unit": "122"}),
        ("122.json", {"layer": "layer4"}, {"layer": "layer4", "unit": "122"}),
        ("layer4-unit_122.json", {}, {"layer": "layer4", "unit": "122"}),
        ("unit 122.json", {"layer": "fc"}, {"layer": "fc", "unit": "122"}),
        ("history_2.json", {"layer": "fc"}, {"layer": "fc", "unit": "2"}),
        ("layer4_122.json", {"layer": "fc", "unit": "9"}, {"layer": "fc", "unit": "9"}),
        ("history_2.json", {}, "Enter the layer"),
        ("layer4.json", {}, "Enter the layer"),
        ("layer4.json", {"layer": "layer4"}, "Enter the unit"),
        ("layer3_122.json", {"layer": "layer4"}, "The file's name says layer layer3, the form layer4"),
    ],
)
def test_what_a_transcript_is_about_may_stand_in_its_name(
    name: str, typed: dict[str, str], says: str | dict[str, str]
) -> None:
    if isinstance(says, str):
        assert says in form.problem_of("history", name, 1, typed)
    else:
        assert (form.problem_of("history", name, 1, typed), form.complete_fields("history", name, typed)) == ("", says)


def test_several_files_are_brought_by_a_script(owner: User) -> None:
    script = Script(owner)
    given = [SimpleUploadedFile(name, data) for name, data in {"layer4_3.json": GOOD, "x.json": GOOD}.items()]
    answer = script.upload("/imports/batch", {**ABOUT, "file": given})
    assert answer.status_code == 202, answer.content
    told = answer.json()
    assert [(each["name"], each["status"]) for each in told["imports"]] == [("layer4_3.json", "queued")]
    assert [each["name"] for each in told["left_out"]] == ["x.json"]
    answer = script.upload("/imports/batch", {**ABOUT, "file": [SimpleUploadedFile("x.json", GOOD)]})
    assert (answer.status_code, Import.objects.count()) == (422, 1)


def test_the_command_takes_several_files(owner: User, tmp_path: Path, capsys: Any) -> None:
    paths = [tmp_path / name for name in ("layer4_3.json", "layer4_4.json", "layer4_5.json")]
    for path, data in zip(paths, (GOOD, b"{", GOOD), strict=True):
        path.write_bytes(data)
    with pytest.raises(CommandError, match="1 of 3 files were not taken"):
        call_command("import_runs", *paths, "--model", "hf:own/net")
    assert list(Run.objects.order_by("unit").values_list("unit", flat=True)) == [3, 5]
    assert "layer4_4.json" in capsys.readouterr().err


# --- owners -------------------------------------------------------------------------------------------------


def test_an_admin_names_the_owner_on_the_page(admin: User, as_owner: Client) -> None:
    researcher, gone = member("researcher", "RESEARCHER"), member("gone", "RESEARCHER")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    page = as_owner.get("/imports/").content.decode()
    assert page.count('<select name="owner"') == 2
    assert page.count('<option value="researcher">') == 2
    assert 'value="gone"' not in page
    assert bring(as_owner, {"layer4_1.json": GOOD}, owner="researcher").status_code == 302
    assert bring(as_owner, {"layer4_2.json": GOOD}, owner="").status_code == 302
    assert [job.status for job in worked()] == ["done", "done"]
    assert list(Run.objects.order_by("unit").values_list("owner", flat=True)) == [researcher.pk, admin.pk]
    kept = AuditEntry.objects.filter(verb="import.asked").order_by("pk").values_list("details", flat=True)
    assert list(kept) == [{"owner": "researcher"}, {}]


@pytest.mark.parametrize("name", ["boss", "nobody", "stranger"])
def test_nobody_else_names_an_owner(as_owner: Client, owner: User, stranger: User, name: str) -> None:
    member("boss", "ADMIN")
    assert 'name="owner"' not in as_owner.get("/imports/").content.decode()
    for kind in ("history", "bundle"):
        answer = bring(as_owner, {"layer4_1.json": GOOD}, kind=kind, owner=name)
        assert answer.status_code == 400
        assert "cannot own these runs" in answer.content.decode()
    for path in ("/imports", "/imports/batch"):
        given = {**ABOUT, "owner": name, "file": SimpleUploadedFile("layer4_1.json", GOOD)}
        assert Script(owner).upload(path, given).status_code == 422
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["nobody", "stranger"])
def test_an_admin_names_members_alone(admin: User, as_owner: Client, stranger: User, name: str) -> None:
    answer = bring(as_owner, {"layer4_1.json": GOOD}, owner=name)
    assert (answer.status_code, Job.objects.exists()) == (400, False)


def test_an_admin_who_is_none_any_more_by_then_names_nobody(admin: User, as_owner: Client) -> None:
    member("researcher", "RESEARCHER")
    bring(as_owner, {"layer4_1.json": GOOD}, owner="researcher")
    Member.objects.filter(user=admin).update(role=Role.RESEARCHER)
    (job,) = worked()
    assert (job.status, Run.objects.exists()) == ("failed", False)
    assert "cannot own these runs" in job.result
