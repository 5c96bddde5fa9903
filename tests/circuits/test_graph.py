"""The graph of a planted circuit is the one that was planted: edges with their signs, effects, what is explained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.circuits.graph_drawing import judge_effect
from tests.support.planted_circuits import NumberImages, PlantedGraph
from workers.circuits.graph import MAX_IMAGES, measure_graph
from workers.circuits.tracing import MemberTrace
from workers.errors import Cancelled, MissingPart, RequestError, UnknownName
from workers.protocols import no_progress
from workers.record.circuit_graphs import CircuitGraphReport, GraphEdge, read_circuit_graph
from workers.record.circuits import CircuitMember
from workers.record.decoding import encode

IMAGES = NumberImages(300)


def members(*named: str) -> list[CircuitMember]:
    """Such as "low 0"."""
    return [CircuitMember("graph", layer, int(unit)) for layer, unit in map(str.split, named)]


def measure(*named: str, target: str = "seen", images: int = 300, **options: Any) -> CircuitGraphReport:
    trace = MemberTrace(options.pop("model", None) or PlantedGraph(), {}, members(*named))
    return measure_graph(trace, IMAGES, range(images), target, 32, options.pop("progress", no_progress))


def edge(report: CircuitGraphReport, source: int, target: int) -> GraphEdge:
    return next(each for each in report.edges if (each.source, each.target) == (source, target))


def test_edges_are_those_that_were_planted() -> None:
    report = measure("low 0", "low 1", "low 2", "high 0", "high 1")
    assert {(each.source, each.target) for each in report.edges} == {(s, t) for s in (0, 1, 2) for t in (3, 4)}
    assert {(each.source, each.target) for each in report.edges if each.is_clear} == {(0, 3), (1, 4), (2, 3)}
    strong, negative, none = edge(report, 0, 3), edge(report, 2, 3), edge(report, 1, 3)
    assert judge_effect(strong.effect) == "more"
    assert (none.effect.value, none.effect.low) == (0, None)
    # Unit 2 is weak where the circuit is strong, and still takes away
    assert judge_effect(negative.effect) == "less"


def test_an_edge_is_the_weight_times_what_the_earlier_one_has_above_its_mean() -> None:
    model = PlantedGraph()
    report = measure("low 0", "high 0", model=model)
    maps = {name: each.amax((2, 3)).numpy() for name, each in model.maps(IMAGES._images, ["low", "high"]).items()}
    low, high = maps["low"][:, 0].astype(float), maps["high"][:, 0].astype(float)
    active = np.argsort(-(low / low.std() + high / high.std()), kind="stable")[:MAX_IMAGES]
    above = low[active][low[active] > low.mean()] - low.mean()
    expected = above.mean() / high.std()
    assert edge(report, 0, 1).effect.value == pytest.approx(expected, rel=1e-4)
    assert report.nodes[0].effect.value == pytest.approx(2 * above.mean(), rel=1e-4)
    assert report.nodes[0].mean == pytest.approx(low.mean(), rel=1e-5)
    assert (report.looked, report.images) == (300, 200)


def test_a_member_that_speaks_against_the_class_has_a_negative_effect() -> None:
    report = measure("low 1", "high 1")
    assert [judge_effect(each.effect) for each in report.nodes] == ["less", "less"]
    assert judge_effect(edge(report, 0, 1).effect) == "more"


def test_a_circuit_of_all_that_matters_is_faithful_and_complete() -> None:
    whole = measure("low 0", "low 1", "low 2", "high 0", "high 1")
    assert whole.faithfulness.value == pytest.approx(1, abs=1e-4)
    assert whole.completeness.value == pytest.approx(0, abs=1e-4)
    part = measure("low 0", "high 0")
    assert part.faithfulness.value != pytest.approx(1, abs=0.01)
    assert measure("low 3", "high 2").faithfulness.value == pytest.approx(0, abs=1e-4)


def test_without_a_class_it_is_the_one_that_is_moved_most() -> None:
    report = measure("low 0", "high 0", target="")
    assert (report.class_number, report.class_name, report.was_chosen) == (0, "seen", True)
    assert not measure("low 0", target="1").was_chosen
    assert measure("low 0", target="1").class_name == "other"


def test_dead_and_constant_members_have_no_edges_into_them_and_no_effect() -> None:
    report = measure("low 0", "low 3", "high 0", "high 2")
    assert [each.is_constant for each in report.nodes] == [False, True, False, True]
    assert {each.target for each in report.edges} == {2}
    for effect in (edge(report, 1, 2).effect, report.nodes[1].effect):
        assert (effect.value, effect.why) == (None, "never more active than on average in these images")


def test_one_layer_has_no_edges_and_a_class_is_only_reached() -> None:
    assert measure("low 0", "low 1").edges == ()
    report = measure("low 0", "high 0", "logits 0")
    assert report.nodes[2].effect.why == "a class is the output itself"
    assert {(each.source, each.target) for each in report.edges if each.is_clear} == {(0, 1), (0, 2), (1, 2)}
    assert "nothing follows" in measure("logits 0").why


def test_each_member_takes_one_pass() -> None:
    model = PlantedGraph()
    batches = -(-300 // 32) + (1 + 1 + 3 + 2) * -(-200 // 32)
    measure("low 0", "low 1", "high 0", model=model)
    assert model.passes == batches


def test_what_cannot_be_measured_is_told() -> None:
    with pytest.raises(RequestError, match="no class 'unicorn'"):
        measure("low 0", target="unicorn")
    with pytest.raises(RequestError, match="7 probe images are too few: 8"):
        measure("low 0", images=7)
    with pytest.raises(UnknownName, match="layer9"):
        measure("layer9 0")
    with pytest.raises(RequestError, match="units from 0 to 3, and no 4"):
        measure("low 4")
    model: Any = type("Bare", (), {"name": "bare", "layers": PlantedGraph.layers})()
    with pytest.raises(MissingPart, match="bare cannot be read in one layer"):
        MemberTrace(model, {}, [])
    with pytest.raises(RequestError, match="at most 64 members, and this circuit has 65"):
        measure(*["low 0"] * 65)


def test_it_reports_and_stops_in_the_middle() -> None:
    said: list[str] = []

    def stop(what: str, done: int, total: int) -> None:
        said.append(what)
        if what == "Holding member 2 of 2" and done:
            raise Cancelled

    with pytest.raises(Cancelled):
        measure("low 0", "high 0", progress=stop)
    assert list(dict.fromkeys(said))[:2] == ["Reading the members", "Reading the most active images"]


def test_what_is_kept_is_read_again_and_odd_rows_are_refused() -> None:
    report = measure("low 0", "high 0")
    kept = encode(report)
    assert read_circuit_graph(kept) == report
    for odd in ({"nodes": 3}, kept | {"edges": [{"source": 9, "target": 0, "effect": {}}]}, []):
        with pytest.raises(ValueError, match="no graph of a circuit"):
            read_circuit_graph(odd)
