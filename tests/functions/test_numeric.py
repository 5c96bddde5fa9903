"""Numeric functions: a key says everything, the code is what is computed, variants and mix are as published."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter

import pytest

from workers.errors import ToolMisuse
from workers.functions.black_box import Noise
from workers.functions.numeric import SCORED_POINTS, create_numeric, draw_noise, measure_nmse
from workers.functions.numeric_atoms import NUMERIC_ATOMS
from workers.protocols import Bounds

N = 1_000
POINTS = list(SCORED_POINTS)


@pytest.fixture(scope="module")
def boxes():
    return [create_numeric(seed) for seed in range(N)]


def of(boxes, variant):
    return [box for box in boxes if box.truth.variant == variant]


def run_code(sandbox, codes, inputs):
    """What texts compute in the sandbox, an interpreter that knows nothing of this room."""
    program = (
        f"results = []\nfor code in {codes!r}:\n    own = {{}}\n    exec(code, own)\n"
        f"    results.append([own['f'](x) for x in {inputs!r}])\nprint(json.dumps(results))"
    )
    result = sandbox.run(program, {}, {}, bounds=Bounds(output_chars=20_000_000))
    assert result.status == "ok", result.error
    return json.loads(result.output)


def equal(one, two):
    return one == two or (math.isnan(one) and math.isnan(two))


def test_the_code_of_each_atom_gives_what_a_call_gives(sandbox, boxes):
    clean = of(boxes, "clean")
    atoms = {name for box in clean if len(box.truth.atoms) == 1 for name in box.truth.atoms}
    assert atoms == {atom.name for atom in NUMERIC_ATOMS}
    for box, outputs in zip(clean, run_code(sandbox, [box.truth.code for box in clean], POINTS), strict=True):
        assert all(map(equal, box.call(POINTS), outputs)), box.truth.code


def test_the_code_of_other_variants_is_what_they_compute_without_noise(sandbox, boxes):
    others = [box for box in boxes[:150] if box.truth.variant != "clean"]
    for box, outputs in zip(others, run_code(sandbox, [box.truth.code for box in others], POINTS), strict=True):
        assert all(map(equal, box.evaluate(POINTS), outputs)), box.key


def test_a_function_follows_from_its_key(boxes):
    for box in boxes[:60]:
        again = create_numeric(int(box.key.partition(":")[2]))
        assert again == box
        assert list(map(str, again.call(POINTS, 7))) == list(map(str, box.call(POINTS, 7)))
    assert len({box.truth.code for box in boxes}) > 0.98 * N


@pytest.mark.parametrize(
    ("variant", "share"), [("clean", 0.483), ("corrupted", 0.191), ("noised", 0.176), ("approximated", 0.15)]
)
def test_the_mix_of_variants_is_the_published_one(boxes, variant, share):
    assert abs(len(of(boxes, variant)) - N * share) < 3 * math.sqrt(N * share * (1 - share))


def test_fifteen_in_a_hundred_are_made_of_two_atoms(boxes):
    composed = [box for box in boxes if len(box.truth.atoms) == 2]
    assert abs(len(composed) - 150) < 3 * math.sqrt(N * 0.15 * 0.85)
    signs = Counter("product" if "first * second" in box.truth.code else "sum" for box in composed)
    assert min(signs["product"], signs["sum"]) > len(composed) / 3


def test_nothing_raises_and_only_poles_roots_and_logarithms_are_undefined(boxes):
    partial = {"square root", "logarithm", "reciprocal"}
    inputs = [i / 4 for i in range(-512, 488)]
    for box in boxes:
        outputs = box.call(inputs) + box.call([*range(-128, 129)])
        undefined = sum(not math.isfinite(value) for value in outputs)
        assert undefined == 0 or partial & set(box.truth.atoms), box.truth


@pytest.mark.parametrize("seed", range(5))
def test_fresh_functions_answer_in_the_whole_domain(seed):
    for number in range(100):
        box = create_numeric(10_000 * (seed + 1) + number)
        outputs = box.call(POINTS)
        assert all(isinstance(value, float) for value in outputs)
        assert sum(map(math.isfinite, outputs)) >= 127
        assert box.family == box.key.partition(":")[0] == "numeric"


# --- variants ---------------------------------------------------------------------------------------


def test_a_corrupted_function_answers_near_its_mean_inside_and_as_before_outside(boxes):
    corrupted = of(boxes, "corrupted")
    assert {box.truth.corruption.side for box in corrupted} == {"smaller", "larger", "inside"}
    spreads = []
    for box in corrupted:
        c = box.truth.corruption
        inside = [x for x in POINTS if c.low < x < c.high]
        outside = [x for x in POINTS if not c.low < x < c.high]
        assert 0.08 < len(inside) / len(POINTS) < 0.42
        assert {"smaller": math.isinf(c.low), "larger": math.isinf(c.high), "inside": c.high - c.low < 110}[c.side]
        assert set(box.evaluate(inside)) == {c.mean}
        assert all(map(equal, box.call(outside), box.evaluate(outside)))
        spreads += [value - c.mean for value in box.call(inside)]
    assert abs(statistics.fmean(spreads)) < 0.01
    assert 0.095 < statistics.stdev(spreads) < 0.105


@pytest.mark.parametrize(("kind", "mean", "variance"), [("normal", 0, 1), ("uniform", 0, 1 / 3), ("poisson", 1, 1)])
def test_noise_is_what_its_name_says(boxes, kind, mean, variance):
    noised = [box for box in of(boxes, "noised") if box.truth.noise == Noise(kind)]
    box = next(box for box in noised if all(abs(value) < 1e6 for value in box.evaluate([*POINTS, *range(20)])))
    added = [n - t for x in range(20) for n, t in zip(box.call([x] * 200, x), box.evaluate([x] * 200), strict=True)]
    assert abs(statistics.fmean(added) - mean) < 0.08
    assert abs(statistics.variance(added) - variance) < 0.12
    if kind == "uniform":
        assert max(map(abs, added)) <= 1 + 1e-9
    if kind == "poisson":
        assert all(abs(value - round(value)) < 1e-6 for value in added)


def test_noise_is_fresh_in_each_call_and_the_same_in_a_repeated_run(boxes):
    box = of(boxes, "noised")[0]
    assert (
        len({box.call([3.0], number)[0] for number in range(20)} if box.truth.noise.kind != "poisson" else {0, 1}) > 1
    )
    assert len(set(box.call([3.0] * 50, 1))) > 1
    assert box.call([3.0, 4.0], 5) == box.call([3.0, 4.0], 5)


def test_a_network_is_close_to_its_function_but_not_equal(boxes):
    errors = [box.truth.approximation_error for box in of(boxes, "approximated")]
    assert statistics.median(errors) < 0.01
    assert sum(error < 0.1 for error in errors) > 0.8 * len(errors)
    assert all(error > 0 for error in errors)
    assert all(box.truth.approximation_error is None for box in boxes if box.truth.variant != "approximated")


def test_poisson_noise_differs_from_call_to_call():
    rng = random.Random(1)
    assert {draw_noise(Noise("poisson"), rng) for _ in range(200)} >= {0.0, 1.0, 2.0}


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (3.5, "The inputs are float: give a list of numbers, such as"),
        ("12", "The inputs are str: give a list"),
        ([], "0 inputs: give a list of 1 to 1,000"),
        ([1.0] * 1_000_000, "1,000,000 inputs: give a list of 1 to 1,000"),
        ([1.0, "two"], "Input 1 is str: give a list of numbers"),
        ([None], "Input 0 is NoneType"),
        ([True], "Input 0 is bool"),
        ([[1.0]], "Input 0 is list"),
        ([1.0, math.nan], "Input 1 is nan, which is not from -1,000,000 to 1,000,000"),
        ([-math.inf], "Input 0 is -inf, which"),
        ([10**400], "Input 0 is a whole number of 1329 bits"),
    ],
)
def test_wrong_inputs_are_refused_by_what_came_and_what_is_wanted(boxes, inputs, words):
    with pytest.raises(ToolMisuse) as refused:
        boxes[0].call(inputs)
    assert words in str(refused.value)


def test_nmse_skips_what_is_undefined_and_refuses_infinite_estimates():
    assert measure_nmse([1.0, math.nan, 2.0], [1.0, 5.0, 2.0]) == 0
    assert measure_nmse([1.0, 2.0], [0.0, 0.0]) == 1
    assert measure_nmse([3.0, 4.0], [3.0, 3.5]) == pytest.approx(0.01)
    assert measure_nmse([1.0, 2.0], [1.0, math.inf]) == math.inf
    assert measure_nmse([1.0, 2.0], [1.0, 1e300]) > 1e100
    assert measure_nmse([1e200, 1e200], [1e200, 0.0]) == pytest.approx(0.5)
    assert measure_nmse([0.0], [0.0]) == 0
    assert measure_nmse([0.0], [1.0]) == math.inf
