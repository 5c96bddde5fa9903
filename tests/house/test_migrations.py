"""An existing database is brought up to date without losing what cannot be made again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def first_version() -> Iterator[None]:
    """The tables as the first migration left them."""
    call_command("migrate", "experiments", "0001", verbosity=0)
    yield
    call_command("migrate", verbosity=0)


def test_layers_units_and_labels_stay_and_exemplars_are_asked_for_anew(first_version: None) -> None:
    old = MigrationExecutor(connection).loader.project_state([("experiments", "0001_initial")]).apps
    rows = {
        name: old.get_model("experiments", name).objects for name in ("Model", "Layer", "Unit", "Exemplar", "Image")
    }
    model = rows["Model"].create(name="toybox", label="toys", revision="abc")
    layer = rows["Layer"].create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=4)
    unit = rows["Unit"].create(layer=layer, number=3, quantile=0.5, indexed=True)
    image = rows["Image"].create(key="0" * 64, width=8, height=8, created=timezone.now(), origin="exemplar")
    rows["Exemplar"].create(unit=unit, rank=1, activation=2.0, image=image, masked=image)
    label = old.get_model("experiments", "Label").objects.create(text="red balls", source="person")
    label.units.add(unit)
    call_command("migrate", verbosity=0)

    from experiments.models import Exemplar, Image, Label, Layer, Model, Profile

    assert Model.objects.get().available
    assert Model.objects.get().revision == "", "so that a worker lists the layers again, with names"
    assert Layer.objects.get().names == []
    assert [str(each) for each in Label.objects.get().units.all()] == ["toybox / layer4 / unit 3"]
    assert not Exemplar.objects.exists()
    assert not Profile.objects.exists()
    assert Image.objects.count() == 1
