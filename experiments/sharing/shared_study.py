"""Context of a shared study as it is now, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from experiments.core.display_name import person
from experiments.core.paging import Page
from experiments.core.system_names import Names
from experiments.models import Share
from experiments.sharing.shared_run import SharedImages
from experiments.studies import parts
from experiments.studies.lists import list_items
from workers.record.events import Audience


def read_shared_study(share: Share, token: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the template context of a shared study."""
    study, names, pictures = share.study, Names(None), SharedImages(token)
    assert study is not None, "a link to a run has another page"
    items = list_items(study, names)
    page = Page.of(params, len(items), parts.PAGE_SIZE)
    reader = parts.StudyReader(names, Audience.LINK, lambda run: reverse("shared-run", args=[token, run.pk]), pictures)
    return {
        "share": share,
        "study": study,
        "author": person(study.owner) if share.show_names else "",
        "parts": parts.draw_parts(items[page.start : page.end], reader, page.first),
        "pictures": pictures,
        "names": names,
        "page": page,
        "team": False,
    }
