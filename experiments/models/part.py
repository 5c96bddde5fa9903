"""Plug-ins as pages see them: whether a worker can use one, and how to get what it lacks. Written by workers."""

from __future__ import annotations

from django.db import models


class Part(models.Model):
    """What a worker found out about one plug-in when it last looked."""

    label = models.CharField(max_length=200, blank=True)
    available = models.BooleanField(default=True)
    remedy = models.TextField(blank=True, help_text="what is missing, and the command that gets it")

    class Meta:
        abstract = True


class Backbone(Part):
    """What writes the replies."""

    key = models.CharField(max_length=100, unique=True)
    model_names = models.JSONField(default=list, blank=True, help_text="the provider's names, the default first")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.key


class ToolSet(Part):
    """A generator, an editor and a describer that go together."""

    key = models.CharField(max_length=100, unique=True)
    model_names = models.JSONField(default=list, blank=True, help_text="pipelines that make its images")

    class Meta:
        ordering = ["pk"]
        verbose_name = "tool set"

    def __str__(self) -> str:
        return self.key
