"""Remove data that is no longer needed: unreferenced images, files without an image, old drafts and webhook
deliveries.

An image is removed in two steps, a day apart, since a worker may be about to refer to one that it knows. First it
is marked; a worker that uses it again removes the mark (`Image.claim`). If a day later it is still marked and
unreferenced, row and file are removed in one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.apps import apps
from django.core.files.storage import default_storage, storages
from django.db import models, transaction
from django.db.models.functions import Cast
from django.utils import timezone

from experiments.core.storage import WholeFileStorage
from experiments.core.thumbnails import SIZES, is_key
from experiments.maintenance.backup_format import hold_lock, split
from experiments.maintenance.image_files import Progress
from experiments.models import DeliveryStatus, HumanReply, Image, Review, WebhookDelivery
from experiments.models.review import ReviewState

GRACE = timedelta(days=1)
"""Time between the two steps: longer than any round takes."""
_AT_ONCE = 500
_KEYS = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_TEXTS = (models.CharField, models.TextField, models.JSONField)


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be in a dry run. Bytes are of images without thumbnails."""

    marked: int = 0
    """Images that will be removed a day from now, if nothing refers to them until then."""
    removed: int = 0
    size: int = 0
    files: int = 0
    """Files in the folder without a known image."""
    drafts: int = 0
    deliveries: int = 0
    """Deliveries of webhooks, done or given up."""


def prune(days: float, progress: Progress, *, dry: bool) -> Pruned:
    """Remove what is older than so many days; with `dry`, only count it. Raises BackupError while a backup is in
    progress."""
    now = timezone.now()
    before = now - timedelta(days=days)
    with hold_lock():
        # 1. Images that nothing refers to, with and without a mark.
        unused = _list_unused(before, progress)
        marks = set(Image.objects.exclude(unused_since=None).values_list("key", flat=True))
        past = set(Image.objects.filter(unused_since__lt=now - GRACE).values_list("key", flat=True))
        due = [key for key in unused if key in past]
        fresh = [key for key in unused if key not in marks]
        # 2. Mark, unmark, remove. Sizes first: afterwards the files are gone.
        size = sum(_size_of(key) for key in due)
        if not dry:
            _mark(fresh, now)
            _unmark(marks - set(unused))
            due = _remove(due, now, progress)
        # 3. Everything else.
        files = _prune_files(before, dry=dry)
        drafts = _prune_drafts(before, dry=dry)
        deliveries = _prune_deliveries(before, dry=dry)
    return Pruned(len(fresh), len(due), size, files, drafts, deliveries)


def _list_unused(before: datetime, progress: Progress) -> list[str]:
    """Return the keys of images stored before that moment to which nothing refers, directly or through an image in
    use."""
    old = set(Image.objects.filter(created__lt=before).values_list("key", flat=True))
    used: set[str] = set()
    sources = list(_list_sources())
    for done, source in enumerate(sources, 1):
        progress(f"Reading {source[0]._meta.verbose_name_plural}", done, len(sources))
        used.update(_find_keys(*source))
    links: dict[str, tuple[str, ...]] = {}
    for key, *others in Image.objects.exclude(raw="", original="").values_list("key", "raw", "original"):
        links[key] = tuple(filter(None, others))
    # What younger images were made from stays with them
    young = set(Image.objects.filter(created__gte=before).values_list("key", flat=True))
    # Follow the links: what an image in use was made from is in use as well.
    waiting = list((used | young) & links.keys())
    while waiting:
        for key in links.get(waiting.pop(), ()):
            if key not in used:
                used.add(key)
                waiting.append(key)
    return sorted(old - used)


def _list_sources() -> Iterator[tuple[type[models.Model], list[str]]]:
    """Yield every model except images, with its columns that may hold a key: alone, or anywhere in a text or in
    JSON."""
    for model in apps.get_models(include_auto_created=True):
        if model is Image:
            continue
        columns = [each.attname for each in model._meta.concrete_fields if _may_hold_key(each)]
        if columns:
            yield model, columns


def _may_hold_key(column: models.Field[object, object]) -> bool:
    if isinstance(column, models.ForeignKey):
        return column.related_model is Image
    # Shorter columns cannot hold a key
    return isinstance(column, _TEXTS) and not 0 < (getattr(column, "max_length", None) or 0) < 64


def _find_keys(model: type[models.Model], columns: Iterable[str]) -> Iterator[str]:
    """Yield all texts that look like keys of images in these columns of a model's rows."""
    texts = {f"text_{place}": Cast(name, models.TextField()) for place, name in enumerate(columns)}
    rows = model._default_manager.order_by().annotate(**texts).values_list(*texts)
    for row in rows.iterator(chunk_size=_AT_ONCE):
        for text in row:
            if text:
                yield from _KEYS.findall(text)


def _size_of(key: str) -> int:
    try:
        return default_storage.size(Image.path_of(key))
    except FileNotFoundError:
        return 0


def _mark(keys: list[str], now: datetime) -> None:
    for some in split(keys, _AT_ONCE):
        Image.objects.filter(key__in=some, unused_since=None).update(unused_since=now)


def _unmark(keys: Iterable[str]) -> None:
    for some in split(sorted(keys), _AT_ONCE):
        Image.objects.filter(key__in=some).update(unused_since=None)


def _remove(keys: list[str], now: datetime, progress: Progress) -> list[str]:
    """Remove each image in its own transaction: a process that stores it again meanwhile waits for the end, or
    comes first."""
    gone = []
    for done, key in enumerate(keys, 1):
        progress("Removing images", done, len(keys))
        with transaction.atomic():
            if not Image.objects.filter(key=key, unused_since__lt=now - GRACE).delete()[0]:
                continue
            for path in (Image.path_of(key), *(Image.thumbnail_of(key, size) for size in SIZES)):
                default_storage.delete(path)
        gone.append(key)
    return gone


def _prune_files(before: datetime, *, dry: bool) -> int:
    """Remove files without a known image from the folder; a bucket does not say when a file was last stored."""
    kept = storages["default"]
    if not isinstance(kept, WholeFileStorage):
        return 0
    root, count = Path(kept.location), 0
    # Never younger than the grace period: a file is stored before its row.
    old = min(before, timezone.now() - GRACE).timestamp()
    paths = [path for path in root.glob("??/*.png") if is_key(_key_of(path)) and path.stat().st_mtime < old]
    for some in split(paths, _AT_ONCE):
        known = set(Image.objects.filter(key__in=[_key_of(each) for each in some]).values_list("key", flat=True))
        for path in some:
            if _key_of(path) not in known:
                count += 1
                if not dry:
                    _remove_if_old(path, old)
    return count


def _remove_if_old(path: Path, old: float) -> None:
    """Remove the file unless it is new: storing it again replaces it."""
    with suppress(FileNotFoundError):
        if path.stat().st_mtime < old:
            path.unlink()


def _key_of(path: Path) -> str:
    return path.parent.name + path.stem


def _prune_drafts(before: datetime, *, dry: bool) -> int:
    """Remove replies that were not sent and reviews that were not submitted, unchanged since."""
    drafts: list[models.QuerySet[HumanReply] | models.QuerySet[Review]] = [
        HumanReply.objects.filter(sent=None, saved__lt=before),
        Review.objects.filter(state=ReviewState.DRAFT, reserved_until__lt=before),
    ]
    count = sum(each.count() for each in drafts)
    if not dry:
        for each in drafts:
            each.delete()
    return count


def _prune_deliveries(before: datetime, *, dry: bool) -> int:
    """Remove deliveries that were sent before, or could not be sent."""
    ended = WebhookDelivery.objects.filter(created__lt=before).exclude(status=DeliveryStatus.WAITING)
    return ended.count() if dry else ended.delete()[0]
