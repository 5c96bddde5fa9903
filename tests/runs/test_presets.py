"""Presets: kept from the form, used by the form, shared with the team, changed by their owner alone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import AuditEntry, Layer, Preset, VisionModelRow
from tests.support.people import member
from tests.support.run_form import GOOD

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalogue() -> None:
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    for position, name in enumerate(("layer3", "layer4")):
        Layer.objects.create(model=model, position=position, name=name, path=name, kind="conv", units=16)


def test_the_form_is_saved_under_a_name_and_fills_the_next_one(as_owner: Client) -> None:
    sent = GOOD | {"layer": "layer3", "rounds": "7", "dataset": ""}
    assert "Save as preset" in as_owner.post("/query/presets/", sent).content.decode()
    assert not Preset.objects.exists()
    response = as_owner.post("/query/presets/", sent | {"name": "Quick", "shared": "on"})
    kept = Preset.objects.get()
    assert (kept.name, kept.shared, kept.settings["layer"]) == ("Quick", True, "layer3")
    assert not {"question", "unit"} & kept.settings.keys()
    text = as_owner.get(response["Location"]).content.decode()
    assert 'name="rounds" value="7"' in text
    assert '<option value="layer3" selected>' in text
    assert "What excites it?" in text
    assert 'value="7"' in text
    assert AuditEntry.objects.filter(verb="preset.saved", row_pk=kept.pk).count() == 1


def test_settings_that_no_run_could_have_are_refused_with_the_field(as_owner: Client) -> None:
    response = as_owner.post("/query/presets/", GOOD | {"name": "Bad", "rounds": "0", "dataset": ""})
    assert response.status_code == 400
    assert "Rounds: A limit must be above 0" in response.content.decode()
    assert not Preset.objects.exists()


def test_others_use_a_shared_preset_and_cannot_change_it(as_owner: Client, owner: User) -> None:
    mine = Preset.objects.create(owner=owner, name="Mine alone", settings={"layer": "layer3"})
    ours = Preset.objects.create(owner=owner, name="Ours", settings={"layer": "layer3"}, shared=True)
    other = Client()
    other.force_login(member("colleague", "RESEARCHER"))
    text = other.get("/query/presets/").content.decode()
    assert "Ours" in text
    assert "Mine alone" not in text
    assert '<option value="layer3" selected>' in other.get(f"/query/?preset={ours.pk}").content.decode()
    assert '<option value="layer4" selected>' in other.get(f"/query/?preset={mine.pk}").content.decode()
    assert other.post(f"/query/presets/{ours.pk}/delete/").status_code == 404
    assert as_owner.post(f"/query/presets/{ours.pk}/delete/").status_code == 302
    assert list(Preset.objects.all()) == [mine]


def test_a_tick_that_is_off_stays_off(as_owner: Client, owner: User) -> None:
    ticked = 'id="id_ablation" checked>'
    for value, shown in (("on", True), ("false", False), ("", False)):
        settings = {"layer": "layer3", "ablation": value}
        kept = Preset.objects.create(owner=owner, name=f"Ablation {value}", settings=settings)
        text = " ".join(as_owner.get(f"/query/?preset={kept.pk}").content.decode().split())
        assert (ticked in text) == shown
