"""The pages of studies: from units and runs to a study, its form, and what each refuses."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.models import AuditEntry, Run, Study
from experiments.studies.drafts import MAX_CAPTION, MAX_ITEMS
from tests.support.builders import make_run
from tests.support.bundles import HOSTILE
from tests.support.people import member, signed_in
from tests.support.studies import make_study
from tests.support.unit_pages import RESNET, layer_of, make_resnet

ADD = "/studies/add/"


def read(client: Client, path: str, status: int = 200, **query: Any) -> str:
    response = client.get(path, query)
    assert response.status_code == status
    return html.unescape(response.content.decode())


def test_units_and_runs_start_a_study(as_owner: Client, owner: User) -> None:
    run, layer = make_run(owner), layer_of(make_resnet())
    assert "No study yet" in read(as_owner, "/studies/")
    sent = {"member": f"{layer.pk}.7", "run": run.pk, "act": "create", "title": " Two\nthings "}
    response = as_owner.post(ADD, sent)
    row = Study.objects.get()
    assert (response["Location"], row.title, row.owner) == (row.get_absolute_url(), "Two things", owner)
    assert [(each.run_id, each.number) for each in row.items.all()] == [(None, 7), (run.pk, None)]
    assert row.get_absolute_url() in read(as_owner, reverse("unit", args=[RESNET, "layer4", 7]))
    assert "Two things" in read(as_owner, "/studies/", q="two")
    unmatched = read(as_owner, "/studies/", q="three")
    assert ("with the words “three”: there are none" in unmatched, "No study yet" in unmatched) == (True, False)


def test_ticked_runs_and_units_are_handed_over(as_owner: Client, owner: User) -> None:
    runs = [make_run(owner), make_run(owner)]
    make_resnet()
    assert 'value="study"' in read(as_owner, "/runs/")
    asked = as_owner.post("/runs/act/", {"action": "study", "run": [run.pk for run in runs]})
    assert read(as_owner, asked["Location"]).count('name="run"') == 2
    assert f"{ADD}?run={runs[0].pk}" in read(as_owner, runs[0].get_absolute_url())
    assert f'formaction="{ADD}"' in read(as_owner, reverse("units-layer", args=[RESNET, "layer4"]))
    chosen = {"model": RESNET, "layer": "layer4", "units": "3-5,9"}
    assert as_owner.post(ADD, chosen).content.decode().count('name="member"') == 4
    row = make_study(owner, runs[0])
    as_owner.post(ADD, chosen | {"run": f"{runs[0].pk},{runs[1].pk}", "act": "extend", "study": row.pk})
    assert [each.number or each.run_id for each in row.items.all()] == [runs[0].pk, 3, 4, 5, 9, runs[1].pk]
    assert list(row.items.values_list("position", flat=True)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("field", ["", "x", "0", "9" * 30, "-1", "\x00"])
def test_what_is_not_there_is_left_out(as_owner: Client, field: str) -> None:
    assert "Nothing is chosen" in read(as_owner, ADD, run=field, member=field)


def test_limits_are_said_with_what_was_typed(as_owner: Client, study: Study) -> None:
    layer = {"model": RESNET, "layer": "layer4", "act": "create"}
    for title, units, said in (
        ("all", f"0-{MAX_ITEMS}", f"not {MAX_ITEMS + 1}"),
        ("", "1", "a title"),
        ("x" * 200, "1", "200 characters"),
    ):
        response = as_owner.post(ADD, layer | {"title": title, "units": units})
        page = html.unescape(response.content.decode())
        assert (response.status_code, said in page) == (400, True)
        assert not title or f'name="title" value="{title}"' in page
    item, other = study.items.values_list("pk", flat=True)
    for sent in (
        {"title": "", "text": "typed"},
        {"title": "t", "text": "typed" * 9_000},
        {"title": "t", "text": "typed", f"caption-{item}": "x" * (MAX_CAPTION + 1)},
    ):
        ticks = {f"position-{item}": "77", "remove": other}
        response = as_owner.post(f"{study.get_absolute_url()}edit/", sent | ticks)
        assert (response.status_code, b"typed" in response.content) == (400, True)
        assert f'name="position-{item}" value="77"'.encode() in response.content
        assert response.content.count(b'-remove" checked>') == 1
    study.refresh_from_db()
    assert (Study.objects.count(), study.title, study.items.count()) == (1, "What it likes", 2)


def test_a_study_shows_its_units_and_runs(as_owner: Client, study: Study) -> None:
    page = read(as_owner, study.get_absolute_url())
    assert page.index('id="part-1"') < page.index('id="part-2"')
    for words in ("All of it.", "asked", "looked at", "red balls", "a red ball", "What? a red ball", "Photographs"):
        assert words in page
    assert reverse("unit", args=[RESNET, "layer4", 7]) in page
    run = study.items.get(number=None).run
    assert run is not None
    assert f'href="{run.get_absolute_url()}"' in page


def test_what_was_deleted_keeps_its_name(as_owner: Client, study: Study) -> None:
    item = study.items.get(run=None)
    assert item.unit is not None
    item.unit.layer.model.delete()
    page = read(as_owner, study.get_absolute_url())
    assert f"{RESNET} / layer4 / unit 7" in page
    assert "no longer here" in page
    assert "What it likes" in read(as_owner, "/studies/")


def test_the_owner_edits_orders_removes_and_deletes(as_owner: Client, study: Study) -> None:
    run, unit = study.items.all()
    path = study.get_absolute_url()
    assert "asked" in read(as_owner, f"{path}edit/")
    sent = {"title": "Second", "text": "a\nb", f"position-{run.pk}": "9", f"caption-{unit.pk}": "new"}
    as_owner.post(f"{path}edit/", sent)
    study.refresh_from_db()
    assert (study.title, study.updated > study.created) == ("Second", True)
    assert list(study.items.values_list("pk", "caption")) == [(unit.pk, "new"), (run.pk, "asked")]
    as_owner.post(f"{path}edit/", {"title": "Second", "remove": [run.pk]})
    assert list(study.items.values_list("pk", flat=True)) == [unit.pk]
    assert as_owner.post(f"{path}delete/")["Location"] == "/studies/"
    assert read(as_owner, path, status=404)
    assert Run.objects.filter(pk=run.run_id).exists()
    verbs = AuditEntry.objects.filter(verb__startswith="study").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["study.changed", "study.changed", "study.deleted"]


def test_others_read_and_change_nothing(study: Study, teammate: User) -> None:
    for client in (signed_in(teammate), signed_in(member("other", "RESEARCHER"))):
        assert "/edit/" not in read(client, study.get_absolute_url())
        for what in ("edit", "delete"):
            assert client.post(f"{study.get_absolute_url()}{what}/", {"title": "theirs"}).status_code == 403
        assert client.get(f"{study.get_absolute_url()}edit/").status_code == 403
        assert client.post(ADD, {"act": "extend", "study": study.pk}).status_code == 403
    assert signed_in(member("boss", "ADMIN")).post(f"{study.get_absolute_url()}delete/").status_code == 302
    assert not Study.objects.exists()


def test_hostile_words_are_shown_as_words(as_owner: Client, hostile: Study) -> None:
    path = hostile.get_absolute_url()
    for page in (
        path,
        f"{path}edit/",
        f"{path}shares/",
        "/studies/",
        f"{ADD}?run={hostile.items.earliest('pk').run_id}",
    ):
        source = as_owner.get(page).content.decode()
        assert "<script>document" not in source
        assert "<img src=http:" not in source
    assert HOSTILE in html.unescape(as_owner.get(f"{path}edit/").content.decode())


def test_parts_come_page_by_page(as_owner: Client, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.studies import parts

    monkeypatch.setattr(parts, "PAGE_SIZE", 2)
    row = Study.objects.create(owner=owner, title="long", text="The text.")
    for position in range(1, 4):
        row.items.create(position=position, run=make_run(owner))
    first, second = (read(as_owner, f"{row.get_absolute_url()}?page={number}") for number in (1, 2))
    assert ('id="part-2"' in first, 'id="part-3"' in first, "The text." in first) == (True, False, True)
    assert ('id="part-2"' in second, 'id="part-3"' in second, "The text." in second) == (False, True, False)
