"""The probe of a dataset that makes fresh images: no exemplar can be among them; measured once and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workers.errors import MissingPart
from workers.lab.imaging import image_key
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.toybox.dataset import ToyboxScenes


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(LabSettings(tmp_path_factory.mktemp("probe"), dataset_images=24))


def test_fresh_scenes_are_none_of_the_dataset(tmp_path: Path) -> None:
    scenes = ToyboxScenes(tmp_path, 12)
    fresh = scenes.held_out("probe")
    tried = scenes.held_out("development")
    assert len(fresh) == 12  # no more than the dataset has where a small one is wanted
    own = {image_key(scenes[at].image) for at in range(12)}
    probe, development = ({image_key(each[at].image) for at in range(12)} for each in (fresh, tried))
    assert len(own | probe | development) == 36


def test_activations_are_what_the_system_answers(laboratory: Laboratory) -> None:
    probe = laboratory.held_out("toybox", "toybox", "probe")
    positions, values = probe.activations("layer4")
    assert values.shape == (24, 96)
    maps = laboratory.model("toybox").maps([probe.picture(int(positions[3])).image], ["layer4"])["layer4"]
    assert np.allclose(values[3], maps.amax((2, 3)).numpy()[0], atol=1e-5)


def test_what_was_measured_is_read_again(laboratory: Laboratory) -> None:
    laboratory.held_out("toybox", "toybox", "probe").activations("layer4")
    told: list[str] = []
    again = Laboratory(laboratory.settings).held_out("toybox", "toybox", "probe")
    positions, _ = again.activations("layer4", progress=lambda what, done, total: told.append(what))
    assert (len(positions), told) == (24, [])


def test_a_dataset_of_exemplars_alone_has_no_natural_frequency(laboratory: Laboratory) -> None:
    probe = laboratory.held_out("toybox", "toybox", "probe")

    class Published(ToyboxScenes):
        def published(self, layer: str) -> None:
            """As datasets of published exemplars have."""

    other = type(probe)(
        laboratory.settings,
        laboratory.model("toybox"),
        laboratory.dataset("toybox"),
        laboratory.index("toybox", "toybox"),
        "probe",
    )
    other._is_fresh = False
    other.images = Published(laboratory.settings.state, 24)
    with pytest.raises(MissingPart, match="exemplars alone"):
        other.activations("layer3")
