"""Restore a backup into an empty installation.

Everything is checked before anything is written, and the rows come in one transaction. The file may be hostile: no
name in it is ever used as a path.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management.color import no_style
from django.db import DatabaseError, connection, transaction
from django.db.models import Model

from experiments.core import code_version
from experiments.maintenance import image_files
from experiments.maintenance.backup_format import (
    FORMAT,
    HEAD,
    IMAGE,
    IMAGES,
    LINE,
    MANIFEST,
    ROWS,
    SMALL,
    VERSION,
    BackupError,
    Head,
    Manifest,
    hold_lock,
    list_tables,
)
from experiments.maintenance.image_files import KeyOf
from experiments.maintenance.row_format import UNREADABLE, columns_of, parse_line, write_rows
from experiments.models import AuditEntry, Image, Run

Progress = Callable[[str, int, int], None]
_ANEW = "Name an empty place (MAIA_STATE, MAIA_DATABASE_URL), run manage.py migrate, and restore there."


@dataclass(frozen=True)
class Restored:
    """What the file contained, and what of it was not restored."""

    manifest: Manifest
    left_out: list[str]
    """Images that do not match their key, each with the reason in a sentence. One that was damaged before the
    backup does not block the rest."""


def restore_backup(path: Path, progress: Progress, key_of: KeyOf) -> Restored:
    """Restore everything in the file. `key_of` is `workers.jobs.images.key_of_file`.

    Raises BackupError for a file that is cut off, changed, of another version or no backup, and for a database that
    is not empty: nothing is written then. Raises OSError if the file cannot be read.
    """
    _refuse_full_database()
    with hold_lock(), _open(path) as tar:
        manifest = _check(tar, progress)
        left_out = _write_images(tar, manifest, progress, key_of)
        try:
            with transaction.atomic():
                # Once more, since work may have begun meanwhile
                _refuse_full_database()
                _write_tables(tar, manifest, progress)
        except DatabaseError as error:
            raise BackupError(f"The database does not take what is in the file: {error}") from None
    return Restored(manifest, left_out)


def _refuse_full_database() -> None:
    kept = {"runs": Run, "people": User, "entries of the audit": AuditEntry}
    if there := [f"{count:,} {name}" for name, each in kept.items() if (count := each._base_manager.count())]:
        raise BackupError(f"This database holds {', '.join(there)}, which a restore would mix with others. {_ANEW}")


@contextmanager
def _open(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BackupError(f"{path} is no backup of MAIA Web, or it was cut or changed: {error}.") from None


# --- checks, before anything is written ----------------------------------------------------------------


def _check(tar: tarfile.TarFile, progress: Progress) -> Manifest:
    """Check every name, and every byte against its hash."""
    members = _list_members(tar)
    _check_head(tar, members)
    if MANIFEST not in members:
        raise BackupError(f"The file has no {MANIFEST} at its end: it was cut. Copy it again.")
    manifest = _decode(_read_small(tar, members[MANIFEST]), MANIFEST, Manifest)
    _check_tables(manifest, members)
    images = hashlib.sha256()
    hashes: dict[str, str] = {}
    for done, (name, member) in enumerate(members.items(), 1):
        progress("Checking", done, len(members))
        if name != MANIFEST:
            digest = images if IMAGES.fullmatch(name) else hashlib.sha256()
            _digest(_extract(tar, member), digest)
            hashes["images" if digest is images else name] = digest.hexdigest()
    hashes["images"] = images.hexdigest()
    if wrong := sorted(
        name for name in manifest.hashes.keys() | hashes if manifest.hashes.get(name) != hashes.get(name)
    ):
        raise BackupError(f"{wrong[0]} is not as it was written: the file was changed or damaged. Use another copy.")
    return manifest


def _list_members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    members: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        name = member.name
        if name not in {HEAD, MANIFEST} and not ROWS.fullmatch(name) and not IMAGES.fullmatch(name):
            raise BackupError(f"{name[:100]!r} belongs to no backup of MAIA Web.")
        if not member.isreg() or member.issparse():
            raise BackupError(f"{name!r} is no ordinary file.")
        if IMAGES.fullmatch(name) and member.size > IMAGE:
            raise BackupError(f"{name} has {member.size:,} bytes, at most {IMAGE:,} are possible.")
        # Two members of one name: one was checked, and the other could be read.
        if members.setdefault(name, member) is not member:
            raise BackupError(f"{name!r} is in the file twice.")
    return members


def _check_head(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> None:
    if HEAD not in members:
        raise BackupError(f"The file has no {HEAD}: it is no backup of MAIA Web.")
    head = _decode(_read_small(tar, members[HEAD]), HEAD, Head)
    if (head.format, head.version) != (FORMAT, VERSION):
        raise BackupError(
            f"The file is of format {head.format!r} {head.version}; this version reads {FORMAT!r} {VERSION}. "
            "Restore it with the version that wrote it."
        )
    here = code_version.newest_migration()
    if head.schema != here:
        raise BackupError(
            f"The backup was made with the migrations up to {head.schema}, and this version has them up to {here}. "
            f"Restore it with a version whose newest migration is {head.schema} (code {head.code}), then update it."
        )


def _check_tables(manifest: Manifest, members: dict[str, tarfile.TarInfo]) -> None:
    known = {str(each._meta.db_table) for each in list_tables()}
    there = {found[1] for name in members if (found := ROWS.fullmatch(name))}
    if wrong := sorted(known ^ there) or sorted(known ^ manifest.rows.keys()):
        raise BackupError(f"The table {wrong[0]} is in the backup or here, and not in both.")
    images = sum(1 for name in members if IMAGES.fullmatch(name))
    if images != (manifest.images or 0):
        raise BackupError(f"The file holds {images:,} images of {manifest.images or 0:,}: it was changed.")


def _decode(data: bytes, name: str, into: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=into)
    except msgspec.DecodeError as error:
        raise BackupError(f"{name} is none of a backup of MAIA Web: {error}.") from None


def _read_small(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > SMALL:
        raise BackupError(f"{member.name} has {member.size:,} bytes, at most {SMALL:,} are possible.")
    return _extract(tar, member).read()


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    if file is None:
        raise BackupError(f"{member.name!r} is no ordinary file.")
    return file


def _digest(file: IO[bytes], digest: Any) -> None:
    while data := file.read(1 << 20):
        digest.update(data)


# --- writing ---------------------------------------------------------------------------------------------


def _write_images(tar: tarfile.TarFile, manifest: Manifest, progress: Progress, key_of: KeyOf) -> list[str]:
    """Write images that match their key; return the others, with the reason. If the rows are not written
    afterwards, files without a row are harmless."""
    done, left_out = 0, []
    for member in tar.getmembers():
        if found := IMAGES.fullmatch(member.name):
            done += 1
            progress("Images", done, manifest.images or 0)
            if default_storage.exists(path := Image.path_of(found[1])):
                continue
            data = _extract(tar, member).read()
            if reason := image_files.explain_data(key_of, found[1], data):
                left_out.append(f"{member.name} is left out: {reason}")
            else:
                default_storage.save(path, ContentFile(data))
    return left_out


def _write_tables(tar: tarfile.TarFile, manifest: Manifest, progress: Progress) -> None:
    tables = list_tables()
    for done, model in enumerate(tables, 1):
        name = str(model._meta.db_table)
        if model._base_manager.exists():  # rows that migrations and workers wrote about what exists
            with connection.cursor() as cursor:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(name)}")  # noqa: S608 - a name of ours
        file = _extract(tar, tar.getmember(f"rows/{name}.jsonl.gz"))
        with gzip.GzipFile(fileobj=file) as lines:
            count = write_rows(model, _read_lines(lines, model))
        if count != manifest.rows[name]:
            raise BackupError(f"{name} has {count:,} rows in the file, of {manifest.rows[name]:,}.")
        progress("Tables", done, len(tables))
    if manifest.images is not None:
        Image.objects.update(has_thumbnails=False)  # thumbnails are not in the file: workers make them again
    _reset_sequences(tables)


def _read_lines(lines: gzip.GzipFile, model: type[Model]) -> Iterator[bytes]:
    """Yield the rows of a table, a line each. Raises BackupError if they have other columns, or one is too long."""
    name = model._meta.db_table
    try:
        columns = parse_line(lines.readline(SMALL))
    except UNREADABLE:
        columns = None
    if columns != columns_of(model):
        raise BackupError(f"The columns of {name} are others in the file than here.")
    for number in itertools.count(1):
        # One byte more than allowed tells that a line is too long, without reading all of it.
        line = lines.readline(LINE + 1)
        if not line:
            return
        if len(line) > LINE:
            raise BackupError(
                f"Row {number:,} of {name} has more than {LINE >> 20} MiB: no row of MAIA Web is so long."
            )
        yield line


def _reset_sequences(tables: list[type[Model]]) -> None:
    """Make PostgreSQL continue its keys after the rows; SQLite does so by itself."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)
