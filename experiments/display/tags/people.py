"""Provide template filters for names of people and systems."""

from __future__ import annotations

from django import template

from experiments.core import display_name
from experiments.core.system_names import SystemNameMasker

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
"""A user agent contains these words; the first match counts."""


register.filter(display_name.person)


@register.filter
def browser(agent: str) -> str:
    """Describe a browser, such as Firefox on Linux; return other user agents cut short."""
    # Edge and Opera also name Chrome, and Chrome names Safari: the order matters.
    name = next((words for mark, words in BROWSERS if mark in agent), "")
    system = next((words for mark, words in SYSTEMS if mark in agent), "")
    return f"{name} on {system}" if name and system else name or agent[:60] or "A browser"


def names_in(context: template.Context) -> SystemNameMasker:
    """Return the names of systems for the page's viewer; without a viewer, those that everyone may read."""
    found = context.get("names")
    return found if isinstance(found, SystemNameMasker) else SystemNameMasker(None)
