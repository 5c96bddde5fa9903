"""Write a backup of database and images, as of one moment, while the installation runs.

Rows are read in one transaction, which ignores later writes and blocks none. Images never change, so those that
these rows name are copied afterwards; nothing is pruned until then.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from experiments.core import code_version
from experiments.maintenance.backup_format import (
    FORMAT,
    HEAD,
    MANIFEST,
    VERSION,
    BackupError,
    Head,
    Manifest,
    hold_lock,
    list_tables,
    split,
)
from experiments.maintenance.row_format import columns_of, read_rows
from experiments.models import Image

Progress = Callable[[str, int, int], None]

AT_ONCE, THREADS = 64, 8
"""Images that are read together, and by how many threads: a bucket answers slowly, but to many at once."""


def write_backup(path: Path, progress: Progress, *, images: bool = True) -> Manifest:
    """Write the file, complete or not at all, readable only by its owner. Return what is in it.

    Raises BackupError if the file exists, or another backup is in progress; OSError.
    """
    if path.exists():
        raise BackupError(f"{path} is there already: name another file, or move it.")
    part = path.with_name(f".{path.name}.part")
    with hold_lock(), _open_private(part) as file:
        try:
            made = _fill(file, progress, images=images)
            file.flush()
            # On disk before it gets its name: no crash leaves a cut file that looks complete
            os.fsync(file.fileno())
            part.rename(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return made


@contextmanager
def _open_private(part: Path) -> Iterator[IO[bytes]]:
    """Open the file for its owner only: it contains password hashes and token hashes."""
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file


def _fill(file: IO[bytes], progress: Progress, *, images: bool) -> Manifest:
    hashes: dict[str, str] = {}
    counts: dict[str, int] = {}
    tables = list_tables()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        with _freeze_rows():
            head = Head(
                FORMAT, VERSION, code_version.newest_migration(), timezone.now().isoformat(), code_version.fingerprint()
            )
            hashes[HEAD] = _add(tar, HEAD, json.dumps(asdict(head)).encode())
            # Of the same moment as the rows
            keys = list(Image.objects.order_by("key").values_list("key", flat=True)) if images else []
            for done, model in enumerate(tables, 1):
                name = str(model._meta.db_table)
                counts[name], hashes[f"rows/{name}.jsonl.gz"] = _add_table(tar, model)
                progress("Tables", done, len(tables))
        digest, lost = _add_images(tar, keys, progress)
        hashes["images"] = digest
        made = Manifest(counts, hashes, len(keys) - lost if images else None, lost)
        _add(tar, MANIFEST, json.dumps(asdict(made)).encode())
    return made


@contextmanager
def _freeze_rows() -> Iterator[None]:
    """Freeze the rows that this connection reads within the block; others may still write."""
    if connection.vendor == "postgresql":
        with transaction.atomic():
            with connection.cursor() as cursor:
                # By default, each query of PostgreSQL sees what others have committed before it.
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
        return
    usual: Any = connection
    before = usual.transaction_mode
    usual.transaction_mode = "DEFERRED"  # a transaction that only reads blocks no writers
    try:
        with transaction.atomic():
            yield
    finally:
        usual.transaction_mode = before


def _add_table(tar: tarfile.TarFile, model: type[Model]) -> tuple[int, str]:
    """Add the rows of a table. Return their number, and the hash of the member."""
    count = 0
    with tempfile.TemporaryFile() as spool:
        # Without a time, so that the same rows give the same bytes
        with gzip.GzipFile(fileobj=spool, mode="wb", compresslevel=5, mtime=0) as lines:
            lines.write(json.dumps(columns_of(model)).encode() + b"\n")
            for row in read_rows(model):
                lines.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                count += 1
        size = spool.tell()
        spool.seek(0)
        digest = hashlib.file_digest(spool, "sha256").hexdigest()
        spool.seek(0)
        tar.addfile(_describe_member(f"rows/{model._meta.db_table}.jsonl.gz", size), spool)
    return count, digest


def _add_images(tar: tarfile.TarFile, keys: list[str], progress: Progress) -> tuple[str, int]:
    """Add the files of these images. Return the hash of all of them, and how many are missing."""
    digest, lost, done = hashlib.sha256(), 0, 0
    with ThreadPoolExecutor(THREADS, thread_name_prefix="backup") as pool:
        for some in split(keys, AT_ONCE):
            for key, data in zip(some, pool.map(_read_file, some), strict=True):
                done += 1
                progress("Images", done, len(keys))
                if data is None:
                    lost += 1
                else:
                    _add(tar, f"images/{key}.png", data)
                    digest.update(data)
    return digest.hexdigest(), lost


def _read_file(key: str) -> bytes | None:
    try:
        with default_storage.open(Image.path_of(key)) as file:
            data: bytes = file.read()
            return data
    except FileNotFoundError:
        return None


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> str:
    tar.addfile(_describe_member(name, len(data)), io.BytesIO(data))
    return hashlib.sha256(data).hexdigest()


def _describe_member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member
