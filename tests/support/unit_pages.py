"""A model whose units have pages, and what those show."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from experiments.core import transcript
from experiments.models import Dataset, Exemplar, Label, Layer, Run, Unit, UnitProfile, VisionModelRow
from tests.support.builders import experiment, make_run, replied
from tests.support.pictures import logged, seen, stored
from workers.record.events import Ended
from workers.record.experiments import Observation
from workers.record.replies import Conclusion

RESNET = "hf:microsoft/resnet-152"
LAYERS = (("conv1", 64), ("layer1", 256), ("layer2", 512), ("layer3", 1024), ("layer4", 2048), ("logits", 1000))
MARKUP = "<script>alert(1)</script>"


def make_resnet() -> VisionModelRow:
    cache.clear()
    model = VisionModelRow.objects.create(name=RESNET, revision="1", label="ResNet-152")
    for position, (name, units) in enumerate(LAYERS):
        names = [f"class {n}" for n in range(units)] if name == "logits" else []
        kind = "logit" if names else "conv"
        Layer.objects.create(model=model, position=position, name=name, path=name, kind=kind, units=units, names=names)
    Dataset.objects.create(key="photos", label="Photographs", images=50_000)
    return model


def layer_of(model: VisionModelRow, name: str = "layer4") -> Layer:
    return model.layers.get(name=name)


def labelled(layer: Layer, number: int, *texts: str, run: Run | None = None, source: str = "import") -> Unit:
    unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
    for text in texts:
        Label.objects.create(text=text, source="run" if run else source, run=run).units.add(unit)
    return unit


def asked(owner: User, number: int, status: str, **fields: Any) -> Run:
    return make_run(owner, **({"model": RESNET, "unit": number, "status": status} | fields))


def concluded(owner: User, number: int = 7) -> Run:
    """A run on a unit that logged images and ended in a label."""
    run = asked(owner, number, "running")
    red, dull = seen("a red ball", 4.0, "red"), seen("red balls far away", 0.5, "orange")
    blue, edit = (
        seen("a blue cube", 3.0, "blue"),
        Observation(MARKUP, 0.25, stored("grey"), None, "edited", original=red.image),
    )
    transcript.append(run.pk, "reply", replied())
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", logged(red, dull, blue, edit))
    transcript.append(run.pk, "concluded", Ended("done", Conclusion("Red balls.", ("red balls",), "", "")))
    return run


def measured(unit: Unit, **fields: Any) -> UnitProfile:
    known = {
        "written": timezone.now(),
        "quantile": 0.5,
        "active": 0.1,
        "histogram": {"start": 0.0, "width": 0.5, "counts": [900, 40, 0, 3]},
    }
    profile = UnitProfile.objects.create(unit=unit, dataset=Dataset.objects.get(key="photos"), **(known | fields))
    for rank, activation in enumerate((2.0, 1.0), 1):
        image, masked = stored("green"), stored("darkgreen")
        Exemplar.objects.create(profile=profile, rank=rank, activation=activation, image_id=image, masked_id=masked)
    return profile
