"""What the templates of comments call."""

from __future__ import annotations

import hashlib
from typing import Any

from django import template
from django.utils.safestring import SafeString

from experiments.comments import anchors, lists
from experiments.core.thumbnails import ImageUrls
from experiments.display import prose
from experiments.models import Comment, Event, Image, Observation, Run, Thread

register = template.Library()


@register.inclusion_tag("comments/list.html", takes_context=True)
def discussion(context: dict[str, Any], run: Run) -> dict[str, Any]:
    """The threads of a run as who asks may see them, by the address of the page."""
    request = context["request"]
    known = {"request": request, "csrf_token": context.get("csrf_token")}
    return {**lists.run_panel(run, request.user, request.GET.dict()), **known}


@register.inclusion_tag("comments/spot.html", takes_context=True)
def talks_at(context: dict[str, Any], run: Run, event: Event) -> dict[str, Any]:
    """The threads on one event, as who asks may see them."""
    request = context["request"]
    known = {"request": request, "csrf_token": context.get("csrf_token")}
    return {**lists.event_panel(run, request.user, event, {}), **known}


@register.inclusion_tag("comments/of_image.html", takes_context=True)
def talks_of_image(context: dict[str, Any], image: Image) -> dict[str, Any]:
    """The newest threads on an image, in whatever runs, as who asks may see them; to be read alone."""
    return {"threads": lists.threads_on_image(context["request"].user, image.pk), "may_comment": False}


@register.filter
def render_comment(comment: Comment) -> SafeString:
    """A comment's words as safe HTML, with the names of those it mentions."""
    return prose.render_words(comment.text, {user.get_username() for user in comment.mentions.all()})


@register.filter
def form_fields(anchor: Any) -> dict[str, str | int]:
    """What a new thread would hang on, as its form sends it; nothing where the run as a whole is meant."""
    return anchors.form_fields(anchor) if isinstance(anchor, Thread) else {}


@register.filter
def draft_key(place: Any) -> str:
    """What names a draft in the browser: the thread or comment at which it was begun, or what a new one hangs on."""
    if isinstance(place, Thread | Comment) and place.pk:
        return f"{place._meta.model_name}-{place.pk}"
    return f"new-{hashlib.sha256(repr(form_fields(place)).encode()).hexdigest()[:12]}"


@register.inclusion_tag("comments/thumb.html")
def thumb_of(row: Observation) -> dict[str, Any]:
    """A small image with its title and activation, beside what is said of it."""
    return {"row": row, "masked": ImageUrls.of(row.masked_id or row.image_id), "raw": ImageUrls.of(row.image_id)}
