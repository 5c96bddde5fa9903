"""Generators and editors on small pipelines: the pixels, their seeds, what is said meanwhile, and what is refused."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support import pipelines
from workers import registry
from workers.errors import Cancelled, MachineryError
from workers.protocols import LabSettings, Picture

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{pipelines.OLD_ARRAYS}:DeprecationWarning"),
    pytest.mark.usefixtures("one_thread"),
]
PROMPTS, SEEDS = ["a red ball", "a green cone on snow", "a cat"], [3, 1, 2]
STEPS = 2


@pytest.fixture(scope="module")
def drawing(tmp_path_factory) -> Path:
    return pipelines.stable_diffusion(tmp_path_factory.mktemp("drawing"))


@pytest.fixture(scope="module")
def editing(tmp_path_factory) -> Path:
    return pipelines.pix2pix(tmp_path_factory.mktemp("editing"))


def generator(folder, state, **more):
    settings = LabSettings(state, **{"image_steps": STEPS, **more})
    return registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")(settings)


def editor(folder, state, **more):
    settings = LabSettings(state, **{"image_steps": STEPS, **more})
    return registry.load(registry.IMAGE_EDITORS, f"diffusion:{folder}")(settings)


def pixels(picture: Picture):
    return np.asarray(picture.image).astype(int)


def same(one, other, within=1):
    return all(
        np.abs(pixels(a) - pixels(b)).max() <= within if a.image.size == b.image.size else False
        for a, b in zip(one, other, strict=True)
    )


# --- drawing ----------------------------------------------------------------------------------------


def test_it_draws_what_the_bare_pipeline_draws(drawing, tmp_path):
    from diffusers import StableDiffusionPipeline

    bare = StableDiffusionPipeline.from_pretrained(drawing, low_cpu_mem_usage=False)
    noise = [torch.Generator("cpu").manual_seed(seed) for seed in SEEDS]
    wanted = bare(PROMPTS, generator=noise, num_inference_steps=STEPS).images
    found = generator(drawing, tmp_path).generate(PROMPTS, SEEDS)
    assert same(found, [Picture(image) for image in wanted])
    assert all(each.image.mode == "RGB" and each.scene is None and each.note == "" for each in found)


def test_a_batch_draws_what_one_at_a_time_does(drawing, tmp_path):
    together = generator(drawing, tmp_path / "a").generate(PROMPTS, SEEDS)
    alone = generator(drawing, tmp_path / "b", image_batch=1).generate(PROMPTS, SEEDS)
    backwards = generator(drawing, tmp_path / "c", image_batch=2).generate(PROMPTS[::-1], SEEDS[::-1])
    assert same(together, alone)
    assert same(together, backwards[::-1])
    assert not same(together[:1], together[1:2])


def test_the_settings_name_the_pipeline_and_its_authors_the_steps(drawing, tmp_path):
    settings = LabSettings(tmp_path, generator=str(drawing))
    found = registry.load(registry.IMAGE_GENERATORS, "diffusion")(settings)
    heard = []
    found.generate(PROMPTS[:1], [0], lambda *said: heard.append(said))
    assert found.name == str(drawing)
    assert heard[0] == ("Drawing images, denoising steps", 0, 50)
    assert heard[-1] == ("Drawing images, denoising steps", 50, 50)
    counts = [done for _, done, _ in heard]
    assert counts == sorted(counts)
    assert len(set(counts)) > 45


def test_it_stops_between_steps_and_can_be_used_again(drawing, tmp_path):
    def stop(what, done, total):
        if done > 2:
            raise Cancelled("enough")

    found = generator(drawing, tmp_path / "a")
    with pytest.raises(Cancelled, match="enough"):
        found.generate(PROMPTS, SEEDS, stop)
    assert same(found.generate(PROMPTS, SEEDS), generator(drawing, tmp_path / "b").generate(PROMPTS, SEEDS))


def test_two_threads_draw_with_one_pipeline(drawing, tmp_path):
    shared = generator(drawing, tmp_path / "a", image_batch=1)
    wanted = generator(drawing, tmp_path / "b", image_batch=1).generate(PROMPTS * 2, range(6))
    found = {}

    def work(at):
        found[at] = shared.generate((PROMPTS * 2)[at::2], range(6)[at::2])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same(found[0], wanted[::2])
    assert same(found[1], wanted[1::2])


def test_a_device_without_room_for_a_batch_draws_half_of_it(drawing, tmp_path):
    def full(network, arguments):
        if len(arguments[0]) > 4:  # two for each image: with the prompt and without
            raise torch.OutOfMemoryError("CUDA out of memory.")

    cramped = generator(drawing, tmp_path / "a")
    with cramped._painter._slot as pipeline:
        pipeline.unet.register_forward_pre_hook(full)
    wanted = generator(drawing, tmp_path / "b").generate(PROMPTS, SEEDS)
    assert same(cramped.generate(PROMPTS, SEEDS), wanted)


def test_a_prompt_too_long_is_drawn_with_a_remark_and_an_empty_one_without(drawing, tmp_path):
    found = generator(drawing, tmp_path)
    fits, long, empty = found.generate(["a" * 75, "a" * 75 + " dog", ""], [0, 0, 0])
    assert fits.note == empty.note == ""
    assert "first 77 tokens" in long.note
    assert "'dog'" in long.note
    assert found.generate(["a" * 75 + " dog"], [0])[0].note == long.note  # from the file


def test_it_is_silent(drawing, tmp_path, capfd, caplog):
    generator(drawing, tmp_path).generate(["a" * 100], [0])
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_half_precision_draws_nearly_the_same(drawing, tmp_path, precision):
    full = generator(drawing, tmp_path).generate(PROMPTS, SEEDS)
    half = generator(drawing, tmp_path, precision=precision).generate(PROMPTS, SEEDS)
    assert not same(full, half, within=0)
    assert same(full, half, within=32)


def test_numbers_that_overflow_half_precision_are_an_error_that_names_the_remedy(drawing, tmp_path):
    broken = pipelines.changed(
        drawing, tmp_path / "pipeline", "vae", lambda name, value: value * 1e6 if "conv_in" in name else value
    )
    with pytest.raises(MachineryError, match=r"'a red ball' with seed 3, in float16 .* MAIA_PRECISION=bfloat16"):
        generator(broken, tmp_path, precision="float16").generate(PROMPTS, SEEDS)
    assert generator(broken, tmp_path, precision="bfloat16").generate(PROMPTS, SEEDS)
    damaged = pipelines.changed(drawing, tmp_path / "damaged", "vae", lambda name, value: value * float("nan"))
    with pytest.raises(MachineryError, match="damaged"):
        generator(damaged, tmp_path).generate(PROMPTS, SEEDS)


def test_what_the_safety_checker_withholds_is_refused_and_the_rest_is_kept(tmp_path):
    free = pipelines.stable_diffusion(tmp_path / "free", threshold=2.0)
    scores = closeness(free, generator(free, tmp_path / "a").generate(PROMPTS, SEEDS))
    worst = int(np.argmax(scores))
    threshold = float(np.mean(sorted(scores)[-2:]))
    strict = generator(
        pipelines.changed(free, tmp_path / "strict", "safety_checker", partial(lowered, threshold)), tmp_path / "b"
    )
    reasons = [each.refused for each in strict.generate(PROMPTS, SEEDS)]
    assert "ask in other words" in reasons.pop(worst)
    assert not any(reasons)
    rest = [at for at in range(3) if at != worst]
    kept = strict.generate([PROMPTS[at] for at in rest], [SEEDS[at] for at in rest], never)
    assert all(pixels(each).any() for each in kept)


def closeness(folder: Path, pictures: list[Picture]) -> list[float]:
    """How near the safety checker of a pipeline finds each picture to its concepts."""
    from diffusers import DiffusionPipeline

    pipeline = DiffusionPipeline.from_pretrained(folder, low_cpu_mem_usage=False)
    seen = pipeline.feature_extractor([each.image for each in pictures], return_tensors="pt").pixel_values
    checker = pipeline.safety_checker
    with torch.no_grad():
        found = checker.visual_projection(checker.vision_model(seen)[1])
    return torch.nn.functional.cosine_similarity(found, checker.concept_embeds[:1]).tolist()


def lowered(threshold, name, value):
    return torch.full_like(value, threshold) if name == "concept_embeds_weights" else value


def never(what, done, total):
    raise AssertionError(f"{what}: {done} of {total}")


def test_an_edit_that_the_safety_checker_withholds_is_refused_and_the_rest_is_kept(tmp_path):
    free = pipelines.pix2pix(tmp_path / "free", threshold=2.0)
    originals, words = [Picture(noise(32, 32))] * 3, ["make it blue"] * 3
    scores = closeness(free, editor(free, tmp_path / "a").edit(originals, words, SEEDS))
    worst, threshold = int(np.argmax(scores)), float(np.mean(sorted(scores)[-2:]))
    strict = pipelines.changed(free, tmp_path / "strict", "safety_checker", partial(lowered, threshold))
    reasons = [each.refused for each in editor(strict, tmp_path / "b").edit(originals, words, SEEDS)]
    assert "ask in other words" in reasons.pop(worst)
    assert not any(reasons)


@pytest.fixture(scope="module")
def flux(tmp_path_factory) -> Path:
    return pipelines.flux(tmp_path_factory.mktemp("flux"))


def test_flux_draws_at_the_size_and_guidance_of_the_settings(flux, tmp_path):
    from diffusers import FluxPipeline

    bare = FluxPipeline.from_pretrained(flux, low_cpu_mem_usage=False)
    seed = torch.Generator("cpu").manual_seed(4)
    (wanted,) = bare("a cat", generator=seed, num_inference_steps=1, guidance_scale=5.5, width=64, height=64).images
    asked = {"image_steps": 1, "image_size": 64, "edit_guidance": 9, "edit_steps": 9, "edit_size": 128}
    found = generator(flux, tmp_path, image_guidance=5.5, **asked).generate(["a cat"], [4])
    assert same(found, [Picture(wanted)])
    other = generator(flux, tmp_path, image_guidance=1, **asked).generate(["a cat"], [4])
    assert other[0].image.size == (64, 64)
    assert not same(found, other), "another guidance is another request, and another picture"


def test_flux_draws_as_its_authors_chose(flux, tmp_path):
    (picture,) = generator(flux, tmp_path, image_steps=1).generate(["a" * 100], [0])
    assert picture.image.size == (512, 512)
    assert picture.note == ""  # the second text encoder reads 512 tokens


# --- editing ----------------------------------------------------------------------------------------


def noise(width, height):
    values = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def test_an_edit_has_the_size_of_its_original_and_no_scene(editing, tmp_path):
    sizes = [(32, 32), (50, 31), (1, 1), (3, 700), (31, 50), (50, 31)]
    originals = [Picture(noise(*size), {"some": "scene"}) for size in sizes]
    edits = editor(editing, tmp_path).edit(originals, ["make it blue"] * 6, range(6))
    assert [each.image.size for each in edits] == sizes
    assert all(each.scene is None and each.image.mode == "RGB" for each in edits)
    assert not same(edits, originals)


def test_it_edits_what_the_bare_pipeline_edits(editing, tmp_path):
    from diffusers import StableDiffusionInstructPix2PixPipeline

    bare = StableDiffusionInstructPix2PixPipeline.from_pretrained(editing, low_cpu_mem_usage=False)
    image = noise(pipelines.SIDE, pipelines.SIDE)
    seed = torch.Generator("cpu").manual_seed(5)
    (wanted,) = bare("make it blue", image=image, generator=seed, num_inference_steps=STEPS).images
    found = editor(editing, tmp_path).edit([Picture(image)], ["make it blue"], [5])
    assert same(found, [Picture(wanted)])


def test_an_edit_depends_on_image_instruction_and_seed_and_not_on_its_batch(editing, tmp_path):
    images = [Picture(noise(32, 32)), Picture(noise(31, 31).resize((32, 32))), Picture(noise(32, 32))]
    words, seeds = ["make it blue", "make it blue", "make it night"], [1, 1, 1]
    together = editor(editing, tmp_path / "a").edit(images, words, seeds)
    alone = editor(editing, tmp_path / "b", image_batch=1).edit(images, words, seeds)
    other = editor(editing, tmp_path / "c").edit(images[:1], words[:1], [2])
    assert same(together, alone)
    for one, two in [(0, 1), (0, 2), (1, 2)]:
        assert not same([together[one]], [together[two]])
    assert not same(together[:1], other)


def test_an_edit_stops_between_steps(editing, tmp_path):
    def stop(what, done, total):
        assert what.startswith("Editing images")
        if done > 1:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        editor(editing, tmp_path).edit([Picture(noise(32, 32))], ["make it blue"], [0], stop)


@pytest.fixture(scope="module")
def kontext(tmp_path_factory) -> Path:
    return pipelines.flux(tmp_path_factory.mktemp("kontext"), kontext=True)


def test_kontext_edits(kontext, tmp_path):
    (picture,) = editor(kontext, tmp_path, image_steps=1).edit([Picture(noise(60, 40))], ["make it blue"], [0])
    assert picture.image.size == (60, 40)


def test_kontext_works_at_the_size_and_guidance_of_the_settings(kontext, tmp_path):
    from diffusers import FluxKontextPipeline

    image, size = noise(80, 80), (64, 64)
    bare = FluxKontextPipeline.from_pretrained(kontext, low_cpu_mem_usage=False)
    called = {"num_inference_steps": 1, "guidance_scale": 7.0, "max_area": 64 * 64, "_auto_resize": False}
    small, seed = image.resize(size, Image.Resampling.LANCZOS), torch.Generator("cpu").manual_seed(5)
    (wanted,) = bare(small, "make it blue", width=64, height=64, generator=seed, **called).images
    found = editor(kontext, tmp_path, image_steps=3, image_guidance=2, edit_steps=1, edit_guidance=7, edit_size=64)
    assert same(found.edit([Picture(image)], ["make it blue"], [5]), [Picture(wanted.resize((80, 80), 1))])
