"""Run a pipeline: batches, seeds, progress between steps, and checks of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from workers.errors import MachineryError
from workers.image_models.diffusion.pipeline import find_unread, load_pipeline, working_size
from workers.image_models.diffusion.source import PipelineSource
from workers.image_models.diffusion.store import ImageStore, request_key
from workers.lab.imaging import image_key, refused_picture
from workers.model_cache import map_in_batches
from workers.protocols import LabSettings, Picture, Progress


@dataclass(frozen=True)
class ImageRequest:
    """One image to make."""

    key: str
    words: str
    seed: int
    original: Image.Image | None = None
    """The image to edit; None if one is to be drawn from words alone."""

    @property
    def size(self) -> tuple[int, int]:
        return self.original.size if self.original else (0, 0)


@dataclass
class StepProgress:
    """Counts denoising steps of each image, and reports them."""

    what: str
    images: int
    steps: int
    progress: Progress
    done: int = 0
    """Images that are finished."""

    def tell(self, images: int = 0, share: float = 0.0) -> None:
        """Report, with so many images under way, of whose steps a share is done. Raises what the listener raises."""
        total = self.images * self.steps
        now = round((self.done + images * share) * self.steps)
        # One less than all while images are under way: the last step is reported by `finish`.
        self.progress(f"{self.what}, denoising steps", min(now, total - 1), total)

    def finish(self) -> None:
        total = self.images * self.steps
        self.progress(f"{self.what}, denoising steps", total, total)


class PipelineRunner:
    """Runs the pipeline of one source. Safe for threads, and for several processes on one state folder."""

    def __init__(self, source: PipelineSource, settings: LabSettings) -> None:
        self.name = source.name
        self.revision = source.revision()
        self._source = source
        self._settings = settings
        self._batch_size = max(1, settings.image_batch) if source.batches else 1
        self._side = settings.edit_size if source.use == "edit" else settings.image_size
        # The parameters of a call that the settings change from the authors' defaults
        steps, guidance = settings.image_steps, settings.image_guidance
        if source.use == "edit":
            steps, guidance = settings.edit_steps or steps, settings.edit_guidance
        # 0 means the authors' default; parameters that the pipeline lacks are left out.
        wanted = {"num_inference_steps": steps, "guidance_scale": guidance}
        self._chosen = {name: value for name, value in wanted.items() if value and source.takes(name)}
        # Part of the key: other numbers make other pixels.
        self._calls = source.defaults | self._chosen | ({"side": self._side} if self._side else {})
        self._store = ImageStore(settings.state / "generated")
        self._slot = settings.model_cache.slot(
            f"{self.name} {self.revision[:12]}", partial(load_pipeline, source, settings)
        )

    def request(self, words: str, seed: int, original: Image.Image | None = None) -> ImageRequest:
        """Return the request with the key of everything it depends on."""
        key = request_key(
            pipeline=[self.name, self.revision, self._source.kind.__name__],
            calls=self._calls,
            precision=self._settings.precision,
            words=words,
            seed=seed,
            original=image_key(original) if original else None,
        )
        return ImageRequest(key, words, seed, original)

    def paint(self, requests: Sequence[ImageRequest], what: str, progress: Progress) -> list[Picture]:
        """Return a picture for each request, in order; earlier results are read. Raises MachineryError."""
        # The same request gives the same pixels, so earlier results are read, also those of other runs.
        found = {each.key: picture for each in requests if (picture := self._store.find(each.key))}
        # Equal requests in one call are made once.
        left = list({each.key: each for each in requests if each.key not in found}.values())
        if left:
            meter = StepProgress(what, len(left), int(self._calls.get("num_inference_steps", 1)), progress)
            left.sort(key=lambda each: each.size)  # those whose originals are of one size can share a batch
            for _, alike in groupby(left, key=lambda each: each.size):
                asked = list(alike)
                made = map_in_batches(asked, self._batch_size, partial(self._batch, meter=meter))
                found |= {each.key: picture for each, picture in zip(asked, made, strict=True)}
            meter.finish()
        return [found[each.key] for each in requests]

    def _batch(self, batch: Sequence[ImageRequest], meter: StepProgress) -> list[Picture]:
        """Make one batch, without the images that another process made meanwhile."""
        with self._store.alone([each.key for each in batch], meter.tell):
            # Again under the lock: another process may have made some meanwhile.
            found = {each.key: picture for each in batch if (picture := self._store.find(each.key))}
            if left := [each for each in batch if each.key not in found]:
                # Run the pipeline; what it made is kept, even if it refused a part
                meter.tell(len(left))
                with self._slot as pipeline, np.errstate(invalid="ignore"):  # NaN is found below
                    result = pipeline(**self._arguments(pipeline, left, meter))
                    remarks = [find_unread(pipeline, each.words, self._calls) for each in left]
                # A safety checker blackens images and says which.
                flagged = getattr(result, "nsfw_content_detected", None) or [False] * len(left)
                for request, values, remark, refused in zip(left, self._values(result), remarks, flagged, strict=True):
                    if not refused:
                        found[request.key] = Picture(self._image(values, request), note=remark)
                        # At once, so that a stop after this batch loses nothing.
                        self._store.keep(request.key, found[request.key])
                    else:
                        why = f"the safety checker of {self.name} withheld it; ask in other words"
                        found[request.key] = refused_picture(why)
        meter.done += len(batch)
        return [found[each.key] for each in batch]

    def _arguments(self, pipeline: Any, batch: Sequence[ImageRequest], meter: StepProgress) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "prompt": [each.words for each in batch],
            # A generator on the CPU for each image, so that the same request gives the same pixels in any batch and on
            # any device.
            "generator": [torch.Generator("cpu").manual_seed(each.seed) for each in batch],
            # Arrays, not PIL images: NaN would already be lost in those.
            "output_type": "np",
            **self._chosen,
        }
        if self._source.takes("callback_on_step_end"):
            arguments["callback_on_step_end"] = partial(_make_callback, meter, len(batch))
        originals = [each.original.convert("RGB") for each in batch if each.original]
        if originals:
            size = working_size(pipeline, originals[0].size, self._side)
            # At the size that the network was trained at; `_image` scales the edit back.
            arguments["image"] = [each.resize(size, Image.Resampling.LANCZOS) for each in originals]
            arguments |= self._sized(size)
        elif self._side:
            arguments |= self._sized(working_size(pipeline, (self._side, self._side), self._side))
        return arguments

    def _sized(self, size: tuple[int, int]) -> dict[str, Any]:
        """Return arguments that ask for images of `size` (width, height), if the pipeline leaves a choice."""
        arguments: dict[str, Any] = {}
        if self._source.takes("width") and self._source.takes("height"):
            arguments["width"], arguments["height"] = size
        if self._side and self._source.takes("max_area"):  # Kontext otherwise scales to a megapixel
            arguments |= {"max_area": size[0] * size[1], "_auto_resize": False}
        return arguments

    def _values(self, result: Any) -> NDArray[np.float32]:
        """Return (batch, height, width, 3), in [0, 1] if all is well."""
        values = np.asarray(getattr(result, "images", ()), dtype=np.float32)
        if values.ndim != 4 or values.shape[3] != 3:
            raise self._source.broken("it gives no RGB images")
        return values

    def _image(self, values: NDArray[np.float32], request: ImageRequest) -> Image.Image:
        """Return the picture; an edit has the size of its original."""
        # Half precision overflows in some pipelines, and the picture is then black or NaN.
        if not np.isfinite(values).all() or not values.any():
            remedy = "Its weights are damaged or do not belong together"
            if self._settings.precision != "float32":
                remedy = "Set MAIA_PRECISION=bfloat16 or MAIA_PRECISION=float32, and start again"
            raise MachineryError(
                f"{self.name} gave a black image or numbers that are none (NaN) for {request.words[:80]!r} with seed "
                f"{request.seed}, in {self._settings.precision} on {self._settings.device}. {remedy}."
            )
        image = Image.fromarray((values * 255).round().astype(np.uint8))
        return image.resize(request.size, Image.Resampling.LANCZOS) if request.original else image


def _make_callback(
    meter: StepProgress, images: int, pipeline: Any, step: int, _time: Any, tensors: dict[str, Any]
) -> dict[str, Any]:
    """Report the progress after a denoising step. Returns the tensors unchanged, as the pipeline wants."""
    # Some pipelines do not tell the number of steps; the share must still not exceed 1.
    meter.tell(images, (step + 1) / max(step + 1, getattr(pipeline, "num_timesteps", 0)))
    return tensors
