"""Looks at what a bundle holds before anything of it is saved: decodes every image, reads every event.

Raises `ExchangeError` naming the member or the line. Writes nothing but the images, encoded anew, to a waiting folder.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.core.transcript import ImportedEvent, strip_unstorable
from experiments.exchange.event_bounds import check_payload
from experiments.exchange.laboratory import Laboratory, Progress
from experiments.exchange.run_decoding import check_time, shorten_value, unlike
from experiments.exchange.run_record import dump_json
from experiments.exchange.safe_zip import IMAGE, Archive, ExchangeError
from experiments.models import Image
from workers.record.decoding import decode as decode_payload
from workers.record.decoding import encode
from workers.record.events import ExperimentEnded, Payload
from workers.record.origins import Origin

KEY = re.compile("[0-9a-f]{64}")
ORIGINS = frozenset(Origin)
FORMER = {"threshold": "exemplar_mean"}
"""Fields of payloads that earlier versions wrote -> what they are called now."""
TEXT = 100_000
EVENTS = 1 << 30
"""Bytes of the events of a run: what follows from them is kept in memory until it is saved."""
STATE = 16 << 20
"""Bytes that a program leaves to the next."""


def look_at_images(
    archive: Archive, folder: str, waiting: Path, laboratory: Laboratory, progress: Progress
) -> list[Image]:
    """Rows for all images, not saved; their files, encoded anew, wait in the folder. Raises ExchangeError."""
    rows: dict[str, Image] = {}
    files = {name for name in archive.members if name.startswith(f"{folder}images/")}
    for where, told in archive.lines(f"{folder}images.jsonl"):
        row = image_row(told, where)
        if row.key in rows:
            raise ExchangeError(f"{where} names an image that was named before: {row.key[:12]}.")
        rows[row.key] = row
    if more := sorted(files - {f"{folder}images/{key}.png" for key in rows}):
        raise ExchangeError(f"{more[0]!r} is not in images.jsonl.")
    for done, (key, row) in enumerate(rows.items()):
        progress("Looking at images", done, len(rows))
        name = f"{folder}images/{key}.png"
        data = archive.bytes(name, IMAGE)
        try:
            decoded = laboratory.decode(data)
        except ValueError as error:
            raise ExchangeError(f"{name!r} cannot be taken: {error}") from None
        if decoded.key != key:
            raise ExchangeError(f"{name!r} shows other pixels than its name says.")
        if missing := [each for each in (row.raw, row.original) if each and each not in rows]:
            raise ExchangeError(f"Image {key[:12]} was made from {missing[0][:12]}, and that is not in the bundle.")
        row.width, row.height = decoded.width, decoded.height
        (waiting / key).write_bytes(decoded.png)
    return list(rows.values())


def image_row(told: Mapping[str, Any], where: str) -> Image:
    """Raises ExchangeError naming what is wrong."""
    told = strip_unstorable(told)
    known = {name: told.get(name) for name in ("key", "origin", "prompt", "seed", "scene", "raw", "original")}
    for name in ("key", "raw", "original"):
        key = known[name]
        if not isinstance(key, str) or not (KEY.fullmatch(key) or (name != "key" and not key)):
            raise unlike(f"{where}: {name}", key, "no key of an image")
    if not isinstance(known["origin"], str) or known["origin"] not in ORIGINS:
        raise ExchangeError(
            f"{where}: origin is {shorten_value(known['origin'])}: choose from {', '.join(sorted(ORIGINS))}."
        )
    if not isinstance(known["prompt"], str) or len(known["prompt"]) > TEXT:
        raise ExchangeError(f"{where}: prompt is no text of at most {TEXT:,} characters.")
    if known["seed"] is not None and (not isinstance(known["seed"], int) or abs(known["seed"]) >= 2**63):
        raise unlike(f"{where}: seed", known["seed"], "no seed")
    scene = known["scene"]  # what a renderer notes down
    if scene is not None and not (isinstance(scene, dict) and len(dump_json(scene)) <= TEXT):
        raise ExchangeError(f"{where}: scene is no small JSON object.")
    return Image(**known)


def steps(archive: Archive, folder: str, keys: set[str]) -> Iterator[ImportedEvent]:
    """The events of a run, each looked at. Raises ExchangeError naming the line."""
    for number, (where, told) in enumerate(archive.lines(f"{folder}events.jsonl", EVENTS), 1):
        if told.get("seq") != number:
            raise ExchangeError(f"{where}: seq is {shorten_value(told.get('seq'))} where {number} is wanted.")
        yield step(told, where, keys)


def step(told: Mapping[str, Any], where: str, keys: set[str]) -> ImportedEvent:
    kind = told.get("kind")
    try:
        payload = decode_payload(str(kind), rename_former(told.get("payload")))
        check_payload(str(kind), encode(payload))
        state = b64decode(told.get("state", ""), validate=True)
    except (ValueError, TypeError, binascii.Error) as error:
        raise ExchangeError(f"{where}, {shorten_value(kind)}: {error}.") from None
    if len(state) > STATE:
        raise ExchangeError(f"{where}: the state it leaves has over {STATE >> 20} MB.")
    if unknown := [key for key in shown_in(payload) if key not in keys]:
        raise ExchangeError(f"{where} shows the image {shorten_value(unknown[0])}, and that is not in the bundle.")
    return ImportedEvent(str(kind), payload, check_time(told.get("time"), f"{where}: time"), state)


def rename_former(payload: Any) -> Any:
    """The payload of an earlier version with the names of today."""
    if not isinstance(payload, dict):
        return payload
    return {FORMER.get(name, name): value for name, value in payload.items()}


def shown_in(payload: Payload) -> list[str]:
    """Keys of the images of a result."""
    logged = payload.observations if isinstance(payload, ExperimentEnded) else []
    return [key for each in logged for key in (each.image, each.masked) if key is not None]


def check_page(archive: Archive, folder: str) -> None:
    """The page for people is not used, but has to be what the manifest says."""
    name = f"{folder}run.html"
    if name in archive.members:
        for _ in archive.chunks(name):
            pass
