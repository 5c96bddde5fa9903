"""Named settings for new runs."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored


class Preset(models.Model):
    """Named settings of its owner or the whole team: task, model, layer, backbone, toolset, limits.

    `settings` has the fields of the New run form as it sends them, without question and unit.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="presets")
    name = models.CharField(max_length=60)
    settings = stored.ShapedJSONField(shape=dict[str, str], default=dict)
    shared = models.BooleanField(default=False, help_text="the whole team sees it")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_preset_per_name")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"{reverse('query')}?preset={self.pk}"
