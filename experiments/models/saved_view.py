"""Saved views: the state of a list under a name, for its owner or for the whole team."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone


class SavedView(models.Model):
    """`query` is the query string of the list's address, without the number of the page."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    query = models.TextField(blank=True)
    shared = models.BooleanField(default=False, help_text="the whole team sees it")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_view_per_name")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"{reverse('runs')}?{self.query}"
