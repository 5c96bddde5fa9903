"""Long jobs: the catalogue of plug-ins, the exemplars of a unit for the pages that show them, work people ask for."""

from __future__ import annotations

import logging
import time

from celery import shared_task

from experiments.core import notify
from experiments.models import UnitProfile
from workers.errors import Cancelled, MaiaError
from workers.jobs import lease
from workers.protocols import Progress

log = logging.getLogger(__name__)

CATALOGUE = "catalogue"
"""Topic under which pages see how far `write_catalogue` is."""
TELL_EVERY = 0.25
"""Seconds between two reports."""


@shared_task(name="workers.jobs.long.write_catalogue")
def write_catalogue() -> None:
    """Look at every plug-in and write down what there is and what is missing. Running it again changes nothing."""
    from workers.jobs import catalogue

    try:
        catalogue.write_all(reporter(CATALOGUE))
    except Cancelled:
        log.info("The worker stops before it has looked at every plug-in; the next one looks again.")


@shared_task(name="workers.jobs.long.write_exemplars")
def write_exemplars(profile_id: int) -> None:
    """Write the exemplars of one unit over one dataset, raw and masked; the index is built if need be."""
    from workers.jobs.unit_profiles import write

    profile = UnitProfile.objects.filter(pk=profile_id, written=None).first()
    if profile is None:
        return
    try:
        write(profile, reporter(f"profile:{profile_id}"))
    except Cancelled:
        return
    except MaiaError as error:
        UnitProfile.objects.filter(pk=profile_id).update(problem=str(error))
    except Exception as error:
        UnitProfile.objects.filter(pk=profile_id).update(problem=f"{type(error).__name__}: {error}")
        raise


@shared_task(name="workers.jobs.long.write_neighbours")
def write_neighbours(profile_id: int) -> None:
    """Write down which units are most like one, over one dataset. Takes a moment: the index knows it all."""
    from workers.jobs.unit_profiles import write_neighbours as write

    if profile := UnitProfile.objects.select_related("unit__layer__model", "dataset").filter(pk=profile_id).first():
        write(profile)


@shared_task(name="workers.jobs.long.write_thumbnails")
def write_thumbnails() -> None:
    """Make the thumbnails of images that lack them, some at a time. Running it again changes nothing."""
    from workers.jobs import thumbnails

    thumbnails.write_missing()


@shared_task(name="workers.jobs.long.work")
def work(job_id: int) -> None:
    """Do what somebody asked for on a settings page. A second delivery of the same message finds nothing to do."""
    from workers.jobs import job_runner

    job_runner.work(job_id)


def reporter(topic: str) -> Progress:
    """Tells the pages that wait how far work is; ends it when the worker stops."""
    told = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal told
        if lease.stopping.is_set():
            raise Cancelled("The worker stops.")
        now = time.monotonic()
        if done >= total or now - told >= TELL_EVERY:
            told = now
            notify.keep_report(topic, what, done, total, seconds=120)

    return report
