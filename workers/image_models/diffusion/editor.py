"""Edit images by instruction with any editing pipeline of diffusers, by hub id or local folder."""

from __future__ import annotations

from collections.abc import Sequence

from workers.image_models.diffusion.runner import PipelineRunner
from workers.image_models.diffusion.source import explain_missing, find_pipeline
from workers.protocols import LabSettings, Picture, Progress, no_progress


def load(settings: LabSettings, name: str = "") -> DiffusionEditor:
    """Return the pipeline of that name, else that of the settings. Raises MissingPart; weights are loaded on first
    use."""
    return DiffusionEditor(PipelineRunner(find_pipeline(name or settings.editor, "edit"), settings))


def models(settings: LabSettings, name: str = "") -> tuple[str, ...]:
    """List the one pipeline."""
    return (name or settings.editor,)


def missing(settings: LabSettings, name: str = "") -> str:
    """Say what keeps it from loading, and the command that gets it; "" if nothing does."""
    return explain_missing(name or settings.editor, "edit")


class DiffusionEditor:
    """Edits pixels: the scene behind a picture is neither needed nor kept.

    An edit has the size of its original, so the two can be overlaid; it is computed at the size that the pipeline was
    trained at.
    """

    def __init__(self, painter: PipelineRunner) -> None:
        self.name = painter.name
        self.revision = painter.revision
        self._painter = painter

    def edit(
        self,
        originals: Sequence[Picture],
        instructions: Sequence[str],
        seeds: Sequence[int],
        progress: Progress = no_progress,
    ) -> list[Picture]:
        """See `protocols.ImageEditor`. Raises MissingPart and MachineryError, as the generator does."""
        asked = zip(originals, instructions, seeds, strict=True)
        # One at a time with its original: the runner groups them by size.
        requests = [self._painter.request(words, seed, picture.image) for picture, words, seed in asked]
        return self._painter.paint(requests, "Editing images", progress)
