"""How long the import of a long run keeps others from writing: the seconds of its one transaction."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from experiments.exchange import import_bundle
from experiments.exchange.import_bundle import ImportSource
from experiments.models import Image
from tests.support.bundles import bundled
from tests.support.long_run import long_run
from workers.jobs import exchange

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("redis_url")]

ROUNDS = 2_500


@pytest.mark.django_db(transaction=True)
def test_the_transaction_of_a_long_run(owner: User, tmp_path: Path) -> None:
    path = bundled(run := long_run(owner, ROUNDS, images=2), path=tmp_path / "run.zip")
    run.delete()
    Image.objects.all().delete()
    times = {"": time.perf_counter()}

    def progress(what: str, done: int, total: int) -> None:
        times[what] = time.perf_counter()

    (taken,) = import_bundle.bundle(path, ImportSource("run.zip", owner), exchange.laboratory(), progress)
    end = time.perf_counter()
    print(
        f"\n{taken.run.last_seq:,} events and {taken.run.observation_count:,} images: {end - times['']:.1f} s, "
        f"{end - times['Saving']:.1f} s of them in the transaction (load {os.getloadavg()[0]:.1f})"
    )
