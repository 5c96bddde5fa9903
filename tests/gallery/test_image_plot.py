"""What one image did to units: shares of each run's own threshold, none where none is known."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.core.system_names import SystemNameMasker
from experiments.gallery.image_plot import draw_uses
from experiments.models import Image, Run
from tests.support.builders import experiment, make_run
from tests.support.pictures import logged, seen, stored


def ran(owner: User, activation: float, mean: float | None, **fields: Any) -> Run:
    run = make_run(owner, **fields)
    transcript.append(run.pk, "experiment", experiment(1))
    transcript.append(run.pk, "result", logged(seen("picture", activation, "red"), number=1, exemplar_mean=mean))
    return run


def test_a_strip_stands_for_each_unit_with_shares_of_its_threshold(owner: User) -> None:
    first = ran(owner, 4.0, 8.0)
    ran(owner, 3.0, 2.0, unit=9)
    plot = draw_uses(Image.objects.get(pk=stored("red")), SystemNameMasker(owner))
    assert plot is not None
    assert f"Run {first.pk}: 4.00 of 8.00, a share: 0.50" in [dot.words for dot in plot.dots]
    assert "toybox / layer4 / unit 9: mean 1.50 · n = 1" in plot.label


def test_an_image_that_no_run_with_a_threshold_logged_has_no_plot(owner: User) -> None:
    ran(owner, 4.0, None)
    assert draw_uses(Image.objects.get(pk=stored("red")), SystemNameMasker(owner)) is None
