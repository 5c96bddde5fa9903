"""Actions on studies: create, add items, edit as a whole, remove items, delete."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.http import Http404
from django.utils import timezone

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.params import bounded_text, require_line
from experiments.models import Role, Study, StudyItem
from experiments.studies.drafts import ItemDraft, build_items, check_caption, check_size, find_fresh, key_of
from experiments.units.chosen import Target

CHANGES = Role.RESEARCHER
MAX_TITLE = 120
MAX_TEXT = 20_000
TARGET = Target("study", "Studies", "title", MAX_TITLE, "Study")


@dataclass(frozen=True)
class ItemEdit:
    """An item of a study by its key, with its new caption."""

    item: int
    caption: str


@transaction.atomic
def create_study(actor: Actor, title: str, drafts: Sequence[ItemDraft], text: str = "") -> Study:
    """Create a study of the actor's own. Raises InvalidInput."""
    actor.require(CHANGES)
    fresh = find_fresh(drafts, ())
    check_size(len(fresh))
    row = Study.objects.create(owner=actor.person, title=_check_title(title), text=_check_text(text))
    _insert(row, build_items(fresh))
    audit.record(actor, Verb.STUDY_CREATED, row, items=len(fresh))
    return row


@transaction.atomic
def add_items(actor: Actor, pk: int, drafts: Sequence[ItemDraft]) -> int:
    """Add those that are not in the study yet, and return their number. Raises InvalidInput, PermissionDenied."""
    row = lock_study(actor, pk)
    there = list(row.items.all())
    fresh = find_fresh(drafts, {key_of(each) for each in there})
    if not fresh:
        return 0
    check_size(len(there) + len(fresh))
    # After the highest position, not after the count: removals may leave gaps.
    _insert(row, build_items(fresh, after=max((each.position for each in there), default=0)))
    _note_change(row)
    audit.record(actor, Verb.STUDY_EXTENDED, row, items=len(fresh))
    return len(fresh)


@transaction.atomic
def edit_study(actor: Actor, pk: int, title: str, text: str, edits: Sequence[ItemEdit]) -> Study:
    """Set a study's title and text, and its items' captions and order to those of `edits`. Items that are not in
    `edits` are removed. Raises InvalidInput."""
    row = lock_study(actor, pk)
    # 1. The remaining items, in the new order; unknown keys are ignored, since another editor may have removed them.
    items = {each.pk: each for each in row.items.all()}
    kept = [(items[each.item], each.caption) for each in edits if each.item in items]
    # 2. New places and captions. An invalid caption stops here, before anything is written.
    for position, (item, caption) in enumerate(kept, 1):
        item.position, item.caption = position, check_caption(caption)
    row.title, row.text = _check_title(title), _check_text(text)
    # 3. Remove the others and store the rest.
    row.items.exclude(pk__in=[item.pk for item, _ in kept]).delete()
    StudyItem.objects.bulk_update([item for item, _ in kept], ["position", "caption"])
    _note_change(row)
    audit.record(actor, Verb.STUDY_CHANGED, row, items=len(kept))
    return row


@transaction.atomic
def change_study(
    actor: Actor, pk: int, title: str | None, text: str | None, drafts: Sequence[ItemDraft] | None
) -> Study:
    """Change what is not None; `drafts` replace all items. Raises InvalidInput."""
    row = lock_study(actor, pk)
    row.title = row.title if title is None else _check_title(title)
    row.text = row.text if text is None else _check_text(text)
    if drafts is not None:
        fresh = find_fresh(drafts, ())
        check_size(len(fresh))
        row.items.all().delete()
        _insert(row, build_items(fresh))
    _note_change(row)
    audit.record(actor, Verb.STUDY_CHANGED, row, items=row.items.count())
    return row


@transaction.atomic
def remove_items(actor: Actor, pk: int, chosen: Collection[int]) -> int:
    """Remove the items with these keys, and return how many existed."""
    row = lock_study(actor, pk)
    count, _ = row.items.filter(pk__in=chosen).delete()
    if count:
        # Places are counted anew: readers refer to parts by number.
        left = list(row.items.all())
        for position, item in enumerate(left, 1):
            item.position = position
        StudyItem.objects.bulk_update(left, ["position"])
        _note_change(row)
        audit.record(actor, Verb.STUDY_REDUCED, row, items=count)
    return count


@transaction.atomic
def delete_study(actor: Actor, pk: int) -> None:
    """Delete a study. Its units and runs stay; links to it become invalid. Raises PermissionDenied for another
    person's."""
    row = lock_study(actor, pk)
    # Before the deletion, which empties the key that the record needs.
    audit.record(actor, Verb.STUDY_DELETED, row, items=row.items.count())
    row.delete()


def lock_study(actor: Actor, pk: int) -> Study:
    """Lock a study that the actor may change in this transaction. Raises Http404, PermissionDenied."""
    actor.require(CHANGES)
    row = Study.objects.select_for_update().filter(pk=pk).first()
    if row is None:
        raise Http404(f"There is no study {pk}.")
    actor.require_own("created this study", row.owner_id)
    return row


def _insert(row: Study, items: Sequence[StudyItem]) -> None:
    for each in items:
        each.study = row
    StudyItem.objects.bulk_create(items)


def _note_change(row: Study) -> None:
    row.updated = timezone.now()
    # Callers may have set title and text; unchanged ones are written again.
    row.save(update_fields=["title", "text", "updated"])


def _check_title(title: str) -> str:
    return require_line(title, "title", "study", MAX_TITLE)


def _check_text(text: str) -> str:
    return bounded_text(text, "text", "study", MAX_TEXT)
