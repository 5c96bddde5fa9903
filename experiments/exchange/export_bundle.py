"""Write runs as a bundle: run.json, people.json, events.jsonl, images.jsonl, images/, run.html, and a manifest of
SHA-256.

A single run is at the top of the archive; several runs have one folder each. Everything is streamed. The same run gives
the same bytes. The worker passes the functions that scale images down.
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
from experiments.exchange.validate_bundle import list_image_keys
from experiments.models import Event, Image, Run

KNOWN = ("key", "width", "height", "origin", "prompt", "seed", "scene", "raw", "original")
"""Fields of an image that a bundle stores."""
AT_ONCE = 500
# A fixed date, the earliest that zip can store: the same run gives the same bytes
EPOCH = (1980, 1, 1, 0, 0, 0)


class Pack:
    """An archive being written, or one folder of it. `top` is empty or ends in "/"."""

    def __init__(self, packed: zipfile.ZipFile, top: str = "") -> None:
        self.packed = packed
        self.top = top
        self.hashes: dict[str, str] = {}

    def add(self, name: str, chunks: Iterable[bytes], *, deflated: bool = True, listed: bool = True) -> None:
        """Write a member. A member that is not `listed` in the manifest is ignored by imports."""
        info = zipfile.ZipInfo(f"{self.top}{name}", EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
        # Regular permissions for unpacked files, in the upper half as Unix zips store them
        info.external_attr = 0o644 << 16
        digest = hashlib.sha256()
        # The size is unknown while the member is streamed, and may exceed 4 GB
        with self.packed.open(info, "w", force_zip64=True) as member:
            for chunk in chunks:
                digest.update(chunk)
                member.write(chunk)
        if listed:
            self.hashes[name] = digest.hexdigest()

    def add_manifest(self) -> None:
        """Write the manifest as last member: the SHA-256 of every other listed member."""
        self.add(MANIFEST, [dump_json({"schema": SCHEMA, "files": dict(self.hashes)})])


@contextmanager
def packing(target: IO[bytes]) -> Iterator[Pack]:
    """Yield an archive; its manifest is written when the block ends."""
    with zipfile.ZipFile(target, "w") as packed:
        pack = Pack(packed)
        yield pack
        pack.add_manifest()


@contextmanager
def packing_log(target: IO[bytes]) -> Iterator[Pack]:
    """Yield an archive without a manifest. Imports never read it."""
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
    """Add one run in its current state, with the comments and reviews that `viewer` may see.

    `folder` is empty or ends in "/". `small` and `fine` return the pictures of run.html; without `small` there is no
    run.html.
    """
    keys: set[str] = set()
    pack.add(f"{folder}run.json", [dump_json(to_json(run))])
    pack.add(f"{folder}people.json", [dump_json(opinions_json(run, viewer))])
    pack.add(f"{folder}events.jsonl", lines(_event_json(event, run, keys) for event in _events_of(run)))
    # After the events, which fill in `keys`
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
    """Yield the events up to the run's `last_seq`. A running run adds more in the meantime."""
    return run.events.filter(seq__lte=run.last_seq).order_by("seq").iterator(AT_ONCE)


def _event_json(event: Event, run: Run, keys: set[str]) -> dict[str, Any]:
    """Return a line of events.jsonl, and add the keys of its images to `keys`."""
    data = {"seq": event.seq, "kind": event.kind, "time": event.time.isoformat(), "payload": event.payload}
    if event.kind != "result":
        return data
    # Shown images are exported; the saved program state lets the run be forked after import
    keys.update(list_image_keys(event.content))
    left = run.experiments.filter(number=event.number).values_list("state", flat=True).first()
    return data | ({"state": b64encode(bytes(left)).decode()} if left else {})


def _images_of(keys: set[str]) -> list[Image]:
    """Return these images and, recursively, those they were masked or edited from."""
    found: dict[str, Image] = {}
    wanted = set(keys)
    # An edited image may come from an image that was itself edited
    while wanted:
        rows = Image.objects.in_bulk(wanted)
        found |= rows
        wanted = {key for row in rows.values() for key in (row.raw, row.original) if key} - found.keys() - wanted
    return [found[key] for key in sorted(found)]


def pixels(key: str) -> Iterator[bytes]:
    """Yield the bytes of an image file. Raises ExchangeError if the file is missing."""
    try:
        file = default_storage.open(Image.path_of(key))
    except FileNotFoundError:
        raise ExchangeError(f"Image {key[:12]} is missing in the image store. Restore its file.") from None
    with file:
        while chunk := file.read(CHUNK):
            yield chunk
