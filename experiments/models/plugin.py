"""Plug-ins: whether a worker can use each, and how to get what it lacks. Workers write these rows."""

from __future__ import annotations

from django.db import models

from experiments.models import stored


class PluginRow(models.Model):
    """What a worker found out about one plug-in at its last check."""

    label = models.CharField(max_length=200, blank=True)
    available = models.BooleanField(default=True)
    remedy = models.TextField(blank=True, help_text="what is missing, and the command that gets it")
    plugin = models.TextField(blank=True, help_text="path and version of the file or package that registered it")

    class Meta:
        abstract = True


class Backbone(PluginRow):
    """A source of replies."""

    key = models.CharField(max_length=100, unique=True)
    model_names = stored.ShapedJSONField(
        shape=list[str], default=list, blank=True, help_text="the provider's names, the default first"
    )
    prices = stored.ShapedJSONField(
        default=dict, blank=True, help_text="of those whose price is known: US dollars for a million tokens"
    )

    class Meta:
        ordering = ["pk"]

    @property
    def priced(self) -> list[tuple[str, list[float] | None]]:
        """Return each model with its prices, None if they are unknown."""
        return [(name, self.prices.get(name)) for name in self.model_names]

    @property
    def unpriced(self) -> list[str]:
        """Return the models whose price is unknown."""
        return [name for name in self.model_names if name not in self.prices]

    def __str__(self) -> str:
        return self.key


class Toolset(PluginRow):
    """A generator, an editor and a describer that work together."""

    key = models.CharField(max_length=100, unique=True)
    model_names = stored.ShapedJSONField(
        shape=list[str], default=list, blank=True, help_text="pipelines that make its images"
    )

    class Meta:
        ordering = ["pk"]
        verbose_name = "toolset"

    def __str__(self) -> str:
        return self.key
