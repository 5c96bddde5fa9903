"""Build the laboratory and the sandbox of this process from Django's settings on first use.

Only this module turns settings into `LabSettings`. It imports torch, so the web process must not import it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import cast

from django.conf import settings

from workers import hub
from workers.lab.laboratory import Laboratory
from workers.model_cache import ModelCache
from workers.plugins.loading import PluginReport, load_plugins
from workers.prices import PriceList
from workers.protocols import AutoSwitch, CacheHint, LabSettings, Precision, Provider, Sandbox, Surroundings
from workers.sandbox.host import ZygoteSandbox
from workers.weights import compute_in_float32, find_device

building = threading.Lock()

plugin_reports: list[PluginReport] = []
"""Reports on the plug-ins, filled when the laboratory is built."""


@cache
def build_laboratory() -> Laboratory:
    device = find_device(settings.LAB_DEVICE)
    # PyTorch's default on CUDA, TF32, would make maps less exact.
    if settings.LAB_PRECISION == "float32":
        compute_in_float32()
    known = LabSettings(
        state=settings.STATE,
        device=device,
        precision=cast("Precision", settings.LAB_PRECISION),
        model_cache=ModelCache(int(settings.LAB_MEMORY_GB * (1 << 30)), device),
        provider=Provider(
            key=settings.OPENAI_API_KEY,
            base_url=settings.OPENAI_BASE_URL,
            models=tuple(settings.OPENAI_MODELS),
            prices=PriceList(settings.OPENAI_PRICES),
            context_tokens=settings.OPENAI_CONTEXT_TOKENS,
            attempts=settings.OPENAI_ATTEMPTS,
            silence=settings.OPENAI_SILENCE,
            reasoning_effort=settings.OPENAI_REASONING_EFFORT,
            image_detail=settings.OPENAI_IMAGE_DETAIL,
            cache=cast("CacheHint", settings.OPENAI_CACHE),
            return_reasoning=cast("AutoSwitch", settings.OPENAI_RETURN_REASONING),
            tools=cast("AutoSwitch", settings.OPENAI_TOOLS),
        ),
        dataset=settings.LAB_DATASET,
        generator=settings.LAB_GENERATOR,
        editor=settings.LAB_EDITOR,
        image_batch=settings.LAB_IMAGE_BATCH,
        image_steps=settings.LAB_IMAGE_STEPS,
        image_guidance=settings.LAB_IMAGE_GUIDANCE,
        image_size=settings.LAB_IMAGE_SIZE,
        edit_steps=settings.LAB_EDIT_STEPS,
        edit_guidance=settings.LAB_EDIT_GUIDANCE,
        edit_size=settings.LAB_EDIT_SIZE,
        batch_size=settings.LAB_BATCH_SIZE,
        dataset_images=settings.LAB_DATASET_IMAGES,
        surroundings=cast("Surroundings", settings.LAB_SURROUNDINGS),
        game_models=settings.LAB_GAME_MODELS,
        sentences=settings.LAB_SENTENCES,
        find_sandbox=sandbox,
        words_per_second=settings.LAB_WORDS_PER_SECOND,
    )
    # Before the laboratory is used: plug-ins add to the registry
    plugin_reports[:] = load_plugins(settings.PLUGINS, settings.PLUGIN_SECONDS)
    return Laboratory(known)


def laboratory() -> Laboratory:
    # Two threads must not build it at once: models would be loaded twice
    with building:
        return build_laboratory()


def sandbox() -> Sandbox:
    with building:
        return build_sandbox()


@cache
def build_sandbox() -> ZygoteSandbox:
    built = ZygoteSandbox(override=settings.SANDBOX_OVERRIDE)
    atexit.register(built.close)  # Its interpreters must end before this process
    return built


@contextmanager
def fetching(*, allowed: bool) -> Iterator[None]:
    """Download missing weights from the hub while the block runs, if allowed."""
    if allowed:
        hub.fetching.set()
    try:
        yield
    finally:
        if allowed:
            hub.fetching.clear()
