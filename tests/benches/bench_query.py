"""How many modules of ours a query crosses: from the form that is sent to the first event that a viewer sees drawn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Run
from tests import ROOT
from tests.support.run_form import GOOD
from tests.support.viewer import Viewer
from workers.jobs import catalogue, lease, rounds
from workers.jobs import laboratory as place

pytestmark = [pytest.mark.bench, pytest.mark.django_db(transaction=True)]
PRODUCT = tuple(f"{ROOT / top}/" for top in ("maia_web", "experiments", "workers"))
TRANSCRIPT = str(ROOT / "experiments/core/transcript.py")


class Crossed:
    """The modules in which a function ran, on whatever thread: imports do not count."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.is_over = False

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if self.is_over or not code.co_filename.startswith(PRODUCT):
            return
        if event == "call" and code.co_flags & 0x02:  # a function: bodies of modules and classes have no fast locals
            self.modules.add(str(Path(code.co_filename).relative_to(ROOT)))

    def until_recorded(self, frame: FrameType, event: str, argument: Any) -> None:
        """The same, until the first event is in the transcript."""
        self.note(frame, event, argument)
        ended = event == "return" and argument is not None
        self.is_over |= ended and frame.f_code.co_filename == TRANSCRIPT and frame.f_code.co_name == "append"


@contextmanager
def counted(note: Any) -> Iterator[None]:
    """On this thread, and on those that begin meanwhile."""
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def ask(browser: Client, crossed: Crossed) -> Run:
    assert browser.get("/query/").status_code == 200  # the first request of a process imports every page
    with counted(crossed.note):
        response = browser.post("/query/", GOOD)
    assert response.status_code == 302
    return Run.objects.get()


def begin(run: Run, crossed: Crossed) -> None:
    with counted(crossed.until_recorded):
        claimed = lease.claim(run.pk)
        assert claimed
        rounds.execute_claimed(claimed)
    assert run.events.order_by("seq")[0].kind == "started"
    assert crossed.is_over


async def test_modules_that_a_query_crosses(
    owner: User, client: Client, settings: Any, redis_url: str, quick_state_copy: Path
) -> None:
    settings.STATE, settings.LAB_DATASET_IMAGES = quick_state_copy, 200
    place.build_laboratory.cache_clear()
    web, worker, viewer = Crossed(), Crossed(), Crossed()
    for look in (catalogue.write_dataset, catalogue.write_toolset, catalogue.write_model):
        await sync_to_async(look)("toybox")
    await sync_to_async(catalogue.write_backbone)("scripted")
    await sync_to_async(client.force_login)(owner)
    run = await sync_to_async(ask)(client, web)
    await sync_to_async(begin)(run, worker)
    await sync_to_async(sys.setprofile)(viewer.note)  # the thread in which consumers ask the database
    with counted(viewer.note):
        async with Viewer(run, owner) as socket:
            await socket.until("event", seq=1)
    await sync_to_async(sys.setprofile)(None)
    every = web.modules | worker.modules | viewer.modules
    for name, found in {"web, asking": web, "worker, to the first event": worker, "web, drawing it": viewer}.items():
        print(f"\n{name}: {len(found.modules)} modules")
        print(*sorted(found.modules), sep="\n")
    print(f"\nA query crosses {len(every)} modules of ours.")
