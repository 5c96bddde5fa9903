"""Which metrics fall when a label is too narrow or too broad: on units drawn by chance, at every frequency, and on real
ones of toybox-eyes, whose truth is their label. All are seeded."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.benches.bench_scripted import STATE
from tests.support.sanity import METRICS, Unit, make_units, read_real_units, share_falling

FREQUENCIES = (0.5, 0.1, 0.01, 0.001)
UNITS = 100
SEED, SCENES = 12, 1_000
"""Of the neurons that are read, and over how many scenes."""


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_print_which_metrics_are_sound() -> None:
    made = {f"{frequency:g}": make_units(UNITS, frequency, seed=0) for frequency in FREQUENCIES}
    print_table(made | {"toybox-eyes": read_real_units(STATE, SEED, SCENES)})


def print_table(columns: Mapping[str, list[Unit]]) -> dict[str, list[tuple[float, float]]]:
    """A row for each metric; returns the shares, missing and extra, by metric."""
    print("\nShare of units whose score falls, missing / extra labels, by frequency of the concept; n below")
    print(f"{'':38}" + "".join(f"{name:>14}" for name in columns))
    shares = {metric: [share_falling(metric, units) for units in columns.values()] for metric in METRICS}
    for metric, cells in shares.items():
        print(f"{metric:38}" + "".join(f"{missing:>7.2f} /{extra:5.2f}" for missing, extra in cells))
    print(f"{'n':38}" + "".join(f"{len(units):>14}" for units in columns.values()))
    return shares
