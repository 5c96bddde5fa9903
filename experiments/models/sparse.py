"""Sparse auto-encoders, as far as pages show them. Workers write these rows; the weights are files."""

from __future__ import annotations

from django.db import models

from experiments.models import stored


class SparseAutoencoderRow(models.Model):
    """An auto-encoder that was trained or added; its model is "sae:NAME", whose units are the latents."""

    model = models.OneToOneField("experiments.VisionModelRow", models.CASCADE, related_name="autoencoder")
    card = stored.ShapedJSONField(
        shape=stored.StoredSparseCard, default=dict, help_text="what it was trained on and how, and how good it is"
    )
    report = stored.ShapedJSONField(default=dict, blank=True, help_text="what was measured of its latents")
    measured = models.DateTimeField(null=True, blank=True, help_text="when the report was written")

    class Meta:
        ordering = ["-pk"]
        verbose_name = "sparse auto-encoder"

    def __str__(self) -> str:
        return str(self.model)

    @property
    def kind_words(self) -> str:
        """Return the name of its kind in papers."""
        kind = str(self.card.get("kind", ""))
        return {
            "topk": "TopK",
            "batchtopk": "BatchTopK",
            "matryoshka": "Matryoshka",
            "relu": "ReLU",
            "jumprelu": "JumpReLU",
        }.get(kind, kind)
