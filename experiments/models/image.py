"""Images, each stored once under a key of its pixels, and measurements that belong to them."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored


class Image(models.Model):
    """`key` is the SHA-256 of mode, size and decoded pixels: encoders differ, pixels do not."""

    key = models.CharField(max_length=64, primary_key=True)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    created = models.DateTimeField(default=timezone.now)
    origin = models.CharField(max_length=10)
    prompt = models.TextField(blank=True)
    seed = models.BigIntegerField(null=True)
    scene = stored.ShapedJSONField(null=True)
    raw = models.CharField(max_length=64, blank=True, help_text="key of the unmasked image, if this one is masked")
    original = models.CharField(max_length=64, blank=True, help_text="key of the image this one was edited from")
    has_thumbnails = models.BooleanField(default=False)
    unused_since = models.DateTimeField(null=True, blank=True, help_text="when nothing was found to refer to it")

    class Meta:
        indexes = [
            models.Index(fields=["raw"], condition=~models.Q(raw=""), name="masked_versions"),
            models.Index(fields=["original"], condition=~models.Q(original=""), name="edits_of_an_image"),
            models.Index(fields=["key"], condition=models.Q(has_thumbnails=False), name="images_without_thumbnails"),
            models.Index(fields=["key"], condition=~models.Q(unused_since=None), name="unused_images"),
        ]

    def __str__(self) -> str:
        return f"{self.key[:12]} ({self.width} x {self.height}, {self.origin})"

    def get_absolute_url(self) -> str:
        return reverse("image", args=[self.key])

    @classmethod
    def claim(cls, keys: Iterable[str]) -> None:
        """Record that rows are about to refer to these images, so that existing ones are not removed within the
        next day."""
        # `pruning` removes images a day after `unused_since`; rows are about to refer to these.
        cls.objects.filter(key__in=list(keys)).exclude(unused_since=None).update(unused_since=None)

    @staticmethod
    def path_of(key: str) -> str:
        """Return the path of an image's file in the store."""
        return f"{key[:2]}/{key[2:]}.png"

    @staticmethod
    def thumbnail_of(key: str, size: int) -> str:
        """Return the path of its thumbnail, which may not exist."""
        return f"thumbnails/{size}/{key[:2]}/{key[2:]}.webp"
