"""A sparse auto-encoder as a worker writes it down, without its weights."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import Layer, SparseAutoencoderRow, VisionModelRow


def make_autoencoder(name: str, by: User | None = None) -> SparseAutoencoderRow:
    """One on layer4 of toybox, with 256 latents of 64 units."""
    model = VisionModelRow.objects.create(
        name=f"sae:{name}", label=f"sae:{name}", base="toybox", revision="1", added_by=by, added=timezone.now()
    )
    Layer.objects.create(model=model, position=0, name="layer4", path="net.layer4", kind="latent", units=256)
    card = {
        "name": name,
        "kind": "batchtopk",
        "k": 8,
        "latents": 256,
        "model": "toybox",
        "model_revision": "1",
        "model_key": "toybox",
        "layer": "layer4",
        "layer_path": "net.layer4",
        "units": 64,
        "dataset": "toybox",
        "dataset_revision": "1",
        "seed": 0,
        "steps": 5000,
        "batch": 4096,
        "images": 2700,
        "scale": 1.5,
        "fingerprint": "f" * 64,
        "quality": {"unexplained": 0.112, "active": 7.94, "dead": 0.031, "positions": 14700},
    }
    return SparseAutoencoderRow.objects.create(model=model, card=card)
