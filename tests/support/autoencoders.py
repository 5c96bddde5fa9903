"""A sparse auto-encoder as a worker writes it down, without its weights."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import Layer, SparseAutoencoderRow, VisionModelRow
from workers.record.decoding import encode
from workers.record.estimates import Estimate
from workers.record.sparse_report import ActiveCounts, BinCounts, DecoderSimilarity, OutputEffect, SparseReport


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
        "dataset_key": "toybox",
        "seed": 0,
        "steps": 5000,
        "batch": 4096,
        "images": 2700,
        "scale": 1.5,
        "fingerprint": "f" * 64,
        "quality": {"unexplained": 0.112, "active": 7.94, "dead": 0.031, "positions": 14700},
    }
    return SparseAutoencoderRow.objects.create(model=model, card=card)


def add_report(row: SparseAutoencoderRow, **changes: object) -> SparseReport:
    """A report of it, as a worker keeps it: 8 of 256 latents dead, 20 of them twins."""
    facts = {
        "name": str(row.card["name"]),
        "fingerprint": "f" * 64,
        "images": 150,
        "positions": 21_600,
        "latents": 256,
        "unexplained": 0.1234,
        "active": ActiveCounts(7.9, 5, 8, 8),
        "dead": 8,
        "density": BinCounts((-3.0, -2.0, -1.0, 0.0), (48, 150, 50)),
        "similarity": DecoderSimilarity(BinCounts((-1.0, 0.0, 0.5, 0.9, 1.0), (0, 36, 200, 20)), 0.61, 20 / 256),
        "encoder_cosine": 0.87,
        "output": OutputEffect(
            "binary_kl",
            Estimate(0.412, 0.35, 0.48, 150),
            Estimate(3.4, 3.1, 3.7, 150),
            Estimate(0.879, 0.85, 0.9, 150),
            Estimate(0.7, 0.62, 0.77, 150),
            Estimate(0.1, 0.06, 0.16, 150),
        ),
    }
    report = SparseReport(**facts | changes)  # type: ignore[arg-type]
    row.report, row.measured = encode(report), timezone.now()
    row.save()
    return report
