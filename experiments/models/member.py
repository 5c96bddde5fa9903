"""Members of the installation's team, and their roles."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Role(models.IntegerChoices):
    """Each role may do everything that the ones before it may. Their order is that of their numbers."""

    VIEWER = 1, "Viewer"
    RESEARCHER = 2, "Researcher"
    REVIEWER = 3, "Reviewer"
    ADMIN = 4, "Admin"


class Member(models.Model):
    """A user with a role. A user without one sees nothing."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="member")
    role = models.PositiveSmallIntegerField(choices=Role.choices, default=Role.VIEWER)
    seen = models.DateTimeField(null=True, help_text="when a browser of theirs last asked for something")

    def __str__(self) -> str:
        return f"{self.user} ({self.get_role_display()})"
