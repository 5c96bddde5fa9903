"""Convert comments, reviews and tags of a run to JSON and back.

A file holds only what its creator may see on pages: comments of a blind run are hidden until their own review is
submitted, and so are others' reviews. People are stored as names, and stay names after an import. An imported run is
exported with both its imported comments and reviews and the later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.comments import lists as comment_lists
from experiments.core import blindness
from experiments.core.display_name import person
from experiments.core.search_index import opinions
from experiments.exchange.decoding import Count
from experiments.models import (
    Adjudication,
    Comment,
    Experiment,
    ImportedOpinions,
    Observation,
    Review,
    Run,
    Tag,
    Thread,
)
from experiments.reviews import rubric

AT_ONCE = 500
SCORES = tuple(line.name for line in rubric.LINES)


@dataclass(frozen=True)
class Tagged:
    """Tags of an experiment, or of its image at a position."""

    experiment: Count
    position: Count | None
    tags: list[str]


@dataclass(frozen=True)
class Said:
    """Comments, reviews and tags of a run, as in people.json."""

    threads: Sequence[Mapping[str, Any]] = ()
    reviews: Sequence[Mapping[str, Any]] = ()
    finals: Sequence[Mapping[str, Any]] = ()
    tags: Sequence[Tagged] = field(default=())


def opinions_json(run: Run, viewer: User | None) -> dict[str, Any]:
    """Return what this person may see. Without a person, hide all that a review in progress hides."""
    hidden = comment_lists.is_hidden_from(viewer, run) if viewer else blindness.is_under_review(run.pk)
    # Imported comments and reviews are hidden by the same rule as local ones
    brought = None if hidden else ImportedOpinions.objects.filter(run=run).first()
    threads = [] if hidden else [_thread_json(thread) for thread in comment_lists.threads(run)]
    finals = Adjudication.objects.filter(item__run=run).select_related("adjudicator", "item__queue").order_by("pk")
    if Run.objects.filter(blindness.has_hidden_verdict(viewer), pk=run.pk).exists():
        finals = finals.none()
    return {
        "threads": [*(brought.threads if brought else []), *threads],
        "reviews": [*(brought.reviews if brought else []), *map(_review_json, reviews_of(run, viewer))],
        "finals": [*(brought.finals if brought else []), *map(_final_json, finals)],
        "tags": [asdict(each) for each in tags_of(run)],
    }


def _thread_json(thread: Thread) -> dict[str, Any]:
    return {
        **{name: getattr(thread, name) for name in ("on", "seq", "quote", "before", "after", "place")},
        "experiment": thread.experiment.number if thread.experiment else None,
        "position": thread.observation.position if thread.observation else None,
        "created": _format_time(thread.created),
        "resolved": _format_time(thread.resolved),
        "resolved_by": person(thread.resolved_by) if thread.resolved else "",
        "comments": [_comment_json(each) for each in thread.comments.all()],
    }


def _comment_json(comment: Comment) -> dict[str, Any]:
    """Return a comment as JSON. A deleted one has an empty text."""
    return {
        "author": person(comment.author),
        "text": comment.text,
        "created": _format_time(comment.created),
        "edited": _format_time(comment.edited),
        "deleted": _format_time(comment.deleted),
        "mentions": sorted(person(each) for each in comment.mentions.all()),
        "wordings": [{"text": each.text, "replaced": _format_time(each.replaced)} for each in comment.wordings.all()],
    }


def reviews_of(run: Run, viewer: User | None) -> QuerySet[Review]:
    """Return the submitted reviews of a run that this person may read, oldest first."""
    if viewer is None and blindness.is_under_review(run.pk):
        return Review.objects.none()
    rows = blindness.list_visible_reviews(viewer) if viewer else Review.objects.filter(state="submitted")
    return rows.filter(item__run=run).select_related("reviewer", "item__queue").order_by("submitted", "pk")


def _review_json(review: Review) -> dict[str, Any]:
    return {
        "queue": review.item.queue.name,
        "blind": review.item.queue.blind,
        "reviewer": person(review.reviewer),
        "additional": review.slot is None,
        "scores": {name: getattr(review, name) for name in SCORES},
        **{name: getattr(review, name) for name in ("verdict", "corrected_label", "note")},
        "submitted": _format_time(review.submitted),
    }


def _final_json(final: Adjudication) -> dict[str, Any]:
    return {
        "queue": final.item.queue.name,
        "adjudicator": person(final.adjudicator),
        **{name: getattr(final, name) for name in ("verdict", "corrected_label", "reason")},
        "created": _format_time(final.created),
    }


def tags_of(run: Run) -> list[Tagged]:
    """Return the tags of experiments and images. Those of the run are in run.json."""
    experiments = Experiment.objects.filter(run=run, tags__isnull=False).distinct().order_by("number")
    images = Observation.objects.filter(run=run, tags__isnull=False).distinct().select_related("experiment")
    found = [Tagged(each.number, None, names(each)) for each in experiments.prefetch_related("tags")]
    ordered = images.order_by("experiment__number", "position").prefetch_related("tags")
    return found + [Tagged(each.experiment.number, each.position, names(each)) for each in ordered]


def names(row: Experiment | Observation) -> list[str]:
    return sorted(tag.name for tag in row.tags.all())


def _format_time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


# --- from JSON ---


def save(run: Run, said: Said) -> None:
    """Save what was imported with a run, in the current transaction. Tags of missing experiments and images are
    dropped."""
    brought = {"threads": list(said.threads), "reviews": list(said.reviews), "finals": list(said.finals)}
    if any(brought.values()):
        ImportedOpinions.objects.create(run=run, **brought)
    if said.tags:
        # A fixed number of queries, so that other writers do not wait long
        wanted = {name for each in said.tags for name in each.tags}
        Tag.objects.bulk_create([Tag(name=name) for name in sorted(wanted)], ignore_conflicts=True)
        keys = dict(Tag.objects.filter(name__in=wanted).values_list("name", "pk"))
        experiments = dict(run.experiments.values_list("number", "pk"))
        places = run.observations.values_list("experiment__number", "position", "pk")
        images = {(number, position): pk for number, position, pk in places}
        of_experiments, of_images = Tag.experiments.through, Tag.observations.through
        rows: dict[Any, list[Any]] = {of_experiments: [], of_images: []}
        for each in said.tags:
            pk = (
                experiments.get(each.experiment)
                if each.position is None
                else images.get((each.experiment, each.position))
            )
            kind, column = (of_experiments, "experiment_id") if each.position is None else (of_images, "observation_id")
            rows[kind] += [kind(tag_id=keys[name], **{column: pk}) for name in each.tags if pk is not None]
        for kind, made in rows.items():
            kind.objects.bulk_create(made, ignore_conflicts=True, batch_size=AT_ONCE)
        opinions.keep_tags_within(run)
