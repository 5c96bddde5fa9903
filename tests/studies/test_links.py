"""A study under a link: what it shows, which images belong to it, and what stays hidden."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from experiments.models import Exemplar, Image, Run, Share, Study
from tests.support import blind_runs
from tests.support.api_world import KEY
from tests.support.builders import make_run
from tests.support.bundles import full_run, picture
from tests.support.people import member, signed_in
from tests.support.shared_run import link, opened
from tests.support.studies import link_study, make_study


@pytest.fixture
def run(study: Study) -> Run:
    found = study.items.get(number=None).run
    assert found is not None
    return found


def test_a_link_is_made_shown_once_and_revoked(as_owner: Client, study: Study) -> None:
    path = f"{study.get_absolute_url()}shares/"
    page = as_owner.post(path, {"span": "7", "show_comments": "on"}).content.decode()
    found = re.search(r"http://testserver(/shared/[\w-]{43}/)", page)
    assert found
    share = Share.objects.get()
    assert (share.study, share.run, share.show_comments) == (study, None, False)
    assert "What it likes" in opened(found[1])
    share.refresh_from_db()
    assert share.views == 1
    assert found[1] not in as_owner.get(path).content.decode()
    assert signed_in(member("other", "RESEARCHER")).post(f"{path}{share.pk}/revoke/").status_code == 403
    assert as_owner.post(f"{path}{share.pk}/revoke/")["Location"] == path
    assert Client().get(found[1]).content == Client().get("/shared/wrong/").content


def test_a_reader_sees_units_runs_and_transcripts(study: Study, run: Run) -> None:
    at = link_study(study)
    page = html.unescape(opened(at.path))
    for words in ("What it likes", "All of it.", "asked", "looked at", "red balls", "What? a red ball"):
        assert words in page
    assert f"{at.path}runs/{run.pk}/" in page
    transcript = opened(f"{at.path}runs/{run.pk}/")
    assert f'href="{at.path}"' in transcript
    assert "second" in transcript
    for source in (page, transcript):
        addresses = re.findall(r'(?:href|src)="([^"#]+)"', source)
        assert [each for each in addresses if not each.startswith((at.path, "/static/", "/bundles/"))] == []
        assert "<script" not in source
    response = Client().get(at.path)
    assert "script-src" not in response["Content-Security-Policy"]
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]


def test_names_are_shown_only_if_asked_for(study: Study, run: Run, owner: User) -> None:
    owner.first_name, owner.last_name = "Grace", "Hopper"
    owner.save()
    for names in (False, True):
        at = link_study(study, names=names)
        for path in (at.path, f"{at.path}runs/{run.pk}/"):
            assert ("Grace Hopper" in opened(path)) is names


def test_only_images_of_its_units_and_runs_open(study: Study, run: Run, owner: User) -> None:
    at, client = link_study(study), Client()
    logged = run.observations.exclude(masked=None).earliest("pk")
    exemplar = Exemplar.objects.earliest("pk")
    for key in (logged.image_id, logged.masked_id, logged.map_id, exemplar.image_id, exemplar.masked_id):
        assert client.get(f"{at.path}images/{key}.png").status_code == 200
        assert client.get(f"{at.path}images/{key}/thumb-160.webp").status_code == 200
    others = [picture(200), full_run(owner, "other").pk]
    assert client.get(f"{at.path}images/{others[0]}.png").status_code == 404
    assert client.get(f"{at.path}runs/{others[1]}/").status_code == 404
    study.items.get(run=None).delete()
    assert client.get(f"{at.path}images/{exemplar.image_id}.png").status_code == 404


def test_a_link_to_a_run_leads_to_no_page_of_a_study(run: Run) -> None:
    at = link(run)
    assert Client().get(f"{at.path}runs/{run.pk}/").status_code == 404


def test_a_synthetic_neuron_that_is_judged_is_not_named(owner: User, study: Study) -> None:
    Image.objects.create(key=KEY, width=8, height=8, origin="generated")
    blind = blind_runs.blind_run(owner)
    study.items.create(position=3, run=blind)
    unit = {"model": blind_runs.MODEL, "layer": blind_runs.LAYER, "number": blind_runs.NUMBER}
    study.items.create(position=4, caption="its neuron", **unit)
    at = link_study(study)
    assert blind_runs.LAYER in opened(at.path)
    blind_runs.queued(blind, member("judge", "REVIEWER"))
    for path in (at.path, f"{at.path}runs/{blind.pk}/"):
        page = opened(path)
        assert blind_runs.TOLD not in page
    assert "its neuron" not in opened(at.path)
    assert "1 item" in signed_in(owner).get(study.get_absolute_url()).content.decode()


def test_a_link_is_of_a_run_or_a_study(study: Study, owner: User) -> None:
    both = {"run": make_run(owner), "study": study}
    for fields in (both, {}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Share.objects.create(token_hash=f"{len(fields)}", expires=timezone.now(), **fields)


def test_hostile_words_run_nothing(hostile: Study) -> None:
    at = link_study(hostile)
    run = hostile.items.get(number=None).run_id
    for path in (at.path, f"{at.path}runs/{run}/"):
        page = opened(path)
        assert "<script" not in page
        assert "<img src=http:" not in page


def test_a_link_dies_with_its_study(owner: User) -> None:
    row = make_study(owner)
    at = link_study(row)
    assert "Nothing is in it yet" in opened(at.path)
    row.delete()
    assert Client().get(at.path).status_code == 404
