"""Images of label checks, drawn and measured once for all checks.

Their rows outlive the check: the same prompt, seed and generator give the same pixels, and the same system gives the
same activations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from experiments.models import GeneratedImage, Measurement
from workers import registry
from workers.jobs.images import ImagesInDatabase
from workers.jobs.laboratory import laboratory
from workers.protocols import Picture, Progress, Provenance
from workers.record.origins import Origin
from workers.record.systems import SystemSpec

AT_ONCE = 16
"""Number of images drawn or measured between two tests for cancellation."""


@dataclass(frozen=True)
class CheckMeasurement:
    """An image and a system's activation."""

    image: str
    masked: str
    activation: float


def draw(toolset: str, wanted: Sequence[tuple[str, int]], progress: Progress) -> list[GeneratedImage]:
    """Return the image of each prompt and seed, in order. Existing ones are not drawn again. Raises Cancelled."""
    lab = laboratory()  # First, because plug-ins register their parts here
    key = registry.TOOLSETS[toolset].generator
    generator = lab.generator(key)
    name = f"{key} {getattr(generator, 'revision', '')}".strip()
    # Prompts can be too long for an index
    hashes = {prompt: sha256(prompt.encode(errors="surrogatepass")).hexdigest() for prompt, _ in wanted}
    rows = GeneratedImage.objects.filter(generator=name, prompt_hash__in=hashes.values())
    found = {(row.prompt_hash, row.seed): row for row in rows}
    # Each once: prompts of several labels may be the same.
    missing = [each for each in dict.fromkeys(wanted) if (hashes[each[0]], each[1]) not in found]
    for start in range(0, len(missing), AT_ONCE):
        progress("Drawing images for the check", start, len(missing))
        some = missing[start : start + AT_ONCE]
        pictures = generator.generate([prompt for prompt, _ in some], [seed for _, seed in some], progress)
        images = ImagesInDatabase()
        made = []
        for (prompt, seed), picture in zip(some, pictures, strict=True):
            known = Provenance(Origin.GENERATED, prompt, seed, picture.scene)
            image = None if picture.refused else images.remember(picture.image, known)
            row = {"prompt": prompt, "seed": seed, "image_id": image, "refused": picture.refused}
            made.append(GeneratedImage(generator=name, prompt_hash=hashes[prompt], **row))
        # Files before rows
        images.flush()
        GeneratedImage.objects.bulk_create(made, ignore_conflicts=True)
        found |= {(row.prompt_hash, row.seed): row for row in made}
    return [found[hashes[prompt], seed] for prompt, seed in wanted]


def measure(spec: SystemSpec, keys: Sequence[str], progress: Progress) -> dict[str, CheckMeasurement]:
    """Return the system's activations for stored images, by key. Earlier measurements are reused. Raises Cancelled."""
    lab = laboratory()
    revision = lab.find_revision(spec)
    # Other options do not change an activation, so runs with different options share measurements
    options = {name: value for name, value in spec.options.items() if name in ("dataset", "surroundings")}
    # The revision: other weights give other activations.
    named = json.dumps([spec.kind, spec.model, revision, spec.layer, spec.unit, options], sort_keys=True)
    system = sha256(named.encode()).hexdigest()
    rows = Measurement.objects.filter(system=system, image__in=set(keys))
    found = {
        row.image_id: CheckMeasurement(row.image_id, row.masked_id or row.image_id, row.activation) for row in rows
    }
    missing = [key for key in dict.fromkeys(keys) if key not in found]
    for start in range(0, len(missing), AT_ONCE):
        progress("Measuring images of the check", start, len(missing))
        some, images = missing[start : start + AT_ONCE], ImagesInDatabase()
        answers = lab.subject(spec).respond([images.load(key) for key in some])
        for key, answer in zip(some, answers, strict=True):
            masked = images.remember(answer.masked, Provenance(Origin.GENERATED, raw=key))
            found[key] = CheckMeasurement(key, masked, answer.activation)
        images.flush()
        made = [found[key] for key in some]
        Measurement.objects.bulk_create(
            [Measurement(system=system, image_id=m.image, activation=m.activation, masked_id=m.masked) for m in made],
            # Another worker may have measured the same image meanwhile.
            ignore_conflicts=True,
        )
    return {key: found[key] for key in keys}


def store(pictures: Sequence[Picture]) -> list[str]:
    """Store pictures of a dataset and return their keys."""
    images = ImagesInDatabase()
    keys = [images.remember(each.image, Provenance(Origin.EXTERNAL, scene=each.scene)) for each in pictures]
    images.flush()
    return keys
