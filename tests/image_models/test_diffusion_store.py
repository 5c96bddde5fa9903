"""The same request never runs twice: not in another thread, not in another process, not after a damaged file."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support import pipelines
from workers import registry
from workers.errors import Cancelled, MachineryError
from workers.image_models.diffusion.store import ImageStore, request_key
from workers.model_cache import ModelCache
from workers.protocols import LabSettings, Picture

pytestmark = pytest.mark.usefixtures("one_thread")

KEY = "ab" + "0" * 62


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return pipelines.stable_diffusion(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture
def settings(tmp_path) -> LabSettings:
    return LabSettings(tmp_path, image_steps=2)


def fresh(folder, settings):
    """A generator with a cache of its own, as another process has it."""
    alone = replace(settings, model_cache=ModelCache())
    return registry.load(registry.IMAGE_GENERATORS, f"diffusion:{folder}")(alone)


def never(what, done, total):
    raise AssertionError(f"{what}: {done} of {total}")


def files(settings):
    return sorted((settings.state / "generated").glob("??/*.png"))


def speckled(width, height):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_a_request_that_was_made_is_read_by_every_process(folder, settings):
    first = fresh(folder, settings).generate(["a cat", "a dog", "a cat"], [1, 1, 1])
    again = fresh(folder, settings).generate(["a dog", "a cat"], [1, 1], never)
    assert [each.image.tobytes() for each in again] == [first[1].image.tobytes(), first[0].image.tobytes()]
    assert first[0].image.tobytes() == first[2].image.tobytes()
    assert len(files(settings)) == 2


def test_only_what_is_new_is_made(folder, settings):
    heard = []
    generator = fresh(folder, settings)
    generator.generate(["a cat"], [1])
    generator.generate(["a cat", "a dog", "a cat"], [1, 1, 2], lambda *said: heard.append(said))
    assert heard[-1][1:] == (4, 4)  # two images of two steps


@pytest.mark.parametrize("change", [{"image_steps": 3}, {"precision": "bfloat16"}])
def test_other_settings_are_another_request(folder, settings, change):
    fresh(folder, settings).generate(["a cat"], [1])
    fresh(folder, replace(settings, **change)).generate(["a cat"], [1])
    assert len(files(settings)) == 2


def test_other_words_seeds_and_weights_are_another_request(folder, settings, tmp_path):
    fresh(folder, settings).generate(["a cat", "a dog"], [1, 1])
    fresh(folder, settings).generate(["a cat"], [2])
    other = pipelines.changed(folder, tmp_path / "other", "unet", lambda name, value: value * 1.01)
    assert fresh(other, settings).revision != fresh(folder, settings).revision
    fresh(other, settings).generate(["a cat"], [1])
    assert len(files(settings)) == 4


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:900], lambda data: b"no image" * 50])
def test_a_damaged_file_is_made_again(folder, settings, damage):
    (picture,) = fresh(folder, settings).generate(["a cat"], [1])
    (path,) = files(settings)
    path.write_bytes(damage(path.read_bytes()))
    (again,) = fresh(folder, settings).generate(["a cat"], [1])
    assert again.image.tobytes() == picture.image.tobytes()
    assert fresh(folder, settings).generate(["a cat"], [1], never)


def test_a_flipped_bit_changes_no_picture(tmp_path):
    store, image = ImageStore(tmp_path), speckled(20, 10)
    path = tmp_path / "ab" / f"{KEY}.png"
    store.keep(KEY, Picture(image))
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        found = store.find(KEY)
        assert found is None or found.image.tobytes() == image.tobytes()


@pytest.mark.parametrize(
    ("size", "remark"), [((1, 1), ""), ((33, 7), "only the first 77 tokens: «ü»"), ((512, 512), "x")]
)
def test_picture_and_remark_come_back_as_they_were(tmp_path, size, remark):
    store = ImageStore(tmp_path)
    with store.alone([KEY], lambda: None):
        store.keep(KEY, Picture(speckled(*size), note=remark))
    found = store.find(KEY)
    assert found.image.tobytes() == speckled(*size).tobytes()
    assert (found.image.mode, found.note) == ("RGB", remark)
    assert [path.name for path in (tmp_path / "ab").iterdir() if path.suffix == ".part"] == []


def test_two_who_ask_for_the_same_at_once_have_it_made_once(folder, settings):
    generators = [fresh(folder, settings) for _ in range(2)]
    ran, found = [], {}
    for generator in generators:
        with generator._painter._slot as pipeline:
            pipeline.unet.register_forward_hook(lambda *_: ran.append(1))
    begin = threading.Barrier(4)

    def work(at):
        begin.wait()
        found[at] = generators[at % 2].generate(["a cat", "a dog"], [1, 1])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ran) == 3  # two steps take three passes with this scheduler
    assert len({tuple(each.image.tobytes() for each in pictures) for pictures in found.values()}) == 1


def test_who_waits_for_another_can_be_stopped(folder, settings):
    generator = fresh(folder, settings)
    request = generator._painter.request("a cat", 1)

    def stop(what, done, total):
        raise Cancelled("enough")

    with ImageStore(settings.state / "generated").alone([request.key], never), pytest.raises(Cancelled):
        generator.generate(["a cat"], [1], stop)
    assert generator.generate(["a cat"], [1])


def test_a_state_folder_that_cannot_be_written_is_named(folder, settings):
    (settings.state / "generated").write_text("in the way")
    with pytest.raises(MachineryError, match=rf"cannot be kept in {settings.state}.*Make room"):
        fresh(folder, settings).generate(["a cat"], [1])


def test_keys_follow_every_part_of_a_request():
    keys = {request_key(words=words, seed=seed) for words in ["a", "b", "ü"] for seed in [1, 2, None]}
    assert len(keys) == 9
    assert request_key(seed=1, words="a") == request_key(words="a", seed=1)
