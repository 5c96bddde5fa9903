"""Writes runs as a bundle: run.json, people.json, events.jsonl, images.jsonl, images/, run.html, the SHA-256 of each.

One run lies at the top of the archive; each of several in a folder of its own. Everything is streamed, and the same run
gives the same bytes. How pictures are made small is not known here: the worker says.
"""

from __future__ import annotations

import hashlib
import zipfile
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.contrib.auth.models import User
from django.core.files.storage import default_storage

from experiments.exchange import run_html
from experiments.exchange.opinions import opinions_json
from experiments.exchange.run_html import Small
from experiments.exchange.run_record import SCHEMA, dump_json, to_json
from experiments.exchange.safe_zip import CHUNK, MANIFEST, ExchangeError
from experiments.exchange.validate_bundle import shown_in
from experiments.models import Event, Image, Run

KNOWN = ("key", "width", "height", "origin", "prompt", "seed", "scene", "raw", "original")
"""What is remembered of an image."""
AT_ONCE = 500
EPOCH = (1980, 1, 1, 0, 0, 0)


class Pack:
    """An archive being written, or a folder of one: `top` ends in "/" or is empty."""

    def __init__(self, packed: zipfile.ZipFile, top: str = "") -> None:
        self.packed = packed
        self.top = top
        self.hashes: dict[str, str] = {}

    def add(self, name: str, chunks: Iterable[bytes], *, deflated: bool = True, listed: bool = True) -> None:
        """Write a member; one that is not `listed` in the manifest is not ours to read again."""
        info = zipfile.ZipInfo(f"{self.top}{name}", EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
        info.external_attr = 0o644 << 16
        digest = hashlib.sha256()
        with self.packed.open(info, "w", force_zip64=True) as member:
            for chunk in chunks:
                digest.update(chunk)
                member.write(chunk)
        if listed:
            self.hashes[name] = digest.hexdigest()

    def add_manifest(self) -> None:
        """The last member: the SHA-256 of each other."""
        self.add(MANIFEST, [dump_json({"schema": SCHEMA, "files": dict(self.hashes)})])


@contextmanager
def packing(target: IO[bytes]) -> Iterator[Pack]:
    """An archive whose manifest is written at the end of the block."""
    with zipfile.ZipFile(target, "w") as packed:
        pack = Pack(packed)
        yield pack
        pack.add_manifest()


@contextmanager
def packing_log(target: IO[bytes]) -> Iterator[Pack]:
    """An archive without a manifest, which nothing of ours reads again."""
    with zipfile.ZipFile(target, "w") as packed:
        yield Pack(packed)


def write(
    pack: Pack,
    run: Run,
    small: Small | None,
    folder: str = "",
    viewer: User | None = None,
    *,
    fine: Small | None = None,
) -> None:
    """Add one run as it is at this moment, with what this person may see that people said of it.

    `folder` ends in "/" or is empty; `small` and `fine` draw the pictures of run.html, which is left out without.
    """
    keys: set[str] = set()
    pack.add(f"{folder}run.json", [dump_json(to_json(run))])
    pack.add(f"{folder}people.json", [dump_json(opinions_json(run, viewer))])
    pack.add(f"{folder}events.jsonl", lines(_event_json(event, run, keys) for event in _events_of(run)))
    rows = _images_of(keys)
    pack.add(f"{folder}images.jsonl", lines({name: getattr(row, name) for name in KNOWN} for row in rows))
    for row in rows:
        pack.add(f"{folder}images/{row.key}.png", pixels(row.key), deflated=False)
    if small:
        page = run_html.document(run, _events_of(run), small, viewer, fine=fine)
        pack.add(f"{folder}run.html", (text.encode() for text in page))


def lines(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    return (dump_json(row) + b"\n" for row in rows)


def _events_of(run: Run) -> Iterator[Event]:
    """As many as the row knows of: a run that is under way goes on meanwhile."""
    return run.events.filter(seq__lte=run.last_seq).order_by("seq").iterator(AT_ONCE)


def _event_json(event: Event, run: Run, keys: set[str]) -> dict[str, Any]:
    """A line of events.jsonl; the keys of the images it shows are added to `keys`."""
    data = {"seq": event.seq, "kind": event.kind, "time": event.time.isoformat(), "payload": event.payload}
    if event.kind != "result":
        return data
    keys.update(shown_in(event.content))
    left = run.experiments.filter(number=event.number).values_list("state", flat=True).first()
    return data | ({"state": b64encode(bytes(left)).decode()} if left else {})


def _images_of(keys: set[str]) -> list[Image]:
    """These images, and those that they were masked or edited from."""
    found: dict[str, Image] = {}
    wanted = set(keys)
    while wanted:
        rows = Image.objects.in_bulk(wanted)
        found |= rows
        wanted = {key for row in rows.values() for key in (row.raw, row.original) if key} - found.keys() - wanted
    return [found[key] for key in sorted(found)]


def pixels(key: str) -> Iterator[bytes]:
    """The file of an image. Raises ExchangeError if the store has lost it."""
    try:
        file = default_storage.open(Image.path_of(key))
    except FileNotFoundError:
        raise ExchangeError(f"Image {key[:12]} is not in the image store any more: bring its file back.") from None
    with file:
        while chunk := file.read(CHUNK):
            yield chunk
