"""Template tags and filters of comments."""

from __future__ import annotations

import hashlib
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.comments import anchors, lists
from experiments.core.thumbnails import ImageUrls
from experiments.display import prose
from experiments.models import Comment, Event, Image, Observation, Run, Thread

register = template.Library()


@register.inclusion_tag("comments/list.html", takes_context=True)
def discussion(context: dict[str, Any], run: Run) -> dict[str, Any]:
    """Show the threads of a run as the viewer may see them, filtered by the query of the page."""
    request = context["request"]
    known = {"request": request, "csrf_token": context.get("csrf_token")}
    return {**lists.run_panel(run, request.user, request.GET.dict()), **known}


@register.inclusion_tag("comments/spot.html", takes_context=True)
def talks_at(context: dict[str, Any], run: Run, event: Event) -> dict[str, Any]:
    """Show the threads on one event, as the viewer may see them."""
    request = context["request"]
    known = {"request": request, "csrf_token": context.get("csrf_token")}
    return {**lists.event_panel(run, request.user, event, {}), **known}


@register.inclusion_tag("comments/of_image.html", takes_context=True)
def talks_of_image(context: dict[str, Any], image: Image) -> dict[str, Any]:
    """Show the newest threads on an image in any run, read-only."""
    return {"threads": lists.threads_on_image(context["request"].user, image.pk), "may_comment": False}


@register.filter
def render_comment(comment: Comment) -> SafeString:
    """Return the text of a comment as safe HTML, with the people it mentions marked."""
    return prose.render_words(comment.text, {user.get_username() for user in comment.mentions.all()})


@register.simple_tag
def write_to(name: str, pk: int) -> SafeString:
    """Write the attributes of a form whose answer replaces the part of the page around it."""
    shape = 'method="post" action="{0}" hx-post="{0}" hx-target="closest .discussion" hx-swap="outerHTML"'
    return format_html(shape, reverse(name, args=[pk]))


@register.filter
def form_fields(anchor: Any) -> dict[str, str | int]:
    """Return the form fields of a new thread's anchor; empty for the run as a whole."""
    return anchors.form_fields(anchor) if isinstance(anchor, Thread) else {}


@register.filter
def draft_key(place: Any) -> str:
    """Return the key of a draft in the browser: the thread or comment where it began, or the anchor of a new thread."""
    if isinstance(place, Thread | Comment) and place.pk:
        return f"{place._meta.model_name}-{place.pk}"
    return f"new-{hashlib.sha256(repr(form_fields(place)).encode()).hexdigest()[:12]}"


@register.inclusion_tag("comments/thumb.html")
def thumb_of(row: Observation) -> dict[str, Any]:
    """Show a small image with its title and activation, beside comments on it."""
    return {"row": row, "masked": ImageUrls.of(row.masked_id or row.image_id), "raw": ImageUrls.of(row.image_id)}
