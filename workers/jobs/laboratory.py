"""The laboratory and the sandbox of this process, built from Django's settings on first use.

The only place where settings become `LabSettings`. Imports torch: never imported by the web process.
"""

from __future__ import annotations

import threading
from functools import cache

from django.conf import settings

from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, Sandbox
from workers.sandbox.host import ZygoteSandbox

building = threading.Lock()


def lab_settings() -> LabSettings:
    return LabSettings(
        state=settings.STATE,
        device=settings.LAB_DEVICE,
        batch_size=settings.LAB_BATCH_SIZE,
        data_set_images=settings.LAB_DATA_SET_IMAGES,
        words_per_second=settings.LAB_WORDS_PER_SECOND,
    )


def laboratory() -> Laboratory:
    with building:
        return build_laboratory()


def sandbox() -> Sandbox:
    with building:
        return build_sandbox()


@cache
def build_laboratory() -> Laboratory:
    return Laboratory(lab_settings())


@cache
def build_sandbox() -> ZygoteSandbox:
    return ZygoteSandbox(override=settings.SANDBOX_OVERRIDE)
