"""Makes images for an experiment: draws prompts, edits images, chooses seeds, and remembers where each image came from.

It trusts its arguments: `Tools` checks them. It draws nothing itself: that is for generators and editors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workers.lab.memory import Kept, keep_all
from workers.protocols import (
    Describer,
    ImageEditor,
    ImageGenerator,
    ImageMemory,
    LogEntry,
    Origin,
    Picture,
    Progress,
    Provenance,
)

_SHOWN = 200
"""Characters of a prompt or a remark that are shown again."""


@dataclass(frozen=True)
class Equipment:
    """What makes images and puts them into words. Each is loaded when it is first needed, and not before."""

    generator: Callable[[], ImageGenerator]
    editor: Callable[[], ImageEditor]
    describer: Callable[[], Describer]


class Seeds:
    """A seed for each image: derived from the run's seed, the words, and how often they were asked for in the run.

    Images that earlier experiments logged are not drawn again; the same run with the same log draws the same.
    """

    def __init__(self, seed: int, earlier: Iterable[LogEntry]) -> None:
        self._seed = seed
        self._used = {(seen.prompt, seen.seed) for entry in earlier for seen in entry.observations}

    def next(self, words: str) -> int:
        """A seed that these words did not have yet, 0 to 2**31 - 1."""
        times, seed = 0, derived(self._seed, words, 0)
        while (words, seed) in self._used:
            times += 1
            seed = derived(self._seed, words, times)
        self._used.add((words, seed))
        return seed


class Studio:
    """Generator, editor and describer at work for one experiment."""

    def __init__(self, equipment: Equipment, memory: ImageMemory, seeds: Seeds, progress: Progress) -> None:
        self.equipment = equipment
        self.remarks: dict[str, None] = {}
        """What there is to say of the images made, in order, each once."""
        self._memory = memory
        self._seeds = seeds
        self._progress = progress

    def generate(self, prompts: Sequence[str], origin: Origin) -> list[Kept]:
        """One image for each prompt. Raises ToolRefused, Cancelled."""
        if not prompts:
            return []
        seeds = [self._seeds.next(prompt) for prompt in prompts]
        pictures = self.equipment.generator().generate(prompts, seeds, self._progress)
        made = zip(pictures, prompts, seeds, strict=True)
        return self._keep(pictures, [Provenance(origin, prompt, seed, each.scene) for each, prompt, seed in made])

    def edit(self, originals: Sequence[Kept], instructions: Sequence[str]) -> list[Kept]:
        """Apply one instruction to each raw image, with the seed of its original. Raises ToolMisuse, Cancelled."""
        seeds = [
            self._seeds.next(words) if kept.provenance.seed is None else kept.provenance.seed
            for kept, words in zip(originals, instructions, strict=True)
        ]
        pictures = [Picture(kept.image, kept.provenance.scene) for kept in originals]
        edited = self.equipment.editor().edit(pictures, instructions, seeds, self._progress)
        made = zip(edited, instructions, seeds, originals, strict=True)
        known = [Provenance("edited", words, seed, each.scene, None, kept.key) for each, words, seed, kept in made]
        found = self._keep(edited, known)
        for kept, words, original in zip(found, instructions, originals, strict=True):
            if kept.key == original.key:
                self.remarks[f"The edit {words[:_SHOWN]!r} changed nothing in its image."] = None
        return found

    def _keep(self, pictures: Sequence[Picture], known: Sequence[Provenance]) -> list[Kept]:
        for picture, provenance in zip(pictures, known, strict=True):
            if picture.remark:
                self.remarks[f"{provenance.prompt[:_SHOWN]!r}: {picture.remark[:_SHOWN]}"] = None
        return keep_all(self._memory, [(each.image, what) for each, what in zip(pictures, known, strict=True)])


def derived(seed: int, words: str, times: int) -> int:
    """A number from 0 to 2**31 - 1 that hangs on all three."""
    digest = hashlib.sha256(f"{seed}\n{times}\n{words}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
