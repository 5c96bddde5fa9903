"""The page of one auto-encoder: its report drawn, what stands there until it was measured, and who may ask for that."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.installation.sparse_report import draw_report
from experiments.models import Job, SparseAutoencoderRow, VisionModelRow
from tests.support.api_world import Script
from tests.support.autoencoders import add_report, make_autoencoder
from tests.support.people import member
from workers.record.sparse_report import OutputEffect

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def row(owner: User) -> SparseAutoencoderRow:
    return make_autoencoder("toys-256", by=owner)


def read(client: Client, row: SparseAutoencoderRow) -> str:
    response = client.get(f"/settings/autoencoders/{row.pk}/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_the_report_stands_there_with_its_intervals_and_what_it_rests_on(
    as_owner: Client, row: SparseAutoencoderRow
) -> None:
    add_report(row)
    page = read(as_owner, row)
    for words in (
        "12.3 %",
        "5 to 8",
        "8 of 256 (3.1 %)",
        "cosine 0.87",
        "21,600 positions of 150 images",
        "0.412 [0.35, 0.48]",
        "3.4 [3.1, 3.7]",
        "70.0 % [62.0 %, 77.0 %]",
        "87.9 % [85.0 %, 90.0 %]",
        "summed over classes, in nats",
        "Measure again",
        "/units/sae:toys-256/layer4/",
    ):
        assert words in page, words


def test_its_histograms_hold_every_latent(row: SparseAutoencoderRow) -> None:
    report = add_report(row)
    drawn = draw_report(row)
    assert drawn
    for plot in (drawn.density, drawn.similarity):
        assert plot.table
        assert sum(int(str(count)) for _, count in plot.table.rows) == report.latents
    assert drawn.density.bars[0].words == "8 latents never active"
    assert [bar.words for bar in drawn.density.bars][1:] == [
        "48 latents from 0.1 % to 1 %",
        "150 latents from 1 % to 10 %",
        "50 latents from 10 % to 100 %",
    ]
    assert drawn.similarity.bars[-1].words == "20 latents from 0.9 to 1.0"


def test_an_output_that_was_not_measured_says_why(as_owner: Client, row: SparseAutoencoderRow) -> None:
    add_report(row, output=OutputEffect(why="logits is the output itself"))
    assert "Not measured: logits is the output itself" in read(as_owner, row)


@pytest.mark.parametrize("stored", [{}, {"name": "<b>"}])
def test_until_it_is_measured_the_page_says_what_that_gives(
    as_owner: Client, row: SparseAutoencoderRow, stored: dict[str, str]
) -> None:
    row.report = stored
    row.save()
    page = read(as_owner, row)
    assert "Not measured yet" in page
    assert "<b></b>" not in page
    assert as_owner.post(f"/settings/autoencoders/{row.pk}/measure/").status_code == 302
    job = Job.objects.get()
    assert (job.kind, job.subject, job.status) == ("measure", "sae:toys-256", "queued")
    assert "Measure sae:toys-256" in read(as_owner, row)
    assert f'hx-get="/settings/autoencoders/{row.pk}/"' in read(as_owner, row)
    as_owner.post(f"/settings/autoencoders/{row.pk}/measure/")
    assert Job.objects.count() == 1, "the same that is under way is not asked for twice"


def test_one_whose_file_is_gone_is_not_measured(as_owner: Client, row: SparseAutoencoderRow) -> None:
    VisionModelRow.objects.filter(pk=row.model_id).update(available=False, remedy="Its file is gone.")
    assert "Measure</button>" not in read(as_owner, row)
    response = as_owner.post(f"/settings/autoencoders/{row.pk}/measure/", follow=True)
    assert "Its file is gone." in response.content.decode()
    assert not Job.objects.exists()


def test_a_viewer_reads_it_and_asks_for_nothing(client: Client, row: SparseAutoencoderRow) -> None:
    add_report(row)
    as_viewer = client
    as_viewer.force_login(member("onlooker", "VIEWER"))
    assert "Measure again" not in read(as_viewer, row)
    assert as_viewer.post(f"/settings/autoencoders/{row.pk}/measure/").status_code == 403
    assert as_viewer.get("/settings/autoencoders/99/").status_code == 404


def test_a_script_may_ask_too(owner: User, row: SparseAutoencoderRow) -> None:
    script = Script(owner)
    sent = script.post(f"/autoencoders/{row.pk}/measure")
    assert (sent.status_code, sent.json()["kind"]) == (202, "measure")
    assert script.post("/autoencoders/99/measure").status_code == 404
