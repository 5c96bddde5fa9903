"""The settings page about workers: which there are, what they hold in memory, what they are doing."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.core import access, worker_status
from experiments.core.access import HtmxRequest


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """Every worker heard of lately; the list alone for htmx, which asks every few seconds."""
    access.require(request)
    told = worker_status.present()
    workers = None if told is None else [worker_status.described(each) for each in told]
    template = "installation/workers_now.html" if request.htmx else "installation/workers.html"
    return render(request, template, {"workers": workers})
