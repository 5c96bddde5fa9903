"""Plot the activations that one image caused in all units that saw it: a strip of dots for each unit."""

from __future__ import annotations

import math
from collections import defaultdict

from django.db.models import Q
from django.urls import reverse

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.plots import Level, Plot, PlotValue, ValueGroup, draw_groups
from experiments.models import Image, Observation
from workers.record.figures import figure

MAX_OBSERVATIONS, MAX_UNITS = 500, 12
"""Maximum observations that are drawn, the newest; and units, those that saw it most often."""
LEVEL = Level(1.0, "Exemplar threshold")


def draw_uses(image: Image, names: SystemNameMasker) -> Plot | None:
    """Plot the uses. Units are compared by activation relative to the mean of each run's exemplars, so that 1 is as
    strong as these. None if no run with such a mean logged the image. One query."""
    asked = Q(image=image.key) | Q(masked=image.key)
    # The mean is the divisor, so it must be positive.
    rows = visible_to(Observation.objects.filter(asked, run__exemplar_mean__gt=0))
    rows = rows.exclude(names.are_hidden_at("run__model", "run__layer", "run__unit")).order_by("-pk")
    columns = ("activation", "run", "experiment__number", "run__exemplar_mean", "run__model", "run__layer", "run__unit")
    found: dict[str, list[PlotValue]] = defaultdict(list)
    count = 0
    for value, run, number, mean, model, layer, unit in rows.values_list(*columns)[:MAX_OBSERVATIONS]:
        # Programs may log an infinity, which has no place on an axis.
        if math.isfinite(value):
            words = f"Run {run}: {figure(value)} of {figure(mean)}, a share"
            link = reverse("experiment", args=[run, number])
            found[f"{model} / {layer} / unit {unit}"].append(PlotValue(value / mean, words, link))
            count += 1
    # The name makes the order of equals stable.
    most = sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))[:MAX_UNITS]
    # The style sheet has six colours; more units repeat them.
    groups = [ValueGroup(name, f"part-{place % 6}", values) for place, (name, values) in enumerate(most)]
    plot = draw_groups(groups, "Activation of this image by unit", "Share of the exemplar threshold", level=LEVEL)
    if plot and count == MAX_OBSERVATIONS:
        plot.note = f"The newest {MAX_OBSERVATIONS:,} uses are drawn, and counted here."
    if plot and len(found) > MAX_UNITS:
        plot.note = f"{plot.note} The {MAX_UNITS} units of {len(found)} that looked at it most often.".strip()
    return plot
