"""Provide tags for the frame of every page: breadcrumbs and other shared parts."""

from __future__ import annotations

from typing import Any

from django import template
from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

from experiments.display.bundles import join_links
from experiments.display.glossary import ENTRIES
from experiments.display.layout import address, breadcrumbs

register = template.Library()


@register.inclusion_tag("display/breadcrumbs.html", takes_context=True)
def show_breadcrumbs(context: template.Context) -> dict[str, Any]:
    """Show the way to this page. A view can override it with `breadcrumbs` in its context: (words, address)."""
    given = context.get("breadcrumbs")
    if given is not None:
        return {"breadcrumbs": [("Overview", address("overview")), *given]}
    request = context.get("request")
    return {"breadcrumbs": breadcrumbs(request.path_info) if request else []}


@register.filter
def lookup(mapping: Any, key: str) -> Any:
    """Return the value under a variable key; "" if there is none."""
    return mapping.get(key, "")


@register.inclusion_tag("display/explain.html")
def explain(word: str) -> dict[str, Any]:
    """Show a small link beside a heading to the glossary entry of a word, by its key."""
    return {"entry": ENTRIES[word]}


@register.filter
def page_address(name: str) -> str:
    """Return the address of a page by its URL name."""
    return address(name) if name else ""


@register.tag
def bundle(parser: template.base.Parser, _: template.base.Token) -> BundleNode:
    """Replace the links to style sheets and scripts between `{% bundle %}` and `{% endbundle %}` by one of each."""
    inner = parser.parse(("endbundle",))
    # The end tag itself, which `parse` leaves.
    parser.delete_first_token()
    return BundleNode(inner)


class BundleNode(template.Node):
    """Render the content between the tags, with its links replaced."""

    def __init__(self, nodelist: template.NodeList) -> None:
        self.nodelist = nodelist

    def render(self, context: template.Context) -> SafeString:
        text = self.nodelist.render(context)
        # With DEBUG the files stay separate, so that an edit shows at once.
        return text if settings.DEBUG else mark_safe(join_links(text))  # noqa: S308 - our own links
