"""Bundles with one field changed at random, by seed, and every page and answer of what came of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern

from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Run
from experiments.runs.page.pages import TABS
from tests.support.bundles import Files, brought, forgotten, packed
from tests.support.routes import ALL

MEMBERS = ("run.json", "events.jsonl", "images.jsonl", "people.json")
ODD: tuple[Any, ...] = (
    *(None, "", True, 0, -1, 7, 10**17, -0.5, 1e29, 1e300, [], {}, [None], [[[]]], "items", "\x00\ud800", "x" * 3_000),
    *({"items": 1}, {"values": [], "keys": 3, "count": "x"}, {"get": {"items": []}}, ["items", {"items": "items"}]),
)
LISTS = ("/", "/runs/", "/experiments/", "/units/toybox/layer4/7/", "/search/?q=red", "/imports/", "/api/v1/runs")
LIVE = ("stream",)
"""Answers that do not end by themselves."""


def mutated(files: Files, seed: int) -> Files:
    """The members with one field of one of them changed, removed or called otherwise."""
    chance = random.Random(seed)
    name = chance.choice([each for each in MEMBERS if each in files])
    one = name.endswith(".json")
    rows = [json.loads(files[name])] if one else [json.loads(line) for line in files[name].splitlines()]
    places = list(inner(rows))
    holder, key = chance.choice(places)
    change = chance.random()
    if change < 0.15 and isinstance(holder, dict):
        del holder[key]
    elif change < 0.25 and isinstance(holder, dict):
        holder["items"] = holder.pop(key)
    else:
        holder[key] = chance.choice(ODD)
    return files | {name: b"".join(json.dumps(row).encode() + (b"" if one else b"\n") for row in rows)}


def inner(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place within a value: what holds it, and its key or index."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        if not isinstance(value, list) or not isinstance(value[key], dict) or len(value[key]) < 30:
            yield value, key
        yield from inner(value[key])


def addresses(run: Run) -> list[str]:
    """Everything that shows the run by its number alone, by page and by the API."""
    routes = [route for route, each in ALL if of_a_run(route, each)]
    named = [f"/{route.replace('<int:pk>', str(run.pk)).replace('<int:run>', str(run.pk))}" for route in routes]
    return [*named, *(f"/runs/{run.pk}/?tab={tab}" for tab in TABS), f"/compare/?run={run.pk}&run={run.pk}", *LISTS]


def of_a_run(route: str, each: URLPattern) -> bool:
    starts = route.startswith(("runs/<int:", "api/v1/runs/<int:"))
    return starts and route.count("<") == 1 and not route.rstrip("/").endswith(LIVE)


def broken(files: Files, seed: int, owner: User, client: Client, folder: Path) -> list[str]:
    """What goes wrong with a bundle mutated by this seed: an import that ends otherwise than by a sentence, a 500."""
    try:
        (taken,) = brought(packed(mutated(files, seed), folder / f"{seed}.zip"), owner)
    except ExchangeError:
        return []
    wrong = [f"{seed}: {address}" for address in addresses(taken.run) if client.get(address).status_code >= 500]
    forgotten(taken.run)
    return wrong
