"""Check a whole bundle before anything is saved: decode every image, read every event.

Errors are `ExchangeError`s that name the member or line. The only output is a temporary folder of re-encoded images.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.core.transcript import ImportedEvent, strip_unstorable
from experiments.exchange import run_decoding
from experiments.exchange.decoding import HIGHEST, shorten_value
from experiments.exchange.image_services import ImageServices, Progress
from experiments.exchange.run_decoding import build_type_error, check_time
from experiments.exchange.run_record import dump_json
from experiments.exchange.safe_zip import IMAGE, Archive, ExchangeError, check_pixels
from experiments.models import Image
from workers.record.decoding import decode as decode_payload
from workers.record.decoding import encode
from workers.record.events import ExperimentEnded, Graded, Payload
from workers.record.experiments import Observation
from workers.record.origins import Origin

KEY = re.compile("[0-9a-f]{64}")
ORIGINS = frozenset(Origin)
FORMER = {"threshold": "exemplar_mean"}
"""Fields of payloads in earlier versions -> their current names."""
TEXT = 100_000
"""Maximum characters of a prompt, and bytes of a scene."""
EVENTS = 1 << 30
"""Maximum bytes of a run's events. The rows made from them are in memory until they are saved."""
STATE = 16 << 20
"""Maximum bytes of the state that a program leaves to the next one."""
EVENT_TEXT, FIELD_NAME = 2_000_000, 200
"""Maximum characters of a text and of a field's name."""
LIST, FIELDS, DEEP = 20_000, 200, 12
MAX_VALUE = 1e30
"""Maximum absolute value of activations, costs and times."""
MAX_LABELS, LABEL_CHARS, MAX_HYPOTHESES = 100, 10_000, 1_000
COUNTS = ("round", "number", "attempt", "heard", "run")
COLUMNS = {"backbone": 40, "backbone_model": 200}
"""Maximum characters of fields that become columns of the run's row."""
NOT_NEGATIVE = ("seconds", "tool_seconds")

Json = Mapping[str, Any]


def look_at_images(
    archive: Archive, folder: str, waiting: Path, laboratory: ImageServices, progress: Progress
) -> list[Image]:
    """Return unsaved rows for all images, and write the re-encoded files to `waiting`. Raises ExchangeError."""
    rows: dict[str, Image] = {}
    files = {name for name in archive.members if name.startswith(f"{folder}images/")}
    for where, line in archive.lines(f"{folder}images.jsonl"):
        row = _image_row(line, where)
        if row.key in rows:
            raise ExchangeError(f"{where} names an image that was named before: {row.key[:12]}.")
        rows[row.key] = row
    if more := sorted(files - {f"{folder}images/{key}.png" for key in rows}):
        raise ExchangeError(f"{more[0]!r} is not in images.jsonl.")
    pixels = 0
    for done, (key, row) in enumerate(rows.items()):
        progress("Looking at images", done, len(rows))
        name = f"{folder}images/{key}.png"
        data = archive.bytes(name, IMAGE)
        try:
            decoded = laboratory.decode(data)
        except ValueError as error:
            raise ExchangeError(f"{name!r} cannot be taken: {error}") from None
        check_pixels(pixels := pixels + decoded.width * decoded.height)
        # The key is the hash of the pixels, so a changed image has another key
        if decoded.key != key:
            raise ExchangeError(f"{name!r} shows other pixels than its name says.")
        # Pages link these images to each other
        if missing := [each for each in (row.raw, row.original) if each and each not in rows]:
            raise ExchangeError(f"Image {key[:12]} was made from {missing[0][:12]}, and that is not in the bundle.")
        row.width, row.height = decoded.width, decoded.height
        (waiting / key).write_bytes(decoded.png)
    return list(rows.values())


def _image_row(line: Mapping[str, Any], where: str) -> Image:
    """Check a line of images.jsonl. Raises ExchangeError naming the problem."""
    line = strip_unstorable(line)
    known = {name: line.get(name) for name in ("key", "origin", "prompt", "seed", "scene", "raw", "original")}
    for name in ("key", "raw", "original"):
        key = known[name]
        if not isinstance(key, str) or not (KEY.fullmatch(key) or (name != "key" and not key)):
            raise build_type_error(f"{where}: {name}", key, "no key of an image")
    if not isinstance(known["origin"], str) or known["origin"] not in ORIGINS:
        raise ExchangeError(
            f"{where}: origin is {shorten_value(known['origin'])}: choose from {', '.join(sorted(ORIGINS))}."
        )
    if not isinstance(known["prompt"], str) or len(known["prompt"]) > TEXT:
        raise ExchangeError(f"{where}: prompt is no text of at most {TEXT:,} characters.")
    if known["seed"] is not None and (not isinstance(known["seed"], int) or abs(known["seed"]) >= 2**63):
        raise build_type_error(f"{where}: seed", known["seed"], "no seed")
    scene = known["scene"]  # As recorded by a renderer
    if scene is not None and not (isinstance(scene, dict) and len(dump_json(scene)) <= TEXT):
        raise ExchangeError(f"{where}: scene is no small JSON object.")
    return Image(**known)


def steps(archive: Archive, folder: str, keys: set[str]) -> Iterator[ImportedEvent]:
    """Yield the checked events of a run. Raises ExchangeError naming the line."""
    for number, (where, line) in enumerate(archive.lines(f"{folder}events.jsonl", EVENTS), 1):
        if line.get("seq") != number:
            raise ExchangeError(f"{where}: seq is {shorten_value(line.get('seq'))} where {number} is wanted.")
        yield step(line, where, keys)


def step(line: Mapping[str, Any], where: str, keys: set[str]) -> ImportedEvent:
    kind = line.get("kind")
    try:
        payload = decode_payload(str(kind), _rename_former(line.get("payload")))
        _check_payload(str(kind), encode(payload))
        # The state is opaque here: only the sandbox ever loads it
        state = b64decode(line.get("state", ""), validate=True)
    except (ValueError, TypeError, binascii.Error) as error:
        raise ExchangeError(f"{where}, {shorten_value(kind)}: {error}.") from None
    if len(state) > STATE:
        raise ExchangeError(f"{where}: the state it leaves has over {STATE >> 20} MB.")
    if any(each.map and each.map.low > each.map.high for each in _logged_in(payload)):
        raise ExchangeError(f"{where}: an activation map has its low above its high.")
    if unknown := [key for key in list_image_keys(payload) if key not in keys]:
        raise ExchangeError(f"{where} shows the image {shorten_value(unknown[0])}, and that is not in the bundle.")
    return ImportedEvent(str(kind), payload, check_time(line.get("time"), f"{where}: time"), state)


def _rename_former(payload: Any) -> Any:
    """Return the payload of an earlier version with current field names."""
    if not isinstance(payload, dict):
        return payload
    return {FORMER.get(name, name): value for name, value in payload.items()}


def list_image_keys(payload: Payload) -> list[str]:
    """Return the keys of the images in a result or in the check of a label."""
    keys = ((each.image, each.masked, each.map.image if each.map else None) for each in _logged_in(payload))
    return [key for some in keys for key in some if key is not None]


def _logged_in(payload: Payload) -> Sequence[Observation]:
    match payload:
        case ExperimentEnded():
            return [*payload.observations, *payload.ordinary_images]
        case Graded():
            return payload.images
    return ()


def check_page(archive: Archive, folder: str) -> None:
    """Check the hash of run.html, which is not used otherwise."""
    name = f"{folder}run.html"
    if name in archive.members:
        # At its end, `chunks` compares the hash
        for _ in archive.chunks(name):
            pass


# --- limits of events, so that pages, lists and the database stay fast ---


def _check_payload(kind: str, payload: Json) -> None:
    """Check the payload of an event. Raises ValueError, and ExchangeError for invalid limits and options."""
    _check_value(payload, "payload")
    for name in COUNTS:
        if not 0 <= (payload.get(name) or 0) <= HIGHEST:
            raise ValueError(f"{name} is {payload[name]}, and that is out of range")
    used = [(name, payload.get(name)) for name in NOT_NEGATIVE] + list((payload.get("usage") or {}).items())
    if negative := [(name, value) for name, value in used if (value or 0) < 0]:
        raise ValueError(f"{negative[0][0]} is {shorten_value(negative[0][1])}, and that is below 0")
    # Each hypothesis and label becomes a row
    labels = (payload.get("conclusion") or {}).get("labels", ())
    if len(labels) > MAX_LABELS or any(len(text) > LABEL_CHARS for text in labels):
        raise ValueError(f"labels are over {MAX_LABELS}, or one has over {LABEL_CHARS:,} characters")
    if len(payload.get("hypotheses", ())) > MAX_HYPOTHESES:
        raise ValueError(f"hypotheses are over {MAX_HYPOTHESES:,}")
    for name in ("limits", "before"):
        if payload.get(name) is not None and kind in {"started", "limits"}:
            run_decoding.limits(payload[name], f"{kind}: {name}")
    if kind == "started":
        run_decoding.options(payload["system"]["options"])
    if kind == "handover":
        _check_columns(payload)


def _check_value(value: Any, name: str, depth: int = 0) -> None:
    """Check a value of any field: no huge text, list or number, at any depth."""
    if depth > DEEP:
        raise ValueError(f"{name} is nested too deeply")
    if isinstance(value, str) and len(value) > EVENT_TEXT:
        raise ValueError(f"{name} has {len(value):,} characters, at most {EVENT_TEXT:,} are possible")
    if run_decoding.is_number(value) and abs(value) > MAX_VALUE:
        raise ValueError(f"{name} is {shorten_value(value)}, and that is too large")
    if isinstance(value, (list, tuple)):
        if len(value) > LIST:
            raise ValueError(f"{name} has {len(value):,} entries, at most {LIST:,} are possible")
        for each in value:
            _check_value(each, name, depth + 1)
    if isinstance(value, Mapping):
        if len(value) > FIELDS or any(len(key) > FIELD_NAME for key in value):
            raise ValueError(f"{name} has over {FIELDS} fields, or one with a name over {FIELD_NAME} characters")
        for key, each in value.items():
            _check_value(each, key, depth + 1)


def _check_columns(payload: Json) -> None:
    for name in COLUMNS:
        if len(payload[name]) > (most := COLUMNS[name]):
            raise ValueError(f"{name} has {len(payload[name]):,} characters, at most {most} are possible")
