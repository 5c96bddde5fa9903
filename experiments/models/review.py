"""Reviews: queues of runs, their items, and each reviewer's opinion by the lines of the rubric."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

LABEL_CHARS = 500
NOTE_CHARS = 8_000


class ReviewVerdict(models.TextChoices):
    ACCEPT = "accept", "Accept"
    REVISE = "revise", "Revise"
    REJECT = "reject", "Reject"


class ReviewState(models.TextChoices):
    DRAFT = "draft", "Draft"
    SUBMITTED = "submitted", "Submitted"
    DECLINED = "declined", "Declined"


class ReviewQueue(models.Model):
    """A selection of runs to review. If `reviewers` names people, only they may review them."""

    name = models.CharField(max_length=80)
    note = models.TextField(blank=True, help_text="what reviewers are to look at")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="review_queues")
    created = models.DateTimeField(default=timezone.now)
    filters = models.TextField(blank=True, help_text="what was chosen, as in the address of the Runs page")
    reviewers_per_item = models.PositiveSmallIntegerField(default=1)
    blind = models.BooleanField(default=True, help_text="no opinion is seen before one's own is submitted")
    closed = models.DateTimeField(null=True, blank=True)
    reviewers = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="assigned_queues", blank=True)

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("review-queue", args=[self.pk])


class ReviewItem(models.Model):
    """One run of a queue. `complete` is true once as many opinions as the queue asks for are submitted."""

    queue = models.ForeignKey(ReviewQueue, models.CASCADE, related_name="items", db_index=False)
    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="review_items")
    position = models.PositiveIntegerField(help_text="counts the queue's items from 1")
    seen_seq = models.PositiveIntegerField(default=0, help_text="the run's last event when it was queued")
    complete = models.BooleanField(default=False)

    class Meta:
        ordering = ["queue", "position"]
        constraints = [
            models.UniqueConstraint(fields=["queue", "run"], name="one_item_per_run"),
            models.UniqueConstraint(fields=["queue", "position"], name="one_item_per_position"),
        ]
        indexes = [
            models.Index(fields=["queue", "position"], condition=models.Q(complete=False), name="items_to_review"),
            models.Index(fields=["queue", "complete"], name="items_complete"),
        ]

    def __str__(self) -> str:
        return f"item {self.position} of queue {self.queue_id}"

    def get_absolute_url(self) -> str:
        return reverse("review-item", args=[self.queue_id, self.position])


def score() -> models.PositiveSmallIntegerField[int | None, int | None]:
    """Return a column for one line of the rubric: 1 (not at all) to 5 (fully); empty in a draft."""
    return models.PositiveSmallIntegerField(null=True, blank=True)


class Review(models.Model):
    """One reviewer's opinion on one item. An item has slots 1 to `reviewers_per_item`.

    A draft holds its slot until `reserved_until`; then another reviewer may take the slot, and the draft stays
    without one. An opinion submitted without a slot is an additional one.
    """

    item = models.ForeignKey(ReviewItem, models.CASCADE, related_name="reviews", db_index=False)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="reviews", db_index=False)
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=ReviewState.choices, default=ReviewState.DRAFT)

    supported = score()
    specific = score()
    complete = score()
    confounds = score()
    samples = score()
    verdict = models.CharField(max_length=8, choices=ReviewVerdict.choices, blank=True)
    corrected_label = models.CharField(max_length=LABEL_CHARS, blank=True)
    note = models.TextField(blank=True)
    reason = models.TextField(blank=True, help_text="why it was declined")

    seq = models.PositiveIntegerField(default=0, help_text="the run's last event that the reviewer has seen")
    version = models.PositiveIntegerField(default=1, help_text="raised by every change, so that none is overwritten")
    created = models.DateTimeField(default=timezone.now)
    saved = models.DateTimeField(default=timezone.now)
    submitted = models.DateTimeField(null=True, blank=True)
    reserved_until = models.DateTimeField(null=True, blank=True)
    opinions_shown = models.DateTimeField(
        null=True, blank=True, help_text="when the reviewer, having submitted, first saw what others say of the item"
    )

    class Meta:
        ordering = ["item", "pk"]
        constraints = [
            # NULL is unequal to NULL: any number of reviews may be without a slot.
            models.UniqueConstraint(fields=["item", "reviewer"], name="one_review_per_reviewer"),
            models.UniqueConstraint(fields=["item", "slot"], name="one_review_per_slot"),
            *(
                models.CheckConstraint(
                    condition=models.Q(**{f"{name}__isnull": True}) | models.Q(**{f"{name}__range": (1, 5)}),
                    name=f"review_{name}_1_to_5",
                )
                for name in ("supported", "specific", "complete", "confounds", "samples")
            ),
        ]
        indexes = [
            models.Index(fields=["reviewer", "state", "submitted"], name="reviews_of_a_reviewer"),
            models.Index(fields=["reserved_until"], condition=models.Q(state="draft"), name="reviews_under_way"),
        ]

    def __str__(self) -> str:
        # Without the verdict: audit and logs keep this text, and their readers may have yet to review.
        return f"review of item {self.item_id} by {self.reviewer_id}: {self.state}"

    @property
    def is_additional(self) -> bool:
        return self.state == ReviewState.SUBMITTED and self.slot is None

    def holds(self, now: datetime | None = None) -> bool:
        """True if the slot belongs to the reviewer: submitted there, or a draft whose reservation has not expired."""
        if self.slot is None:
            return False
        if self.state == ReviewState.SUBMITTED:
            return True
        return self.reserved_until is not None and self.reserved_until > (now or timezone.now())


class Adjudication(models.Model):
    """The final verdict on an item, by one person who has read its opinions.

    A later one replaces it; the earlier ones are kept.
    """

    item = models.ForeignKey(ReviewItem, models.CASCADE, related_name="adjudications")
    adjudicator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=8, choices=ReviewVerdict.choices)
    corrected_label = models.CharField(max_length=LABEL_CHARS, blank=True)
    reason = models.TextField(help_text="why, for the author and the reviewers")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        # Without the verdict, as with reviews.
        return f"final verdict on {self.item}"
