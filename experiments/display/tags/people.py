"""People and systems, as pages call them."""

from __future__ import annotations

from django import template

from experiments.core import display_name
from experiments.core.system_names import Names

register = template.Library()
BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
"""What a browser calls itself holds these words; the first that fits counts."""


register.filter(display_name.person)


@register.filter
def browser(agent: str) -> str:
    """A browser in words, such as Firefox on Linux; what else calls itself, cut."""
    name = next((words for mark, words in BROWSERS if mark in agent), "")
    system = next((words for mark, words in SYSTEMS if mark in agent), "")
    return f"{name} on {system}" if name and system else name or agent[:60] or "A browser"


def names_in(context: template.Context) -> Names:
    """What systems are called before who looks at the page; without a viewer, as everybody may read it."""
    found = context.get("names")
    return found if isinstance(found, Names) else Names(None)
