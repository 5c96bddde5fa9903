"""CLIP and SigLIP as judges: real classes, tiny random checkpoints saved to disk, loaded by folder."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.support import checkpoints
from workers import registry
from workers.errors import Cancelled, MissingPart, RequestError, UnknownName
from workers.judges.clip import NEUTRAL, ClipJudge
from workers.lab.imaging import mask_image
from workers.protocols import LabSettings, Picture, PresenceJudge

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = LabSettings(Path("unused"), batch_size=2)
WORDS = ("a", "an", "photo", "of", "something", "image", "scene", ".", "red", "ball", "cone")
PICTURES = [Picture(each) for each in checkpoints.noise(5)]
MAKERS = {"clip": checkpoints.clip_judge, "siglip": checkpoints.siglip_judge}


@pytest.fixture(scope="module", params=list(MAKERS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Callable[[Path, Sequence[str]], Path] = MAKERS[request.param]
    return made(tmp_path_factory.mktemp("checkpoints") / request.param, WORDS)


def load(folder: Path, settings: LabSettings = SETTINGS) -> PresenceJudge:
    found: PresenceJudge = registry.load(registry.PRESENCE_JUDGES, f"clip:{folder}")(settings)
    return found


def answer_by_transformers(folder: Path, text: str) -> list[float]:
    """The whole model in one call, as its authors run it."""
    words = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    images = [each.image for each in PICTURES]
    if folder.name == "siglip":
        network = transformers.SiglipModel.from_pretrained(folder).eval()
        pixels = transformers.SiglipImageProcessorPil.from_pretrained(folder)(images=images, return_tensors="pt")
        read = words([text], padding="max_length", max_length=16, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            found = network(input_ids=read, pixel_values=pixels["pixel_values"]).logits_per_image.sigmoid()
    else:
        network = transformers.CLIPModel.from_pretrained(folder).eval()
        pixels = transformers.CLIPImageProcessorPil.from_pretrained(folder)(images=images, return_tensors="pt")
        read = words([text, *NEUTRAL], padding=True, return_tensors="pt")
        with torch.no_grad():
            found = network(
                input_ids=read["input_ids"],
                attention_mask=read["attention_mask"],
                pixel_values=pixels["pixel_values"],
            ).logits_per_image.softmax(1)
    return [float(each) for each in found[:, 0]]


def test_answers_are_the_probabilities_of_the_whole_model(folder: Path) -> None:
    said = load(folder).judge("Red ball.", PICTURES)
    assert said == pytest.approx(answer_by_transformers(folder, "a photo of red ball."), abs=1e-5)
    assert len({round(float(each or 0), 6) for each in said}) == len(PICTURES)


def test_of_alternatives_the_likeliest_counts_and_asking_again_changes_nothing(folder: Path) -> None:
    judge = load(folder)
    one, two = judge.judge("red ball", PICTURES), judge.judge("cone", PICTURES)
    assert judge.judge("red ball OR cone", PICTURES) == pytest.approx(
        [max(pair) for pair in zip(one, two, strict=True) if None not in pair], abs=1e-6
    )
    assert judge.judge("red ball", PICTURES[::-1]) == pytest.approx(one[::-1], abs=1e-6)
    assert load(folder, LabSettings(Path("unused"), batch_size=5)).judge("red ball", PICTURES) == pytest.approx(
        one, abs=1e-5
    )


def test_threads_get_what_one_gets_alone(folder: Path) -> None:
    expected = {label: load(folder).judge(label, PICTURES) for label in ("ball", "cone", "red", "ball OR cone")}
    judge = load(folder)
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda label: judge.judge(label, PICTURES), [*expected] * 3))
    for found, label in zip(said, [*expected] * 3, strict=True):
        assert found == pytest.approx(expected[label], abs=1e-5)


def test_one_thread_at_a_time_loads_with_transformers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile transformers changes what all threads share: a judge and a model under study wait for each other."""
    both = threading.Barrier(2, timeout=1)
    together: list[bool] = []
    load_network = transformers.PreTrainedModel.from_pretrained.__func__

    def watch(kind: Any, *given: Any, **options: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait()
            together.append(True)
        return load_network(kind, *given, **options)

    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", classmethod(watch))
    settings = LabSettings(tmp_path)
    model = registry.load(registry.VISION_MODELS, f"hf:{checkpoints.vit(tmp_path / 'vit')}")(settings)
    judge = load(folder, settings)
    with ThreadPoolExecutor(2) as pool:
        judged = pool.submit(judge.judge, "ball", PICTURES[:1])
        pool.submit(model.maps, checkpoints.noise(1), [model.layers()[0].name]).result()
        judged.result()
    assert not together


def test_of_a_part_it_sees_the_image_with_the_rest_dimmed(folder: Path) -> None:
    judge = load(folder)
    assert isinstance(judge, ClipJudge)
    part = np.zeros((PICTURES[0].image.height, PICTURES[0].image.width), bool)
    part[: part.shape[0] // 2] = True
    said = judge.judge_parts("red ball", PICTURES[:1], [part])
    marked = Picture(mask_image(PICTURES[0].image, part.astype(np.float32), 0.5))
    assert said == pytest.approx(judge.judge("red ball", [marked]))
    assert said != pytest.approx(judge.judge_parts("red ball", PICTURES[:1], [~part]), abs=1e-9)


def test_a_long_label_is_cut_and_nothing_to_judge_is_no_error(folder: Path) -> None:
    judge = load(folder)
    assert judge.judge("red ball " * 200, PICTURES[:1])[0] is not None
    assert judge.judge("ball", []) == []
    assert (judge.kind, judge.name, bool(judge.revision)) == ("embedding", f"clip:{folder}", True)


def test_a_judge_can_be_stopped(folder: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done:
            raise Cancelled(f"stopped at {what}, {done} of {total}")

    with pytest.raises(Cancelled, match="2 of 5"):
        load(folder).judge("ball", PICTURES, stop)


@pytest.mark.parametrize("label", ["", " . ", "ball OR ?!"])
def test_a_label_without_words_cannot_be_looked_for(folder: Path, label: str) -> None:
    with pytest.raises(RequestError, match="says nothing that can be looked for"):
        load(folder).judge(label, PICTURES)


@pytest.mark.parametrize("label", ["anything but balls", "dogs without a leash", "Not cats", "other than cars"])
def test_a_negation_is_refused_since_it_would_be_looked_for(folder: Path, label: str) -> None:
    with pytest.raises(RequestError, match="would look for the opposite"):
        load(folder).judge(label, PICTURES)
    assert load(folder).judge("nothings, knots or a notebook", PICTURES[:1])[0] is not None


def test_what_is_not_there_is_named_with_the_command_that_gets_it() -> None:
    lack = registry.missing(registry.PRESENCE_JUDGES, "clip:google/siglip-base-patch16-224", SETTINGS)
    assert "hf download google/siglip-base-patch16-224" in lack


def test_other_checkpoints_and_parts_of_one_are_refused(folder: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(folder, tmp_path / "bare"))
    (bare / "tokenizer.json").unlink()
    with pytest.raises(MissingPart, match=r"tokenizer\.json"):
        load(bare)
    torn = Path(shutil.copytree(folder, tmp_path / "torn"))
    checkpoints.alter(torn, "text_model.final_layer_norm.weight", lambda _: None)
    with pytest.raises(MissingPart, match="weights are missing"):
        load(torn).judge("ball", PICTURES)
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    checkpoints.language(other)
    with pytest.raises(UnknownName, match="'bert'"):
        load(other).judge("ball", PICTURES)
