"""`Tools`: what the agent's programs may call beside the system. Its docstrings are the reference the agent reads.

One instance serves one experiment. Every argument is checked here, since a language model wrote the caller.
It draws, measures and stores nothing itself. Made by `laboratory`; reached by programs through `program_api`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PIL import Image

from workers.errors import ToolMisuse
from workers.lab import arguments, display
from workers.lab.arguments import ImageOrText
from workers.lab.engine_arguments import build_requests
from workers.lab.experiment_log import ExperimentLog, LoggedImage
from workers.lab.image_tools import ImageTools
from workers.lab.imaging import image_from_text
from workers.lab.label_tests import NO_JUDGE, LabelTests
from workers.lab.memory import StoredImage, find_raw, image_texts, is_made, look_up, look_up_all, raw_key, store_images
from workers.lab.system import System
from workers.protocols import ImageMemory, Progress, Provenance, no_progress
from workers.record.experiments import LogEntry
from workers.record.origins import Origin
from workers.record.systems import OrdinaryActivations

MAX_REMARKS = 20
_REFUSED = " (refused"
DEAD_UNIT = (
    "No image of the dataset activates this unit: its activation is the same on all of them, so it has no exemplars. "
    "It may be dead. If your own images do not activate it either, say so instead of giving it a label."
)


class Tools:
    """What experiments can be made with. A list argument takes 1 to 64 items; a wrong argument raises ToolError."""

    def __init__(
        self,
        system: System,
        memory: ImageMemory,
        image_tools: ImageTools,
        earlier: Sequence[LogEntry] = (),
        progress: Progress = no_progress,
        lacks: frozenset[str] = frozenset(),
        label_tests: LabelTests | None = None,
    ) -> None:
        self.lacks = lacks
        """Names that programs may not call here: the toolset's own."""
        self._system = system
        self._memory = memory
        self._image_tools = image_tools
        self._log = ExperimentLog(system, memory, earlier)
        self._progress = progress
        self._label_tests = label_tests
        self._remarks: dict[str, None] = {}

    # --- what programs call -------------------------------------------------------------------------

    def dataset_exemplars(self, system: Any = None) -> tuple[list[float], list[str]]:
        """Find the images of the dataset that activate the unit most: the place to begin.

        Returns up to 15 activations, highest first, and the masked images (Base64) in the same order; two empty lists
        if no image activates the unit. A free-form script gets one list of (activation, image) pairs instead.

        Example:
            activations, masked_images = tools.dataset_exemplars(system)
            titles = [f"exemplar {n}" for n in range(1, len(activations) + 1)]
            tools.log_experiment(activations, masked_images, titles, tools.summarize_images(masked_images))
        """
        del system  # published programs name the system; there is one
        found = self._system.subject.exemplars(self._progress)
        if not found:
            self._remarks[DEAD_UNIT] = None
        pictures = [each.picture for each in found]
        known = [(each.image, Provenance(Origin.EXEMPLAR, scene=each.scene)) for each in pictures]
        raw, activations = store_images(self._memory, known), [each.activation for each in found]
        return activations, self._system.keep(raw, found)

    def text2image(self, prompt_list: Sequence[str]) -> list[Image.Image]:
        """Draw one image for each prompt. Repeat a prompt to get other images of the same words.

        A prompt that cannot be drawn as it is said is refused, and the others are drawn: in its place stands a grey
        image with a cross, so that the lists keep their lengths. Its activation is nan, and in place of an image the
        result says why it was refused. ToolError is raised only if all prompts are refused.

        Look at what was drawn before you trust it: a generator may leave out what was asked for.

        Example:
            prompts = ["a red ball on grass", "a green ball on grass", "a red cube on grass"]
            activations, masked_images = system.neuron(tools.text2image(prompts))
            tools.log_experiment(activations, masked_images, prompts, "colour against shape")
        """
        prompts = arguments.check_texts(prompt_list, "prompt_list")
        return [kept.image for kept in self._image_tools.generate(prompts, Origin.GENERATED)]

    def game_engine(
        self,
        prompts: Sequence[str],
        *,
        camera: Any = None,
        distance: Any = None,
        light: Any = None,
        size: Any = None,
        count: Any = None,
        pose: Any = None,
        seed: Any = None,
    ) -> list[Image.Image] | tuple[list[Image.Image], list[str]]:
        """Render toys on a ground, and vary the view alone: one image for each prompt and combination of values.

        Each is a value or a list: camera (azimuth in degrees, (azimuth, elevation), "front", "right", "back", "left",
        "above"; usual (0, 23), elevation 5 to 90), distance (7 to 42, usual 14), light (brightness, 0.2 to 2), size
        (scale, 0.25 to 2), count (1 to 6 of the prompt's one kind), pose (turn in degrees), seed. The images of a
        prompt share the rest. Toys that would be hidden or out of the picture are refused.

        Returns the images; with any keyword, the images and their titles.

        Example:
            images, titles = tools.game_engine(["a red car on grass"], camera=[0, 45, 90, 135])
            tools.log_experiment(*system.neuron(images), titles, "does the view matter?")
        """
        given = {"camera": camera, "distance": distance, "light": light, "size": size, "count": count, "pose": pose}
        requests = build_requests(prompts, {**given, "seed": seed})
        images = [kept.image for kept in self._image_tools.render(requests)]
        is_plain = seed is None and all(value is None for value in given.values())
        return images if is_plain else (images, [each.title for each in requests])

    def edit_images(
        self, prompts_or_images: Sequence[str | ImageOrText], instructions: Sequence[str]
    ) -> tuple[list[Image.Image], list[str]]:
        """Change one thing in an image and keep the rest: the test of what causes an activation.

        The first list holds prompts, whose images are drawn for you, or images (of a masked image the whole image is
        edited). Both lists have the same length; for several edits of one image, repeat it, or its prompt: a prompt
        is drawn once in a call. Say what to put in place ("replace the ball with a cone", "make the car green"), not
        what to remove.

        Returns original, edit, original, edit, … and in the same order the prompts and instructions. An instruction
        that cannot be done exactly is refused, and the others are done: in its place stands the grey image with a
        cross that `text2image` gives, and its title ends in "(refused: …)", which says why. So it is with an edit
        whose original cannot be drawn. ToolError is raised only if no edit is made.

        Example:
            images, titles = tools.edit_images(["a red ball on grass"], ["make the ball blue"])
            activations, masked_images = system.neuron(images)
            tools.log_experiment(activations, masked_images, titles, "does the colour matter?")
        """
        wanted = arguments.check_texts(instructions, "instructions", "instructions")
        given = arguments.check_items(prompts_or_images, "prompts_or_images", "prompts or images")
        arguments.check_same_length(prompts_or_images=given, instructions=wanted)
        originals = self._originals(given)
        edits = self._image_tools.edit(originals, wanted)
        titles = []
        for value, kept in zip(given, originals, strict=True):  # what each original shows, in the words of its prompt
            shown = (kept.provenance.prompt if is_made(kept) else "") or "original image"
            titles.append(str(value) if kept.refused else shown)
        made = zip(originals, titles, edits, wanted, strict=True)
        pairs = [each for original, title, edit, words in made for each in ((original, title), (edit, words))]
        texts = [words if is_made(kept) else _mark_refused(words, kept.refused) for kept, words in pairs]
        return [kept.image for kept, _ in pairs], texts

    def describe_images(self, image_list: Sequence[ImageOrText], image_title: Sequence[str] | None = None) -> str:
        """Put each image into words, by an observer who knows none of your hypotheses.

        Of masked images only the bright region is described. Returns one line for each image, with its title. An
        observer who was made for other images than these refuses with ToolError.

        Example:
            activations, masked_images = system.neuron(tools.text2image(prompts))
            print(tools.describe_images(masked_images, prompts))
        """
        images = self._images(image_list)
        names = [f"image {n}" for n in range(1, len(images) + 1)]
        if image_title is not None:
            names = arguments.check_titles(image_title, "image_title")
            arguments.check_same_length(image_list=images, image_title=names)
        said = iter(self._image_tools.describer_of(images).describe([kept.image for kept in images if is_made(kept)]))
        texts = [next(said) if is_made(kept) else "refused" for kept in images]
        return "\n".join(f"{name}: {words}" for name, words in zip(names, texts, strict=True))

    def summarize_images(self, image_list: Sequence[ImageOrText]) -> str:
        """Say what the images have in common, by the same observer; of masked images, the bright regions.

        It ends with what stands around these regions: what decides may lie there.

        Example:
            activations, masked_images = tools.dataset_exemplars(system)
            print(tools.summarize_images(masked_images))
        """
        made = [kept for kept in self._images(image_list) if is_made(kept)]
        if not made:
            return "All of these images were refused."
        return self._image_tools.describer_of(made).summarize([kept.image for kept in made])

    def test_label(self, label: str) -> dict[str, Any]:
        """Score a label on ordinary images before you conclude with it: three labels in a run at most.

        r is the correlation of the activation with whether an image shows what the label says. The images are neither
        exemplars nor those that your conclusion is checked on. Returns a dict: "summary" (all figures, and how the
        label was read), "r", "n", "base_rate" (the share of images that the label describes), and in "images", with
        "titles", the brightest that it does not describe and the darkest that it does. A label that is not understood
        whole, or that no image shows, raises ToolError, which says why, and does not count.

        Example:
            found = tools.test_label("red balls on grass")
            activations, masked_images = system.neuron(found["images"])
            tools.log_experiment(activations, masked_images, found["titles"], found["summary"])
        """
        words = " ".join(arguments.check_text(label, "label").split())
        if self._label_tests is None:
            raise ToolMisuse(f"No label can be tested here: {NO_JUDGE}.")
        return self._label_tests.score(words)

    def log_experiment(
        self,
        activation_list: Sequence[float],
        image_list: Sequence[ImageOrText],
        image_titles: Sequence[str],
        image_textual_information: str | Sequence[str] | None = None,
    ) -> None:
        """Write down results. You see, and later experiments can use, only what is logged or printed.

        The three lists have the same length; a title says what its image shows. The last argument is any text: a
        description, a summary, what the experiment was for.

        Example:
            tools.log_experiment(activations, masked_images, prompts, "three prompts that differ in colour alone")
        """
        activations = arguments.check_numbers(activation_list, "activation_list", or_nan=True)
        given = arguments.check_items(image_list, "image_list", "images")
        titles = arguments.check_titles(image_titles, "image_titles")
        arguments.check_same_length(activation_list=activations, image_list=given, image_titles=titles)
        text = arguments.join_texts(image_textual_information, "image_textual_information")
        kept = self._images(given)
        made = [number if is_made(image) else 0.0 for image, number in zip(kept, activations, strict=True)]
        arguments.check_numbers(made, "activation_list")  # only a refused image may have NaN
        self._log_made(list(map(LoggedImage, kept, activations, titles)), text)

    def display(self, *things: Any) -> None:
        """Write down texts and images in the order given, in lists too; each image with its activation.

        A line of text right after an image is its title.

        Example:
            for activation, image in zip(activations, masked_images):
                tools.display(image, f"activation {activation}")
        """
        for images, text in display.group_with_texts(display.flatten(things, self._memory, self._progress)):
            self._log_made(images, text)

    def edit_image(
        self, image: ImageOrText | Sequence[ImageOrText], instructions: str | Sequence[str]
    ) -> Image.Image | list[Image.Image]:
        """The edits alone; one image takes several instructions, and one edit of one image comes without a list."""
        wanted = arguments.check_texts(instructions, "instructions", "instructions")
        given = arguments.check_items(image, "image", "images")
        # One image with several instructions is repeated for each.
        given = given * len(wanted) if len(given) == 1 else given
        # Every second image is an edit.
        edits = self.edit_images(given, wanted)[0][1::2]
        return edits[0] if isinstance(image, ImageOrText) and isinstance(instructions, str) else edits

    def describe(self, image_list: Sequence[ImageOrText]) -> str:
        """`describe_images` with numbers for titles."""
        return self.describe_images(image_list)

    summarize = summarize_images
    text2model = game_engine
    save_experiment_log = log_experiment

    @property
    def experiment_log(self) -> list[dict[str, Any]]:
        """Everything logged in this run: [{"images": [{"title": …, "activation": …}, …], "text": …}, …]."""
        return self._log.experiment_log

    @property
    def results_list(self) -> list[dict[str, Any]]:
        """The latest 200 results logged in this run: [{title: {"activation": …, "image": Base64}}, …]."""
        return self._log.results_list

    # --- what the loop reads ------------------------------------------------------------------------

    @property
    def entries(self) -> list[LogEntry]:
        """Return what this experiment logged, then what the tools themselves have to say."""
        logged = {seen.image for entry in self._log.entries for seen in entry.observations}
        # Remarks on logged images are part of their titles.
        notes = [line for line, key in self._image_tools.noted.items() if key not in logged]
        remarks = "\n".join([*self._remarks, *self._image_tools.remarks, *notes][:MAX_REMARKS])
        return [*self._log.entries, *([LogEntry((), remarks)] if remarks else [])]

    @property
    def best(self) -> float | None:
        """Return the highest activation of all that this experiment measured, logged or not; exemplars do not count."""
        return self._system.best

    @property
    def measured(self) -> int:
        """Return how many images this experiment measured, logged or not."""
        return len(self._system.measured)

    @property
    def ordinary(self) -> OrdinaryActivations | None:
        """Return what ordinary images of the dataset get; None if that is not known."""
        return self._system.subject.ordinary(self._progress)

    @property
    def exemplar_mean(self) -> float | None:
        """Return the mean activation of the exemplars; None if there are none (paper, appendix A: what is below is
        weak)."""
        # The mean would tell something of the exemplars that the toolset lacks.
        if "dataset_exemplars" in self.lacks:
            return None
        found = self._system.subject.exemplars(self._progress)
        return sum(each.activation for each in found) / len(found) if found else None

    def _originals(self, given: Sequence[Any]) -> list[StoredImage]:
        """Return the raw images to edit; those given as prompts are drawn."""
        found: dict[int, StoredImage] = {}
        prompts: dict[int, str] = {}
        for at, value in enumerate(given):
            self._progress("Reading images", at, len(given))
            if isinstance(value, str) and image_texts.key(value) is None and image_from_text(value) is None:
                prompts[at] = arguments.check_text(value, f"prompts_or_images[{at}]")
            else:
                found[at] = find_raw(self._memory, look_up(self._memory, value, f"prompts_or_images[{at}]"))
        # A prompt is drawn once in a call, so that several edits start from the same image.
        wanted = list(dict.fromkeys(prompts.values()))
        drawn = dict(zip(wanted, self._image_tools.generate(wanted, Origin.ORIGINAL), strict=True))
        return [found[at] if at in found else drawn[prompts[at]] for at in range(len(given))]

    def _log_made(self, images: Sequence[LoggedImage], text: str) -> None:
        """Log the images; of those that were refused, the titles and why."""
        refused = [each.title for each in images if each.title and not is_made(each.image)]
        lines = [_mark_refused(title, self._image_tools.refused.get(title, "")) for title in refused]
        made = [each for each in images if is_made(each.image)]
        seen = [replace(each, title=self._noted(each.image, each.title)) for each in made]
        self._log.add(seen, "\n".join([*lines, *([text] if text else [])]))

    def _noted(self, kept: StoredImage, title: str = "") -> str:
        """Return the title, with what its maker has to say of the image."""
        note = self._image_tools.notes.get(raw_key(kept))
        title = title or self._image_tools.titles.get(raw_key(kept), "")
        return f"{title} ({note})".strip() if note else title

    def _images(self, value: Any) -> list[StoredImage]:
        given = arguments.check_items(value, "image_list", "images")
        return look_up_all(self._memory, given, "image_list", self._progress)


def _mark_refused(title: str, why: str = "") -> str:
    """Return the title of a refused image, which says so, and why."""
    return title if _REFUSED in title else f"{title}{_REFUSED}{f': {why}' if why else ''})"
