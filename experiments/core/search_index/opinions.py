"""What people said of a run as passages: comments, reviews, final verdicts, what came with an import; and tags.

The newest wording alone is found, and nothing of what was taken back. Who finds it is decided in `search.permissions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from experiments.core.search_index.texts import in_pieces, write
from experiments.models import Adjudication, Comment, Experiment, ImportedOpinions, Observation, Review, Run, SearchText
from experiments.models.review import ReviewState
from experiments.models.search_text import TextKind

Opinion = Comment | Review | Adjudication
Tagged = Run | Experiment | Observation


def keep(opinion: Opinion) -> None:
    """Have an opinion found as it is now."""
    replace(find_texts(opinion), make_texts(opinion))


def forget(opinion: Opinion) -> None:
    find_texts(opinion).delete()


def keep_brought(brought: ImportedOpinions) -> None:
    """Have what came with an imported run found."""
    # What stands in the file, without anchors: there are no rows for it
    texts = [(TextKind.COMMENT, None, each["text"]) for thread in brought.threads for each in thread["comments"]]
    for each in brought.reviews:
        texts += [(TextKind.REVIEW, None, each["corrected_label"]), (TextKind.REVIEW, None, each["note"])]
    for each in brought.finals:
        texts += [(TextKind.FINAL, None, each["corrected_label"]), (TextKind.FINAL, None, each["reason"])]
    replace(SearchText.objects.filter(run=brought.run_id, kind__in=BROUGHT, anchor=None), in_pieces(brought.run, texts))


def keep_tags(row: Tagged) -> None:
    """Have the tags found that a run, all experiments of a run, or an image has."""
    tags = SearchText.objects.filter(kind=TextKind.TAG, run=(row.pk if isinstance(row, Run) else row.run_id))
    if isinstance(row, Run):
        replace(tags.filter(seq=0), of_run_tags(row))
    elif isinstance(row, Experiment):
        replace(tags.filter(seq__gt=0, anchor=None), of_experiment_tags(row.run))
    else:
        replace(tags.filter(anchor=row.pk), of_image_tags(row))


def keep_tags_within(run: Run) -> None:
    """The same of all experiments and images of a run, in a few queries; for tags put to many of them at once."""
    tags = SearchText.objects.filter(kind=TextKind.TAG, run=run.pk, seq__gt=0)
    replace(tags, [*of_experiment_tags(run), *of_tags_of_images(run)])


@transaction.atomic
def replace(old: QuerySet[SearchText], new: Iterable[SearchText]) -> None:
    old.delete()
    write(new)


def find_texts(opinion: Opinion) -> QuerySet[SearchText]:
    return SearchText.objects.filter(kind=kind_of(opinion), anchor=opinion.pk)


def kind_of(opinion: Opinion) -> TextKind:
    if isinstance(opinion, Comment):
        return TextKind.COMMENT
    return TextKind.REVIEW if isinstance(opinion, Review) else TextKind.FINAL


def make_texts(opinion: Opinion) -> list[SearchText]:
    if isinstance(opinion, Comment):
        # None of one that was deleted: its text is empty
        thread = opinion.thread
        texts = [(TextKind.COMMENT, opinion.pk, opinion.text)]
        return in_pieces(thread.run, texts, seq=thread.seq or 0, time=opinion.edited or opinion.created)
    return make_review_texts(opinion) if isinstance(opinion, Review) else make_final_texts(opinion)


# --- rows, not saved; a migration hands rows of its own -------------------------------------------------


def make_review_texts(review: Any) -> list[SearchText]:
    """None of a draft, which is its writer's alone, and none of why an item was declined."""
    if review.state != ReviewState.SUBMITTED:
        return []
    texts = [(TextKind.REVIEW, review.pk, text) for text in (review.corrected_label, review.note)]
    return in_pieces(review.item.run, texts, time=review.submitted or review.saved)


def make_final_texts(final: Any) -> list[SearchText]:
    texts = [(TextKind.FINAL, final.pk, text) for text in (final.corrected_label, final.reason)]
    return in_pieces(final.item.run, texts, time=final.created)


BROUGHT = (TextKind.COMMENT, TextKind.REVIEW, TextKind.FINAL)


def of_run_tags(run: Any) -> list[SearchText]:
    return in_pieces(run, [(TextKind.TAG, None, tag.name) for tag in run.tags.all()])


def of_experiment_tags(run: Any) -> list[SearchText]:
    """Of all experiments of the run."""
    rows = run.experiments.filter(tags__isnull=False).distinct().defer("state").prefetch_related("tags")
    return [
        passage
        for row in rows
        for tag in row.tags.all()
        for passage in in_pieces(run, [(TextKind.TAG, None, tag.name)], seq=row.seq)
    ]


def of_image_tags(row: Any) -> list[SearchText]:
    return in_pieces(row.run, [(TextKind.TAG, row.pk, tag.name) for tag in row.tags.all()], seq=row.experiment.seq)


def of_tags_of_images(run: Any) -> list[SearchText]:
    """Of all images of the run."""
    rows = run.observations.filter(tags__isnull=False).distinct().order_by("pk").prefetch_related("tags")
    seqs = dict(run.experiments.values_list("pk", "seq"))
    return [
        passage
        for row in rows
        for tag in row.tags.all()
        for passage in in_pieces(run, [(TextKind.TAG, row.pk, tag.name)], seq=seqs[row.experiment_id])
    ]
