"""The origin of an image."""

from __future__ import annotations

from workers.record.statuses import Labelled


class Origin(Labelled):
    """An original is an image generated to be edited. An image of unknown origin is external."""

    EXEMPLAR = "exemplar", "Exemplars"
    GENERATED = "generated", "Generated"
    EDITED = "edited", "Edited"
    ORIGINAL = "original", "Originals of edits"
    EXTERNAL = "external", "External"
