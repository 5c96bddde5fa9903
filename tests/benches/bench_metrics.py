"""Which metrics fall when a label is too narrow or too broad, at every frequency. Synthetic units, seeded."""

from __future__ import annotations

import pytest

from tests.support.sanity import METRICS, make_units, share_falling

pytestmark = pytest.mark.bench
FREQUENCIES = (0.5, 0.1, 0.01, 0.001)
UNITS = 100


def test_print_which_metrics_are_sound() -> None:
    units = {frequency: make_units(UNITS, frequency, seed=0) for frequency in FREQUENCIES}
    print(f"\nShare of {UNITS} units whose score falls, missing / extra labels, by frequency of the concept")
    print(f"{'':38}" + "".join(f"{frequency:>14g}" for frequency in FREQUENCIES))
    for metric in METRICS:
        cells = [share_falling(metric, units[frequency]) for frequency in FREQUENCIES]
        print(f"{metric:38}" + "".join(f"{missing:>7.2f} /{extra:5.2f}" for missing, extra in cells))
        assert len(cells) == len(FREQUENCIES)
