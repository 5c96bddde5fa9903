"""Draw images from prompts with any text-to-image pipeline of diffusers, by hub id or local folder."""

from __future__ import annotations

from collections.abc import Sequence

from workers.image_models.diffusion.runner import PipelineRunner
from workers.image_models.diffusion.source import explain_missing, find_pipeline
from workers.protocols import LabSettings, Picture, Progress, no_progress


def load(settings: LabSettings, name: str = "") -> DiffusionGenerator:
    """Return the pipeline of that name, else that of the settings. Raises MissingPart; weights are loaded on first
    use."""
    return DiffusionGenerator(PipelineRunner(find_pipeline(name or settings.generator, "draw"), settings))


def models(settings: LabSettings, name: str = "") -> tuple[str, ...]:
    """List the one pipeline."""
    return (name or settings.generator,)


def missing(settings: LabSettings, name: str = "") -> str:
    """Say what keeps it from loading, and the command that gets it; "" if nothing does."""
    return explain_missing(name or settings.generator, "draw")


class DiffusionGenerator:
    """Draws images with the size, guidance and steps of the pipeline's authors."""

    def __init__(self, painter: PipelineRunner) -> None:
        self.name = painter.name
        self.revision = painter.revision
        self._painter = painter

    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = no_progress) -> list[Picture]:
        """See `protocols.ImageGenerator`. An empty prompt gives an image of nothing in particular.

        Raises MissingPart if the weights turn out to be broken, MachineryError if the pipeline gives no pictures.
        """
        requests = [self._painter.request(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        return self._painter.paint(requests, "Drawing images", progress)
