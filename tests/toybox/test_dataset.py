"""The toybox validation set: drawn when asked for, once, and never again."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.errors import Cancelled
from workers.lab.imaging import image_key
from workers.protocols import LabSettings
from workers.toybox import dataset
from workers.toybox.world import render, splits
from workers.toybox.world.scenes import Scene


def test_it_has_three_thousand_scenes_and_draws_none_until_asked(tmp_path: Path) -> None:
    scenes = dataset.load(LabSettings(tmp_path))
    assert len(scenes) == 3_000
    assert scenes.name == "toybox"
    assert list(tmp_path.rglob("*.png")) == []


def test_a_picture_is_the_rendering_of_the_scene_behind_it(tmp_path: Path) -> None:
    scenes = dataset.ToyboxScenes(tmp_path)
    picture = scenes[7]
    scene = Scene.from_json(picture.scene)
    assert picture.image.size == (splits.NATIVE, splits.NATIVE)
    assert scene == splits.scene("validation", 7)
    assert image_key(picture.image) == image_key(render.render(scene, splits.NATIVE))


def test_the_second_look_gives_the_same_pixels_from_the_file(tmp_path: Path) -> None:
    first = dataset.ToyboxScenes(tmp_path)[3]
    (path,) = tmp_path.rglob("*.png")
    written = path.stat().st_mtime_ns
    second = dataset.ToyboxScenes(tmp_path)[3]
    assert (image_key(second.image), second.scene) == (image_key(first.image), first.scene)
    assert path.stat().st_mtime_ns == written


@pytest.mark.parametrize("index", [-1, 5])
def test_an_index_outside_says_what_there_is(tmp_path: Path, index: int) -> None:
    with pytest.raises(IndexError, match="numbered 0 to 4"):
        dataset.ToyboxScenes(tmp_path, 5)[index]


def test_each_scene_of_a_short_set_can_be_read(tmp_path: Path) -> None:
    assert [picture.image.size for picture in map(dataset.ToyboxScenes(tmp_path, 2).__getitem__, range(2))] == [
        (224, 224)
    ] * 2


def test_preparing_that_was_cancelled_goes_on_where_it_stopped(tmp_path: Path) -> None:
    scenes = dataset.ToyboxScenes(tmp_path, 6)

    def stop_at_three(_what: str, done: int, _total: int) -> None:
        if done == 3:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        scenes.prepare(stop_at_three)
    early = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.png")}
    assert len(early) == 3
    reports: list[tuple[int, int]] = []
    scenes.prepare(lambda _what, done, total: reports.append((done, total)))
    assert reports[-1] == (6, 6)
    assert len(list(tmp_path.rglob("*.png"))) == 6
    assert {path: path.stat().st_mtime_ns for path in early} == early
    assert list(tmp_path.rglob("*.part")) == []


def test_a_shorter_set_has_a_revision_of_its_own_but_the_same_pictures(tmp_path: Path) -> None:
    whole, short = dataset.ToyboxScenes(tmp_path), dataset.ToyboxScenes(tmp_path, 2)
    assert whole.revision != short.revision
    assert whole.revision == dataset.ToyboxScenes(tmp_path).revision
    assert image_key(whole[1].image) == image_key(short[1].image)
    assert len(list(tmp_path.rglob("*.png"))) == 1


def test_the_revision_covers_every_module_that_has_a_part_in_a_picture() -> None:
    here = Path(splits.__file__).parent
    makers, waiting = set(), ["splits", "render"]
    while waiting:
        name = waiting.pop()
        makers.add(name)
        text = (here / f"{name}.py").read_text()
        waiting += [path.stem for path in here.glob("*.py") if _imports(text, path.stem) and path.stem not in makers]
    assert makers <= set(splits.MAKERS)


def _imports(text: str, module: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip().startswith(("from ", "import "))]
    named = [line for line in lines if line.strip().startswith("from workers.toybox import") and module in line.split()]
    return bool(named) or any(f"workers.toybox.{module} " in line for line in lines)
