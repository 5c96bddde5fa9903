"""FIND's published benchmark as a model "find:FOLDER": a layer is a family, a unit's number that of the function.

Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from workers.errors import MissingPart, RequestError, UnknownName
from workers.functions.black_box import BlackBox, Family
from workers.functions.families import FindNearness
from workers.functions.model import NO_IMAGES
from workers.functions.published.boxes import (
    NoAnswer,
    PublishedStrings,
    create_numbers,
    create_texts,
    create_words,
    find_gap,
)
from workers.functions.published.code_runner import CodeRunner
from workers.functions.published.conflicts import SHIPPED, explain_trouble, read_code
from workers.functions.published.layout import Benchmark, Category, find_root, read_layout
from workers.functions.published.rows import NumericRow, has_dropped_bias
from workers.protocols import LabSettings, LayerInfo
from workers.sentences import load_sentences

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

BIAS_LOST = "its code leaves out the bias b of its description; the code counts"
BY_NEARNESS = "answered by nearness in meaning here, by a language model as published"
WITHOUT_NOISE = "as published its truth is drawn anew, with noise, at each scoring; here it is scored without noise"


def missing(settings: LabSettings, folder: str) -> str:
    """Say what keeps it from loading, and where to get it; "" if nothing does."""
    del settings
    try:
        find_root(folder)
    except MissingPart as error:
        return str(error)
    return ""


def load(settings: LabSettings, folder: str) -> PublishedFunctions:
    """Return the benchmark, or the part of it, in a folder. Raises MissingPart if there is none."""
    return PublishedFunctions(folder, read_layout(folder), settings)


class PublishedFunctions:
    """A `VisionModel` in name: it has layers and units, and no maps. See `FunctionModel`."""

    def __init__(self, folder: str, benchmark: Benchmark, settings: LabSettings) -> None:
        self.name = f"find:{folder}"
        self.benchmark = benchmark
        self._settings = settings
        self._find_nearness: FindNearness = partial(load_sentences, settings.sentences)
        self._boxes: dict[tuple[str, int], BlackBox] = {}
        self._troubles: dict[tuple[str, int], str] = {}

    @cached_property
    def revision(self) -> str:
        """A digest of all files."""
        return self.benchmark.digest()

    def layers(self) -> Sequence[LayerInfo]:
        """Return a layer for each family of which a function is here."""
        here = {family: each.functions for family, each in self.benchmark.categories.items() if not each.unreadable}
        # Units are numbered as published, from 0; gaps are refused by `open`
        return [LayerInfo(family, family, "function", max(each) + 1) for family, each in here.items() if each]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Raise RequestError."""
        del images, layers
        raise RequestError(NO_IMAGES)

    def about(self) -> str:
        """Return how many of each family are here, and of how many nothing is known that keeps them from running."""
        parts = []
        for family, category in self.benchmark.categories.items():
            ready = sum(not explain_trouble(category, number) for number in category.functions)
            listed = len(category.rows.keys() | category.odd.keys())
            unread = " (unreadable)" if category.unreadable else ""
            parts.append(f"{len(category.functions):,} of {listed:,} {family}, {ready:,} ready{unread}")
        return f"FIND's published benchmark (Schwettmann et al., NeurIPS 2023): {'; '.join(parts)}"

    def open(self, layer: str, number: int) -> BlackBox:
        """Return the function. Raises UnknownName for one that is not here, MissingPart for one that cannot be called
        or scored."""
        category = self._find_category(layer)
        # 1. The function must be here
        if number not in category.functions:
            why = explain_trouble(category, number)
            raise UnknownName(f"There is no {layer} function {number} in {self.benchmark.folder}: {why}.")
        # 2. And runnable: tried once, then remembered
        if trouble := self.find_trouble(layer, number):
            raise MissingPart(
                f"Function {number} of {layer} is not runnable: {trouble.rstrip('.')}. Choose another one."
            )
        return self._create(category, number)

    def find_trouble(self, layer: str, number: int) -> str:
        """Say why a function cannot be called or scored; "" if it can. Functions of numbers and texts are tried in the
        sandbox, once.
        """
        key = layer, number
        if key not in self._troubles:
            category = self._find_category(layer)
            try:
                trouble = explain_trouble(category, number) or self._try_out(category, number)
            # Not remembered: the answer may be another one next time
            except NoAnswer as error:
                return error.why  # The machine may have been busy: it is tried again
            if layer == "concepts":
                return trouble  # What compares words may come to be there
            self._troubles[key] = trouble
        return self._troubles[key]

    def list_defects(self, layer: str, number: int) -> list[str]:
        """List the known defects of a function that can be called, in words."""
        category = self._find_category(layer)
        row, defects = category.rows.get(number), []
        if layer == "concepts":
            return [BY_NEARNESS]
        variant = SHIPPED.get(category.shipped.get(number, ""))
        if isinstance(row, NumericRow) and has_dropped_bias(row) and variant != "approximated":
            defects.append(BIAS_LOST)
        if variant == "noised":
            defects.append(WITHOUT_NOISE)
        # Only a box that was tried out has answers to compare with
        box = self._boxes.get((layer, number)) if not self.find_trouble(layer, number) else None
        if isinstance(box, PublishedStrings) and (wrong := box.list_differences()):
            defects.append(f"its code gives something else than published for {len(wrong)} of 10 inputs: {wrong[0]}")
        return defects

    def list_numbers(self, layer: str) -> list[int]:
        """Return numbers of the functions that are here, runnable or not. Raises UnknownName."""
        return list(self._find_category(layer).functions)

    def _find_category(self, layer: str) -> Category:
        """Raise UnknownName."""
        categories: Mapping[str, Category] = {str(name): each for name, each in self.benchmark.categories.items()}
        if layer not in categories:
            raise UnknownName(f"{self.name} has no family {layer!r}. Choose one of: {', '.join(categories)}.")
        return categories[layer]

    def _create(self, category: Category, number: int) -> BlackBox:
        """Return the function, kept, so that what it was tried out on is not run again. Raises MissingPart."""
        family: Family = category.family
        # Nearness may come to be there, so nothing is kept
        if family == "concepts":
            return create_words(category, number, self._find_nearness())
        key = family, number
        if key not in self._boxes:
            runner = CodeRunner(read_code(category, number), self._settings.find_sandbox)
            create = create_numbers if family == "numeric" else create_texts
            self._boxes[key] = create(category, number, runner)
        return self._boxes[key]

    def _try_out(self, category: Category, number: int) -> str:
        try:
            box = self._create(category, number)
        except MissingPart as error:
            return str(error)
        # Words are not run in the sandbox, so there is nothing to try
        return "" if category.family == "concepts" else find_gap(box)
