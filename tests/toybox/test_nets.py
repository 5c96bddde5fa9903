"""The two networks, their weights, and their training at the smallest scale."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from workers.errors import MachineryError
from workers.protocols import no_progress
from workers.toybox.networks import examples, nets, train
from workers.toybox.networks.training_tasks import TrainingRecipe, TrainingTask, net_task, pixel_words, training_stages
from workers.toybox.world import splits
from workers.toybox.world.scenes import COLOURS, NOUNS, SIZES, Scene, Thing

WORDS = nets.Vocabulary(("ball", "car"), ("red", "blue", "green"), ("small", "large"), ("snow",), ("day", "night"))
RECIPE = TrainingRecipe(scenes=12, close_up_epochs=1, close_up_batch=4, epochs=2, batch=4, threads=1)
HELD_OUT = {"mixed": 8, "single": 6}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def learnt(state: Path) -> examples.Examples:
    return examples.load("train", range(12), state, processes=1)


# --- shapes and weights -------------------------------------------------------------------------------


def test_the_classes_are_nouns_then_colours_then_grounds_then_lights() -> None:
    assert WORDS.classes == ("ball", "car", "red", "blue", "green", "snow", "day", "night")
    assert nets.Vocabulary.from_json(WORDS.to_json()) == WORDS


def test_preprocess_centres_any_image() -> None:
    pixels = nets.preprocess([Image.new("RGB", (224, 100), "white"), Image.new("L", (3, 3), 0)])
    assert pixels.shape == (2, 3, 96, 96)
    assert pixels[0].unique().tolist() == [2.0]
    assert pixels[1].unique().tolist() == [-2.0]
    assert nets.preprocess([]).shape == (0, 3, 96, 96)


def test_toybox_net_gives_every_layer_and_its_logits_are_the_head_on_layer4s_maxima() -> None:
    network = nets.ToyboxNet(WORDS).eval()
    found = network.maps(torch.randn(2, 3, 96, 96))
    shapes = {name: tuple(layer.shape[1:]) for name, layer in found.items()}
    assert shapes == {
        "conv1": (24, 48, 48),
        "layer1": (24, 48, 48),
        "layer2": (48, 24, 24),
        "layer3": (72, 12, 12),
        "layer4": (96, 12, 12),
        "logits": (8, 1, 1),
    }
    assert all(found[name].min() >= 0 for name in network.WIDTHS)
    expected = network.logits(found["layer4"].amax(dim=(2, 3)))
    torch.testing.assert_close(found["logits"][:, :, 0, 0], expected)


def test_toybox_eyes_see_pixels_and_the_whole() -> None:
    seen = nets.ToyboxEyes(WORDS).eval()(torch.randn(2, 3, 96, 96))
    assert (seen.noun.shape, seen.colour.shape, seen.size.shape) == ((2, 3, 48, 48), (2, 3, 48, 48), (2, 2, 48, 48))
    assert (seen.ground.shape, seen.light.shape) == ((2, 1), (2, 2))


def test_both_networks_have_a_few_hundred_thousand_parameters() -> None:
    words = examples.vocabulary()
    for network in (nets.ToyboxNet(words), nets.ToyboxEyes(words)):
        assert 200_000 < sum(each.numel() for each in network.parameters()) < 500_000


def test_weights_come_back_with_their_vocabulary(tmp_path: Path) -> None:
    path, network = tmp_path / "net.safetensors", nets.ToyboxNet(WORDS).eval()
    nets.save_weights(network, path)
    again = nets.load_net(path)
    assert again.vocabulary == WORDS
    image = torch.randn(1, 3, 96, 96)
    assert torch.allclose(again(image), network(image), atol=1e-6)  # its weights lie in another order of memory
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]


def test_the_fingerprint_changes_with_the_weights(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.safetensors", "b.safetensors")]
    for path in paths:
        nets.save_weights(nets.ToyboxNet(WORDS), path)
    assert nets.fingerprint(paths[0]) != nets.fingerprint(paths[1])


def test_missing_weights_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MachineryError, match=r"gone\.safetensors are missing.*train_toybox"):
        nets.load_eyes(tmp_path / "gone.safetensors")


# --- examples -----------------------------------------------------------------------------------------


def test_no_two_splits_share_a_scene() -> None:
    names: tuple[splits.Split, ...] = ("train", "mixed", "single", "validation")
    scenes = [repr(splits.scene(name, number)) for name in names for number in range(300)]
    empty = sum("things=()" in scene for scene in scenes)
    assert len(set(scenes)) >= len(scenes) - empty


def test_held_out_scenes_of_one_toy_have_one_toy() -> None:
    assert {len(splits.scene("single", number).things) for number in range(50)} == {1}
    assert {len(splits.scene("train", number).things) for number in range(200)} >= {0, 1, 2, 3, 4}


def test_presence_and_pixel_words_say_what_the_scene_says(learnt: examples.Examples) -> None:
    words = examples.vocabulary()
    for row, scene in enumerate(learnt.scenes):
        shown = {word for word, here in zip(words.classes, learnt.presence[row], strict=True) if here}
        toys = {word for thing in scene.things for word in (thing.noun, thing.colour)}
        assert shown == {scene.ground, scene.light} | toys
    row = next(row for row, scene in enumerate(learnt.scenes) if scene.things)
    noun, colour, size = (part[0] for part in pixel_words(learnt, torch.tensor([row]), False))
    thing, here = learnt.scenes[row].things[0], torch.from_numpy(learnt.things[row] == 1)
    assert set(noun[here].tolist()) == {1 + NOUNS.index(thing.noun)}
    assert set(colour[here].tolist()) == {COLOURS.index(thing.colour)}
    assert set(size[here].tolist()) == {SIZES.index(thing.size)}
    nothing = torch.from_numpy(learnt.things[row] == 0)
    assert set(noun[nothing].tolist()) == {0}
    assert set(colour[nothing].tolist()) == {-1}


def test_a_close_up_holds_its_toy_and_forgets_those_out_of_sight() -> None:
    things = np.zeros((1, 48, 48), np.uint8)
    things[0, 20:26, 4:10], things[0, 20:26, 40:46] = 1, 2
    images = np.repeat(np.repeat(things, 2, 1), 2, 2)[..., None].repeat(3, 3)
    car, ball = Thing("car", "red", "small", 0, 0), Thing("ball", "blue", "large", 1, 0, on=0)
    near = examples.close_ups(examples.Examples(images, things, (Scene((car, ball), "snow", "day"),)))
    assert near.images.shape == (2, 40, 40, 3)
    assert [scene.things for scene in near.scenes] == [(car,), (replace(ball, on=None),)]
    assert [(shown == 1).sum() for shown in near.things] == [36, 36]
    assert [(shown[..., 0] > 0).sum() for shown in near.images] == [144, 144]


def test_drawing_stopped_half_way_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learnt: examples.Examples
) -> None:
    monkeypatch.setattr(examples, "_CHUNK", 4)

    def stop(_what: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examples.load("train", range(12), tmp_path, 1, stop)
    (done,) = tmp_path.rglob("done.npy")
    assert 1 <= np.load(done).sum() < 3
    reports: list[int] = []
    again = examples.load("train", range(12), tmp_path, 1, lambda _what, count, _total: reports.append(count))
    assert len(reports) < 3
    assert np.array_equal(again.images, learnt.images)
    assert np.array_equal(again.things, learnt.things)


# --- training -----------------------------------------------------------------------------------------


def weights_of(network: torch.nn.Module) -> list[float]:
    return torch.cat([value.flatten().float() for value in network.state_dict().values()]).tolist()


def test_training_writes_weights_and_figures_beside_them(state: Path, tmp_path: Path) -> None:
    for name, figure in (("net", "top1_accuracy_one_toy"), ("eyes", "mean_iou_nouns")):
        plan = replace(train.PLANS[name], recipe=RECIPE, target=tmp_path / f"{name}.safetensors")
        figures = train.train(name, plan, state, HELD_OUT)
        assert 0 <= figures[figure] <= 1
        stored = json.loads((tmp_path / f"{name}.json").read_text())
        assert stored["figures"] == pytest.approx(figures, nan_ok=True)
        assert stored["recipe"]["scenes"] == 12
    assert nets.load_net(tmp_path / "net.safetensors").logits.weight.min() >= 0
    assert list(state.rglob("*.checkpoint")) == []


def test_training_that_was_stopped_comes_to_the_same_weights(
    learnt: examples.Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, whole = training_stages(RECIPE, learnt), _course()
    train.train_network(whole, plan, RECIPE, tmp_path / "whole")
    broken = _course()
    with monkeypatch.context() as patch:
        saved: list[int] = []

        def save_twice(*arguments: object) -> None:
            _save(*arguments)  # type: ignore[arg-type]
            saved.append(1)
            if len(saved) == 2:
                raise KeyboardInterrupt

        _save = train._save_checkpoint
        patch.setattr(train, "_save_checkpoint", save_twice)
        with pytest.raises(KeyboardInterrupt):
            train.train_network(broken, plan, RECIPE, tmp_path / "broken")
    resumed = _course()
    train.train_network(resumed, plan, RECIPE, tmp_path / "broken")
    assert weights_of(resumed.network) == pytest.approx(weights_of(whole.network), abs=1e-5)
    assert weights_of(broken.network) != pytest.approx(weights_of(whole.network), abs=1e-5)


def _course() -> TrainingTask:
    torch.manual_seed(0)
    return net_task(RECIPE)


# --- what is committed --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [nets.NET_FILE, nets.EYES_FILE, nets.DESCRIBER_FILE], ids=list(train.PLANS))
def test_the_committed_weights_know_todays_words(path: Path) -> None:
    network = nets.load_net() if path == nets.NET_FILE else nets.load_eyes(path)
    assert network.vocabulary == examples.vocabulary()
    assert path.stat().st_size < 4_000_000


def test_the_committed_figures_reach_the_goals() -> None:
    net = json.loads(nets.NET_FILE.with_suffix(".json").read_text())["figures"]
    eyes, describer = (_read_record(path) for path in (nets.EYES_FILE, nets.DESCRIBER_FILE))
    assert net["top1_accuracy_one_toy"] >= 0.95
    assert net["mean_average_precision_nouns"] >= 0.9
    assert eyes["figures"]["mean_iou_nouns"] >= 0.75
    assert describer["figures"]["mean_iou_nouns"] >= 0.75


def test_describer_and_synthetic_neurons_share_no_network_and_no_training_scene() -> None:
    assert nets.fingerprint(nets.EYES_FILE) != nets.fingerprint(nets.DESCRIBER_FILE)
    eyes, describer = (_read_record(path)["recipe"] for path in (nets.EYES_FILE, nets.DESCRIBER_FILE))
    assert eyes["seed"] != describer["seed"]
    assert describer["first"] >= eyes.get("first", 0) + eyes["scenes"]


def _read_record(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return found


def test_the_committed_network_names_the_toy_in_fresh_scenes(state: Path) -> None:
    shown = examples.load("single", range(60), state, 1, no_progress)
    nouns = len(NOUNS)
    with torch.no_grad():
        scores = nets.load_net()(nets.normalise(torch.from_numpy(np.asarray(shown.images)))).numpy()
    answers = shown.presence[:, :nouns].argmax(axis=1)
    assert (scores[:, :nouns].argmax(axis=1) == answers).mean() >= 0.85
