"""Links by which people without an account read one run or one study, until they expire or are revoked."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from experiments.models.login_link import digest
from experiments.models.run import Run
from experiments.models.study import Study

MAX_VALIDITY = timedelta(days=366)
"""Maximum lifetime of a link."""


class Share(models.Model):
    """A link. Only the hash of its token is stored, so that readers of the database cannot open it."""

    run = models.ForeignKey(Run, models.CASCADE, null=True, related_name="shares")
    study = models.ForeignKey(Study, models.CASCADE, null=True, related_name="shares")
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)
    expires = models.DateTimeField()
    revoked = models.DateTimeField(null=True)
    # Off by default: outsiders see no more than was chosen.
    show_names = models.BooleanField(default=False)
    show_comments = models.BooleanField(default=False)
    views = models.PositiveIntegerField(default=0, help_text="how often its page was opened")
    last_viewed = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(run__isnull=False, study=None) | Q(run=None, study__isnull=False),
                name="share_of_a_run_or_a_study",
            )
        ]

    def __str__(self) -> str:
        return f"share {self.pk} of {f'run {self.run_id}' if self.run_id else f'study {self.study_id}'}"

    @property
    def shared(self) -> Run | Study:
        """Return the run or study that it shows."""
        found = self.run or self.study
        assert found is not None, "a constraint of the table sees to that"
        return found

    @property
    def is_good(self) -> bool:
        return self.revoked is None and self.expires > timezone.now()

    @classmethod
    def issue(
        cls, shared: Run | Study, by: User, expires: datetime, *, names: bool, comments: bool
    ) -> tuple[Share, str]:
        """Create a share; return it with its token of 256 bits, which is shown once."""
        token = secrets.token_urlsafe(32)
        row = cls.objects.create(
            run=shared if isinstance(shared, Run) else None,
            study=shared if isinstance(shared, Study) else None,
            created_by=by,
            token_hash=digest(token),
            expires=expires,
            show_names=names,
            show_comments=comments,
        )
        return row, token

    @classmethod
    def find(cls, token: str) -> Share | None:
        """Return the share with what it shows, if valid."""
        # Always the same single query, so that its time says nothing about the token.
        good = cls.objects.filter(token_hash=digest(token), revoked=None, expires__gt=timezone.now())
        return good.select_related("run__owner", "study__owner").first()

    def note_view(self) -> None:
        """Record that its page was opened."""
        # By the database: two views at one moment count twice.
        Share.objects.filter(pk=self.pk).update(views=F("views") + 1, last_viewed=timezone.now())

    def revoke(self) -> bool:
        """Revoke the link; return False if it was revoked before."""
        # The condition keeps the first time of revocation.
        return bool(Share.objects.filter(pk=self.pk, revoked=None).update(revoked=timezone.now()))
