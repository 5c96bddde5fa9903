"""Plug-ins as pages see them: whether a worker can use one, and how to get what it lacks. Written by workers."""

from __future__ import annotations

from django.db import models

from experiments.models import stored


class PluginRow(models.Model):
    """What a worker found out about one plug-in when it last looked."""

    label = models.CharField(max_length=200, blank=True)
    available = models.BooleanField(default=True)
    remedy = models.TextField(blank=True, help_text="what is missing, and the command that gets it")
    plugin = models.TextField(blank=True, help_text="path and version of the file or package that registered it")

    class Meta:
        abstract = True


class Backbone(PluginRow):
    """What writes the replies."""

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
        """Each model with its prices, None where they are not known."""
        return [(name, self.prices.get(name)) for name in self.model_names]

    @property
    def unpriced(self) -> list[str]:
        """The models whose price is not known."""
        return [name for name in self.model_names if name not in self.prices]

    def __str__(self) -> str:
        return self.key


class Toolset(PluginRow):
    """A generator, an editor and a describer that go together."""

    key = models.CharField(max_length=100, unique=True)
    model_names = stored.ShapedJSONField(
        shape=list[str], default=list, blank=True, help_text="pipelines that make its images"
    )

    class Meta:
        ordering = ["pk"]
        verbose_name = "toolset"

    def __str__(self) -> str:
        return self.key
