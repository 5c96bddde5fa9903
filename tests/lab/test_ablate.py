"""`system.ablate`: the model's own output with the unit changed, as plain JSON, for runs that ask for it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from PIL import Image

from tests.support.causal_checks import RandomValues, UnitsAsClasses
from tests.support.sparse_layers import save_random
from workers.causal.single_images import MAX_CLASSES, describe_changes
from workers.errors import MachineryError, NotFinite, RequestError, ToolError, ToolMisuse
from workers.lab import program_api
from workers.lab.ablation import Ablation
from workers.lab.imaging import placeholder
from workers.lab.laboratory import Laboratory
from workers.lab.memory import ImagesInMemory
from workers.lab.reference import build_reference
from workers.lab.system import System
from workers.protocols import Bounds, LabSettings, no_progress
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox

pytestmark = pytest.mark.usefixtures("one_thread")
UNIT = SystemSpec("unit", "toybox", "layer4", 7)
LATENTS = 64


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    state = tmp_path_factory.mktemp("ablate")
    save_random(state, latents=LATENTS, k=8)
    return Laboratory(LabSettings(state, batch_size=16, dataset_images=40))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ZygoteSandbox]:
    with ZygoteSandbox() as built:
        yield built


def context_of(lab: Laboratory, spec: SystemSpec = UNIT, *, ablation: bool = True, **options: Any) -> Any:
    return lab.experiment_context(spec, ImagesInMemory(), 0, ablation=ablation, **options)


def pictures(lab: Laboratory, count: int) -> list[Image.Image]:
    return [lab.dataset("toybox")[at].image for at in range(count)]


def run(sandbox: ZygoteSandbox, context: Any, program: str) -> Any:
    return sandbox.run(program, context.calls("script"), context.facts, bounds=Bounds(seconds=60))


# --- what is measured -------------------------------------------------------------------------------


def test_a_class_falls_by_what_the_unit_gave_it() -> None:
    model, images = UnitsAsClasses(), RandomValues(5).images
    means = model.maps(images, ["units"])["units"][:, 3].mean((1, 2))
    ablated = describe_changes(model, "units", 3, 0.0, images)
    doubled = describe_changes(model, "units", 3, 2.0, images)
    for mean, less, more in zip(means.tolist(), ablated, doubled, strict=True):
        assert less["falls"] == [["class 0", pytest.approx(-mean, rel=1e-3)]]
        assert more["rises"] == [["class 0", pytest.approx(mean, rel=1e-3)]]
        assert less["rises"] == more["falls"] == []
        assert less["divergence"] > 0
        assert less["same_answer"] is False, "a logit above 0 becomes 0"
        assert more["same_answer"] is True


def test_a_unit_that_no_class_reads_changes_nothing() -> None:
    found = describe_changes(UnitsAsClasses(), "units", 5, 0.0, RandomValues(3).images)
    assert found == [{"falls": [], "rises": [], "same_answer": True, "divergence": 0.0}] * 3


def test_a_model_without_classes_tells_the_relative_change() -> None:
    model, images = UnitsAsClasses((3, 3), scale=""), RandomValues(3).images
    assert describe_changes(model, "units", 3, 0.0, images) == [{"change": 1.0}] * 3
    assert describe_changes(model, "units", 3, 0.5, images) == [{"change": 0.5}] * 3
    assert describe_changes(UnitsAsClasses((7,), scale=""), "units", 3, 0.0, images) == [{"change": None}] * 3


def test_figures_depend_on_the_image_alone(toys: Laboratory) -> None:
    model: Any = toys.model("toybox")
    together = describe_changes(model, "layer4", 7, 0.0, pictures(toys, 6))
    alone = [describe_changes(model, "layer4", 7, 0.0, [each])[0] for each in pictures(toys, 6)]
    for one, other in zip(together, alone, strict=True):
        assert one["same_answer"] == other["same_answer"]
        assert one["divergence"] == pytest.approx(other["divergence"], rel=1e-2, abs=1e-6)


@pytest.mark.parametrize("spec", [UNIT, SystemSpec("latent", "sae:random", "layer4", 3)], ids=["unit", "latent"])
def test_it_is_the_change_of_the_models_own_logits(toys: Laboratory, spec: SystemSpec) -> None:
    """By hand: the unit's map, or the latent's times its row of the decoder, taken out of layer4."""
    system, images = context_of(toys, spec).system, pictures(toys, 8)
    below: Any = toys.model("toybox")
    maps = toys.model(spec.model).maps(images, ["layer4"])["layer4"][:, spec.unit]
    network, _ = save_random(toys.settings.state, "same", latents=LATENTS, k=8)
    row = network.decoder.detach()[spec.unit] if spec.kind == "latent" else torch.eye(below.layers()[-2].units)[7]
    taken = torch.einsum("bhw,u->buhw", maps, row)
    change = below.outputs(images, "layer4", lambda own: own - taken) - below.outputs(images, "layer4")
    found = system.ablate(images)
    assert [each["activation"] for each in found] == system.neuron(images)[0]
    assert any(each["falls"] for each in found)
    for each, logits in zip(found, change, strict=True):
        told = dict((*each["falls"], *each["rises"]))
        assert max(len(each["falls"]), len(each["rises"])) <= MAX_CLASSES
        for name, value in told.items():
            assert value == pytest.approx(float(logits[below.classes.index(name)]), rel=1e-2, abs=1e-4)
        if each["falls"]:
            assert each["falls"][0][1] == pytest.approx(float(logits.min()), rel=1e-2, abs=1e-4)


def test_a_refused_image_is_none_and_the_others_keep_their_places(toys: Laboratory) -> None:
    context = context_of(toys)
    first, second = pictures(toys, 2)
    found = context.system.ablate([first, placeholder(), second])
    assert found[1] is None
    assert [found[0], found[2]] == context.system.ablate([first, second])
    assert context.system.ablate([placeholder()]) == [None]
    assert context.tools.measured == 2


def test_a_masked_image_is_taken_whole(toys: Laboratory) -> None:
    system, images = context_of(toys).system, pictures(toys, 2)
    assert system.ablate(system.neuron(images)[1]) == system.ablate(images)


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (math.nan, r"factor must be a number from 0 to 10, but is of type float \(nan\)"),
        (math.inf, "factor must be a number from 0 to 10"),
        (10**400, "factor must be a number from 0 to 10"),
        ("0", r"factor must be a number from 0 to 10, but is of type str \('0'\)"),
        (True, "factor must be a number from 0 to 10"),
        (None, "factor must be a number from 0 to 10, but is None"),
        ([0], "factor must be a number from 0 to 10, but is of type list"),
        (-1, "The factor -1 is out of range. Give a number from 0 to 10"),
        (11, "The factor 11 is out of range. Give a number from 0 to 10"),
        (1, "The factor 1 changes nothing. Give 0 to ablate, 2 to double"),
    ],
)
def test_a_factor_that_makes_no_sense_is_refused(toys: Laboratory, factor: Any, message: str) -> None:
    context = context_of(toys)
    with pytest.raises(ToolMisuse, match=message):
        context.system.ablate(pictures(toys, 1), factor)
    assert context.tools.measured == 0


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "image_list is empty. Pass a list of 1 to 64 images"),
        (None, "image_list must be a list of images, but is None"),
        ([Image.new("RGB", (8, 8))] * 65, "image_list holds 65 images; one call takes 64 at most"),
        (["bird"], r"image_list\[0\] must be an image, but is the text 'bird'"),
    ],
)
def test_what_is_no_list_of_images_is_refused(toys: Laboratory, images: Any, message: str) -> None:
    with pytest.raises(ToolMisuse, match=message):
        context_of(toys).system.ablate(images)


def test_a_class_cannot_be_ablated_and_the_reason_is_told(toys: Laboratory) -> None:
    system = context_of(toys, SystemSpec("logit", "toybox", "logits", 3)).system
    with pytest.raises(ToolMisuse, match=r"is the output itself, so nothing follows.*Choose an earlier layer"):
        system.ablate(pictures(toys, 1))


def test_a_model_without_an_output_is_told_apart() -> None:
    class Sums:
        name, revision = "sums", "1"
        layers = UnitsAsClasses().layers

    ablation = Ablation(Sums(), SystemSpec("unit", "sums", "units", 3), 4)  # type: ignore[arg-type]
    with pytest.raises(ToolMisuse, match="sums has no output of its own that follows from units"):
        ablation.check()


class Overflowing(UnitsAsClasses):
    """Half precision: a large factor leaves the range of its numbers."""

    def outputs(self, images: Any, layer: str, rewrite: Any = None) -> torch.Tensor:
        found = super().outputs(images, layer, rewrite)
        if rewrite is not None and self.scale:
            raise NotFinite("the output of units gives values that are no finite numbers")
        return found if rewrite is None else found * math.inf


@pytest.mark.parametrize("scale", ["sigmoid", ""])
def test_a_factor_that_overflows_the_model_ends_the_call_and_not_the_run(scale: str) -> None:
    with pytest.raises(RequestError, match="With the factor 10 the output of units is too large") as refused:
        describe_changes(Overflowing(scale=scale), "units", 3, 10.0, RandomValues(1).images)
    assert not isinstance(refused.value, MachineryError)


# --- for runs that ask for it -----------------------------------------------------------------------


def test_without_the_option_the_call_says_how_to_get_it(toys: Laboratory, sandbox: ZygoteSandbox) -> None:
    context = context_of(toys, ablation=False)
    with pytest.raises(ToolError, match=r"not part of this run.*“Ablation” ticked.*--ablation"):
        context.system.ablate(pictures(toys, 1))
    result = run(sandbox, context, "system.ablate([])\n")
    assert result.status == "tool_error"
    assert "system.ablate is not part of this run" in result.error


def test_the_reference_tells_of_it_only_with_the_option() -> None:
    plain, full = build_reference(), build_reference(ablation=True)
    assert "ablate" not in plain
    assert "### system.ablate(image_list: list[Image], factor: float = 0) -> list[dict[str, Any] | None]" in full
    assert len(full) - len(plain) < 900, "it is paid for in every round"


def test_the_example_of_the_reference_runs(toys: Laboratory, sandbox: ZygoteSandbox) -> None:
    reference = build_reference(ablation=True).partition("### system.ablate(")[2]
    example = reference.partition("```python\n")[2].partition("```")[0]
    result = run(sandbox, context_of(toys), example)
    assert (result.status, result.error) == ("ok", "")
    assert result.output.count("'same_answer'") == 2


PROGRAM = """
import json
images = tools.text2image(["a red ball on grass"])
print(json.dumps(system.ablate(images * 2, factor=2.0), allow_nan=False))
try:
    system.ablate(images, factor=float("nan"))
except ToolError as error:
    print(error)
"""


def test_programs_get_plain_json_and_errors_that_they_can_catch(toys: Laboratory, sandbox: ZygoteSandbox) -> None:
    result = run(sandbox, context_of(toys), PROGRAM)
    assert (result.status, result.error) == ("ok", "")
    told, refused = result.output.strip().splitlines()
    first, second = json.loads(told)
    assert first == second
    assert first.keys() == {"activation", "falls", "rises", "same_answer", "divergence"}
    assert "factor must be a number from 0 to 10" in refused
    assert [call.name for call in result.calls].count("system.ablate") == 2


def test_what_was_measured_is_not_measured_again(toys: Laboratory) -> None:
    asked: list[int] = []
    subject = toys.subject(UNIT)

    class Counting:
        spec = subject.spec

        def respond(self, images: Any) -> Any:
            asked.append(len(images))
            return subject.respond(images)

    images = pictures(toys, 3)
    system = System(Counting(), ImagesInMemory(), no_progress, toys.ablation(UNIT))  # type: ignore[arg-type]
    system.neuron(images)
    system.ablate(images)
    assert asked == [3]


def test_functions_have_no_such_call() -> None:
    assert "ablate" not in {name for names in program_api.FUNCTION_NAMES.values() for name in names}
