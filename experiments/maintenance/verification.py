"""Verify an installation's data: transcripts, the rows that follow from them, images. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.maintenance import image_files, replaying
from experiments.maintenance.findings import Finding, FindingKind
from experiments.maintenance.image_files import KeyOf, Progress
from experiments.models import Image, Run


def _ignore(what: str, done: int, total: int) -> None:
    """Ignore the progress report."""


def find_problems(key_of: KeyOf | None, *, sample: int | None = None, progress: Progress = _ignore) -> list[Finding]:
    """Return all problems; an empty list if there are none. Works while others write.

    `key_of` is `workers.jobs.images.key_of_file`; without it images are not checked. `sample` images are chosen at
    random; None checks all.
    """
    found = list(_check_runs(progress))
    if key_of is not None:
        found += image_files.check_images(key_of, progress, sample)
    return found


def _check_runs(progress: Progress) -> Iterator[Finding]:
    keys = list(Run.objects.order_by("pk").values_list("pk", flat=True))
    for done, key in enumerate(keys, 1):
        yield from replaying.check_run(key)
        progress("Looking at runs", done, len(keys))


def request_thumbnails(found: list[Finding]) -> int:
    """Ask workers to make missing thumbnails again. Return the number of images."""
    keys = {each.image for each in found if each.kind == FindingKind.THUMBNAIL}
    for key in keys:
        Image.objects.filter(key=key).update(has_thumbnails=False)
    return len(keys)
