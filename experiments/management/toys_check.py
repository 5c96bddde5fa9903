"""What operators are told of the toys that files add to the game engine, where the settings name a folder of them."""

from __future__ import annotations

from django.conf import settings


def describe_toys() -> str:
    """A headline, and a line for each file that is left out; "" if no folder is named."""
    if not settings.LAB_GAME_MODELS:
        return ""
    from workers.jobs import catalogue

    extras, problems = catalogue.describe_engine()
    headline = f"Game engine: {extras or 'no file adds a toy to it.'}"
    return "\n".join([headline, *(f"  left out: {problem}" for problem in problems)])
