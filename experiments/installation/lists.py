"""Contexts of the settings pages: jobs, models, datasets with their indexes, and auto-encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db.models import Count, Prefetch, Sum

from experiments.core import notify, worker_status
from experiments.installation.actions import NEEDS
from experiments.installation.catalogue_forms import AddDataset, AddIndex, AddModel
from experiments.installation.form import NewAutoencoder
from experiments.installation.sparse_report import draw_report
from experiments.models import (
    Backbone,
    Dataset,
    Job,
    JobKind,
    Layer,
    LayerIndex,
    Role,
    SparseAutoencoderRow,
    Toolset,
    VisionModelRow,
)

MAX_JOBS = 6
"""Maximum number of jobs on a page, newest first."""
MAX_BROKEN = 50
"""Maximum number of unreadable files that a page names. The rest is counted."""


def _recent_jobs(kinds: Sequence[JobKind], role: Role, **about: str) -> dict[str, Any]:
    """Return the newest jobs of these kinds for a template. `moving` is true while the page must reload them."""
    rows = Job.objects.filter(kind__in=kinds, **about).select_related("asked_by")[:MAX_JOBS]
    found = [
        {"job": job, "progress": notify.read_progress(job), "may_change": role >= NEEDS[JobKind(job.kind)]}
        for job in rows
    ]
    return {"jobs": found, "moving": any(job.is_moving for job in rows), "worker": worker_status.has_worker()}


def models(role: Role, form: AddModel) -> dict[str, Any]:
    """Return the context of the Models page with its form."""
    counted = VisionModelRow.objects.annotate(layer_count=Count("layers"), unit_count=Sum("layers__units"))
    rows = list(counted.order_by("-available", "name"))
    looking = notify.read_report("catalogue")
    under_way = bool(looking and looking["done"] < looking["total"])
    jobs = _recent_jobs([JobKind.MODEL], role)
    return jobs | {
        "here": "settings-models",
        "form": form,
        "list": "installation/models_list.html",
        "models": rows,
        "backbones": list(Backbone.objects.all()),
        "prices": settings.OPENAI_PRICES,
        "toolsets": list(Toolset.objects.all()),
        "looking": looking if under_way else None,
        "moving": jobs["moving"] or under_way or not rows,
        "may_add": role >= Role.ADMIN,
        "may_ask_work": role >= Role.RESEARCHER,
    }


class ListedDataset:
    """A dataset as the page lists it: its indexed layers by model, and the first of its broken files."""

    def __init__(self, row: Dataset) -> None:
        self.row = row
        self.indexed: dict[str, list[Layer]] = {}
        for index in row.indexes.all():
            self.indexed.setdefault(index.layer.model.name, []).append(index.layer)
        self.broken = row.broken[:MAX_BROKEN]
        self.more_broken = max(0, row.broken_count - len(self.broken))


def datasets(role: Role, index_form: AddIndex, form: AddDataset) -> dict[str, Any]:
    """Return the context of the Datasets page with its forms."""
    made = LayerIndex.objects.select_related("layer__model").defer("layer__names")
    rows = list(Dataset.objects.select_related("added_by").prefetch_related(Prefetch("indexes", queryset=made)))
    jobs = _recent_jobs([JobKind.DATASET, JobKind.INDEX], role)
    return jobs | {
        "moving": jobs["moving"] or not rows,
        "here": "settings-datasets",
        "list": "installation/datasets_list.html",
        "datasets": [ListedDataset(each) for each in rows],
        "index_form": index_form.offer(),
        "form": form,
        "may_add": role >= Role.ADMIN,
        "may_index": role >= Role.RESEARCHER,
    }


def autoencoders(role: Role, form: NewAutoencoder) -> dict[str, Any]:
    """Return the context of the Auto-encoders page with its form."""
    jobs = _recent_jobs([JobKind.SPARSE, JobKind.MEASURE], role)
    return jobs | {
        "here": "settings-autoencoders",
        "list": "installation/autoencoders_list.html",
        "autoencoders": list(SparseAutoencoderRow.objects.select_related("model__added_by")),
        "form": form.offer(),
        "may_train": role >= Role.RESEARCHER,
    }


def autoencoder(role: Role, row: SparseAutoencoderRow) -> dict[str, Any]:
    """Return the context of one auto-encoder's page."""
    jobs = _recent_jobs([JobKind.MEASURE], role, subject=row.model.name)
    return jobs | {
        "here": "settings-autoencoder",
        "list": "installation/autoencoder_report.html",
        "row": row,
        "drawn": draw_report(row),
        "may_measure": role >= Role.RESEARCHER and row.model.available,
    }
