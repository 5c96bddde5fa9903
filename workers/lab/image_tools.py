"""Make images for an experiment: draw prompts, edit images, choose seeds, and remember the origin of each image.

It trusts its arguments: `Tools` checks them. Drawing itself is done by generators and editors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from workers.errors import ToolRefused
from workers.lab.engine_arguments import EngineRequest
from workers.lab.imaging import refused_picture
from workers.lab.memory import StoredImage, is_made, raw_key, store_images
from workers.protocols import (
    Describer,
    GameEngine,
    ImageEditor,
    ImageGenerator,
    ImageMemory,
    Json,
    Picture,
    Progress,
    Provenance,
)
from workers.record.experiments import LogEntry
from workers.record.origins import Origin

_MAX_QUOTED_CHARS = 200
"""Characters of a prompt or a remark that are shown again."""
_REASON = 400
"""Maximum characters of a refusal's reason: long enough for the working example at its end."""
_NAMED = 12
"""Refused prompts, or instructions, that are named."""


@dataclass(frozen=True)
class ToolBackends:
    """What makes and describes images. Each part is loaded when it is first needed."""

    generator: Callable[[], ImageGenerator]
    editor: Callable[[], ImageEditor]
    describer: Callable[[], Describer]
    engine: Callable[[], GameEngine]


class ImageSeeds:
    """A seed for each image: derived from the run's seed, the words, and how often the run asked for them."""

    def __init__(self, seed: int, earlier: Iterable[LogEntry]) -> None:
        self._seed = seed
        # What earlier experiments logged is not drawn again.
        self._used = {(seen.prompt, seen.seed) for entry in earlier for seen in entry.observations}

    def next(self, words: str) -> int:
        """Return a seed from 0 to 2**31 - 1 that these words did not have yet."""
        # Counted up until one is free: a repeated prompt is to give another image.
        seeds = (derive_seed(self._seed, words, times) for times in count())
        seed = next(each for each in seeds if (words, each) not in self._used)
        self._used.add((words, seed))
        return seed


class ImageTools:
    """Generator, editor and describer of one experiment."""

    def __init__(self, backends: ToolBackends, memory: ImageMemory, seeds: ImageSeeds, progress: Progress) -> None:
        self._backends = backends
        self.remarks: dict[str, None] = {}
        """Remarks on the images made, in order, each once."""
        self.notes: dict[str, str] = {}
        """Remarks on single images, by key."""
        self.noted: dict[str, str] = {}
        """The same with the words of the image, and its key."""
        self.refused: dict[str, str] = {}
        """Why a prompt or an instruction was refused."""
        self.titles: dict[str, str] = {}
        """Default titles of the game engine's images, by key."""
        self._memory = memory
        self._seeds = seeds
        self._progress = progress

    def generate(self, prompts: Sequence[str], origin: Origin) -> list[StoredImage]:
        """Draw one image for each prompt; a refused prompt gives a placeholder and a remark that says why.

        Raises Cancelled; ToolRefused if all are refused, unless they were to be edited: then `edit` reports it.
        """
        if not prompts:
            return []
        generator = self._backends.generator()
        seeds = [self._seeds.next(prompt) for prompt in prompts]
        pictures = generator.generate(prompts, seeds, self._progress)
        # Refused originals are reported by the edit that needs them.
        self._tell_refused(prompts, pictures, generator, none_is_an_error=origin != Origin.ORIGINAL)
        return self._keep_drawn(pictures, prompts, seeds, origin)

    def render(self, requests: Sequence[EngineRequest]) -> list[StoredImage]:
        """Render one image of the game engine for each request. Refusals are as in `generate`."""
        prompts = {each.row: each.prompt for each in requests if each.seed is None}
        # Images of one prompt share its seed, so they differ by their parameters alone.
        drawn = {row: self._seeds.next(prompt) for row, prompt in prompts.items()}
        seeds = [drawn[each.row] if each.seed is None else each.seed for each in requests]
        engine, words = self._backends.engine(), [each.prompt for each in requests]
        pictures = engine.render(words, seeds, [each.given for each in requests], self._progress)
        self._tell_refused([each.title for each in requests], pictures, engine, none_is_an_error=True)
        kept = self._keep_drawn(pictures, words, seeds, Origin.GENERATED)
        self.titles |= {one.key: each.title for one, each in zip(kept, requests, strict=True)}
        return kept

    def edit(self, originals: Sequence[StoredImage], instructions: Sequence[str]) -> list[StoredImage]:
        """Apply one instruction to each raw image.

        An instruction that is refused, or whose original was not made, gives a placeholder and a remark that says why.
        Raises Cancelled; ToolRefused if all are refused.
        """
        seeds = [
            self._seeds.next(words) if kept.provenance.seed is None else kept.provenance.seed
            # With the seed of its original, so that an edit changes only what it names.
            for kept, words in zip(originals, instructions, strict=True)
        ]
        edited = self._edited(originals, instructions, seeds)
        made = zip(edited, instructions, seeds, originals, strict=True)
        known = [Provenance(Origin.EDITED, words, seed, each.scene, None, kept.key) for each, words, seed, kept in made]
        found = self._keep(edited, known)
        for kept, words, original in zip(found, instructions, originals, strict=True):
            # Compared by pixels: an editor may return the same image.
            if kept.key == original.key and is_made(kept):
                self.remarks[f"The edit {words[:_MAX_QUOTED_CHARS]!r} changed nothing in its image."] = None
        return found

    def describer_of(self, images: Sequence[StoredImage]) -> Describer:
        """Return the describer if it was made for these images. Raises ToolRefused, naming the first that it was not
        made for.
        """
        describer = self._backends.describer()
        # Only some describers are made for one kind of image.
        refusal: Callable[[Json], str] | None = getattr(describer, "refusal", None)
        for at, kept in enumerate(images if refusal else ()):
            raw = self._memory.recall(raw_key(kept)) if is_made(kept) else None
            if raw and refusal and (why := refusal(raw.scene)):
                raise ToolRefused(f"image_list[{at}] is not described. {why}")
        return describer

    def _edited(
        self, originals: Sequence[StoredImage], instructions: Sequence[str], seeds: Sequence[int]
    ) -> list[Picture]:
        """Return the editor's pictures; originals that were not made are not passed to it."""
        editor, there = self._backends.editor(), [at for at, kept in enumerate(originals) if is_made(kept)]
        # Only real originals are passed on: editing a grey placeholder would give an image of nothing.
        pictures = [Picture(originals[at].image, originals[at].provenance.scene) for at in there]
        made = editor.edit(pictures, [instructions[at] for at in there], [seeds[at] for at in there], self._progress)
        found = dict(zip(there, made, strict=True))
        edited = []
        for at, kept in enumerate(originals):
            why = "the image that was given stands for one that was not made"
            why = f"its original was not made: {kept.refused}" if kept.refused else why
            edited.append(found.get(at) or refused_picture(why))
        self._tell_refused(instructions, edited, editor, none_is_an_error=True)
        return edited

    def _tell_refused(
        self, words: Sequence[str], pictures: Sequence[Picture], maker: object, *, none_is_an_error: bool
    ) -> None:
        """Remark what was not made and why; raise ToolRefused with the same text if that is everything."""
        asked = [(each, picture.refused) for each, picture in zip(words, pictures, strict=True) if picture.refused]
        if not asked:
            return
        self.refused.update(asked)
        # Each reason once: a batch of prompts is often refused for the same word.
        refused = list(dict.fromkeys(f"{each[:_MAX_QUOTED_CHARS]!r} ({reason[:_REASON]})" for each, reason in asked))
        shown = "; ".join(refused[:_NAMED]) + ("; …" if len(refused) > _NAMED else "")
        what = f"{shown}. {getattr(maker, 'vocabulary', '')}".strip()
        if none_is_an_error and len(asked) == len(pictures):
            raise ToolRefused(f"Not made: {what}")
        self.remarks[f"Refused, so without an image or an activation: {what}"] = None

    def _keep_drawn(
        self, pictures: Sequence[Picture], prompts: Sequence[str], seeds: Sequence[int], origin: Origin
    ) -> list[StoredImage]:
        made = zip(pictures, prompts, seeds, strict=True)
        return self._keep(pictures, [Provenance(origin, prompt, seed, each.scene) for each, prompt, seed in made])

    def _keep(self, pictures: Sequence[Picture], known: Sequence[Provenance]) -> list[StoredImage]:
        kept = store_images(self._memory, [(each.image, what) for each, what in zip(pictures, known, strict=True)])
        for one, picture, provenance in zip(kept, pictures, known, strict=True):
            if picture.note:
                self.notes[one.key] = picture.note[:_MAX_QUOTED_CHARS]
                # With the words, since a remark alone does not say which image it is about.
                self.noted[f"{provenance.prompt[:_MAX_QUOTED_CHARS]!r}: {picture.note[:_MAX_QUOTED_CHARS]}"] = one.key
        return [replace(one, refused=picture.refused[:_REASON]) for one, picture in zip(kept, pictures, strict=True)]


def derive_seed(seed: int, words: str, times: int) -> int:
    """Derive a number from 0 to 2**31 - 1 from all three."""
    digest = hashlib.sha256(f"{seed}\n{times}\n{words}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
