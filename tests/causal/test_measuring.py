"""A causal check where the truth is known: a class that is the mean of one unit, and toybox-net."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.causal_checks import RandomValues, UnitsAsClasses
from workers import registry
from workers.causal.activity import DRAWS, draw_controls, find_activity
from workers.causal.measuring import check_question, measure_causal_effect
from workers.errors import Cancelled, MissingPart, RequestError, UnknownName
from workers.protocols import LabSettings, no_progress
from workers.record.causal import CausalQuestion, CausalReport, read_causal_report
from workers.record.decoding import encode

pytestmark = pytest.mark.usefixtures("one_thread")
IMAGES = 60


def measure(*units: int, model: Any = None, images: int = IMAGES, progress: Any = no_progress, **asked: Any) -> Any:
    model, dataset = model or UnitsAsClasses(), RandomValues(images)
    activations = read_activations(model, dataset)
    question = CausalQuestion(units, **asked)
    return measure_causal_effect(model, "units", question, dataset, range(images), activations, 16, progress)


def read_activations(model: Any, dataset: Any) -> Any:
    pictures = [dataset[at].image for at in range(len(dataset))]
    return model.maps(pictures, ["units"])["units"].amax((2, 3)).numpy()


def means_of(unit: int) -> Any:
    dataset = RandomValues(IMAGES)
    pictures = [dataset[at].image for at in range(IMAGES)]
    return UnitsAsClasses().maps(pictures, ["units"])["units"][:, unit].mean((1, 2)).double().numpy()


def test_ablating_a_unit_takes_its_own_class_down_by_its_mean_and_nothing_else() -> None:
    found: CausalReport = measure(3)
    (only,) = found.everywhere.classes
    assert (only.name, only.number, only.direction) == ("class 0", 0, "falls")
    assert only.change.value == pytest.approx(-means_of(3).mean(), rel=1e-6)
    assert only.change.high is not None
    assert only.change.high < 0
    assert only.control == 0, "other units are read by other classes"
    assert (found.everywhere.falling, found.everywhere.rising, found.everywhere.tested) == (1, 0, 2)
    assert (found.measure, found.everywhere.images, found.references) == ("binary_kl", IMAGES, (0.0,))


def test_doubling_is_the_opposite_of_ablating() -> None:
    ablated, doubled = measure(3), measure(3, factor=2.0)
    assert doubled.everywhere.classes[0].change.value == pytest.approx(-ablated.everywhere.classes[0].change.value)
    assert (doubled.everywhere.rising, doubled.everywhere.classes[0].direction) == (1, "rises")


def test_towards_its_mean_a_unit_keeps_its_mean_and_loses_what_it_tells() -> None:
    found = measure(3, reference="mean")
    assert found.references == pytest.approx((means_of(3).mean(),), rel=1e-6)
    assert found.everywhere.classes[0].change.value == pytest.approx(0, abs=1e-6)
    assert found.everywhere.falling + found.everywhere.rising == 0
    assert found.everywhere.divergence.value > 0, "single images change"


def test_the_tenth_that_activates_it_most_stands_beside_all_images() -> None:
    found = measure(3)
    model, dataset = UnitsAsClasses(), RandomValues(IMAGES)
    best = np.argsort(-read_activations(model, dataset)[:, 3], kind="stable")[:6]
    assert found.most_active.images == 6
    assert found.most_active.classes[0].change.value == pytest.approx(-means_of(3)[best].mean(), rel=1e-6)
    assert found.active_images == IMAGES


def test_control_units_are_live_and_others_and_the_same_for_the_same_seed() -> None:
    found = measure(3)
    assert len(found.draws) == DRAWS
    assert {unit for draw in found.draws for unit in draw} <= {0, 1, 2, 4, 5}
    assert sorted(found.draws) == [(0,), (1,), (2,), (4,), (5,)], "disjoint where there are enough"
    assert measure(3).draws == found.draws
    hit = found.draws.index((0,))
    assert [value > 0 for value in found.everywhere.control.divergences] == [at == hit for at in range(DRAWS)]


def test_a_set_without_enough_others_has_no_control_and_says_so() -> None:
    found = measure(0, 1, 2, 3)
    assert (found.draws, found.everywhere.control.divergences) == ((), ())
    assert found.everywhere.control.why == "only 2 other units of the layer are live"
    assert found.everywhere.classes[0].control is None
    assert found.everywhere.falling == 2


def test_draws_overlap_only_where_units_are_few() -> None:
    disjoint = [unit for draw in draw_controls(np.arange(40), 8, 1) for unit in draw]
    assert len(set(disjoint)) == 40
    few = draw_controls(np.arange(9), 8, 1)
    assert [len(set(draw)) for draw in few] == [8] * DRAWS


@pytest.mark.parametrize(("units", "what"), [((7,), "never active"), ((6,), "equally active"), ((6, 7), "equally")])
def test_units_that_never_vary_give_no_figures(units: tuple[int, ...], what: str) -> None:
    found = measure(*units)
    assert what in found.why
    assert (found.measure, found.everywhere.classes, found.constant) == ("", (), units)


def test_a_unit_that_never_varies_is_named_beside_one_that_does() -> None:
    found = measure(3, 7)
    assert (found.why, found.constant, found.everywhere.falling) == ("", (7,), 1)


def test_classes_that_share_a_probability_have_one_divergence() -> None:
    found = measure(3, model=UnitsAsClasses((3, 0, 1), "softmax"))
    assert found.measure == "kl"
    assert found.everywhere.divergence.value > 0
    assert [each.name for each in found.everywhere.classes] == ["class 0"]


def test_a_model_without_classes_tells_the_change_of_its_output() -> None:
    found = measure(3, model=UnitsAsClasses((3, 0), ""))
    assert (found.measure, found.everywhere.classes, found.everywhere.tested) == ("change", (), 0)
    own = np.stack([means_of(3), means_of(0)], 1)
    variance = np.square(own - own.mean(0)).sum(1).mean()
    assert found.everywhere.divergence.value == pytest.approx(np.square(own[:, 0]).mean() / variance, rel=1e-5)
    assert found.everywhere.same.value is None


def test_a_single_image_has_no_interval_and_no_class_falls() -> None:
    activity = find_activity(np.array([[0.0, 2.0]]), [1])
    assert (activity.constant, activity.top.tolist(), activity.active_images) == ((1,), [True], 1)
    assert "equally active in all 1 probe" in measure(3, images=1).why


@pytest.mark.parametrize(
    ("units", "asked", "says"),
    [
        ((), {}, "No unit is named"),
        ((8,), {}, "no unit 8 in this layer. Name units from 0 to 7"),
        ((-1,), {}, "no unit -1"),
        ((3, 2), {}, "ascending"),
        ((3, 3), {}, "once"),
        (tuple(range(10_000)), {}, "10,000 units are too many"),
        ((3,), {"factor": float("nan")}, "factor nan is out of range"),
        ((3,), {"factor": -1.0}, "factor -1 is out of range"),
        ((3,), {"factor": 10.5}, "from 0 to 10"),
        ((3,), {"factor": 1.0}, "changes nothing"),
        ((3,), {"reference": "median"}, "no reference “median”"),
    ],
)
def test_questions_that_make_no_sense_are_refused(units: tuple[int, ...], asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        check_question(UnitsAsClasses(), "units", CausalQuestion(units, **asked))


def test_what_cannot_be_rewritten_says_why() -> None:
    class NoOutputs(UnitsAsClasses):
        outputs = property()  # type: ignore[assignment]

    with pytest.raises(MissingPart, match="is the output itself"):
        check_question(UnitsAsClasses(), "logits", CausalQuestion((1,)))
    with pytest.raises(UnknownName, match="no layer 'layer9'"):
        check_question(UnitsAsClasses(), "layer9", CausalQuestion((1,)))
    with pytest.raises(MissingPart, match="has no output of its own that follows from units"):
        check_question(NoOutputs(), "units", CausalQuestion((1,)))


@pytest.mark.parametrize("stage", ["Reading the means", "Running"])
def test_it_can_be_stopped(stage: str) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what.startswith(stage) and done:
            raise Cancelled

    with pytest.raises(Cancelled):
        measure(3, reference="mean", progress=stop)


def test_a_report_goes_through_json() -> None:
    found = measure(3)
    assert read_causal_report(encode(found)) == found
    with pytest.raises(ValueError, match="no result of a causal check"):
        read_causal_report({"measure": "kl", "everywhere": 3})


def test_of_toybox_a_unit_holds_up_some_classes_and_not_others(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path, dataset_images=60)
    model = registry.load(registry.VISION_MODELS, "toybox")(settings)
    dataset = registry.load(registry.DATASETS, "toybox")(settings)
    pictures = [dataset[at].image for at in range(60)]
    activations = model.maps(pictures, ["layer4"])["layer4"].amax((2, 3)).numpy()
    weights = read_class_weights(model)
    unit = int(np.argmax(weights.max(0) * activations.mean(0)))
    question = CausalQuestion((unit,))
    found = measure_causal_effect(model, "layer4", question, dataset, range(60), activations, 20, no_progress)
    # A logit is a weighted sum of the maxima of layer4, so the truth is a product
    for each in found.everywhere.classes:
        assert each.change.value == pytest.approx(-weights[each.number, unit] * activations[:, unit].mean(), abs=1e-5)
    assert found.everywhere.classes[0].number == int(np.argmax(weights[:, unit]))


def read_class_weights(model: Any) -> Any:
    with model._slot as network:
        return network.logits.weight.detach().float().numpy()
