"""Ablated toolsets: what they lack is neither told nor served, and nothing tells of it by another way."""

from __future__ import annotations

import pytest

from tests.support.tiny_lab import tiny_bench
from workers import registry
from workers.errors import ToolError
from workers.lab.program_api import NAMES
from workers.lab.reference import build_reference

ABLATIONS = [key for key, each in registry.TOOLSETS.items() if each.lacks]


@pytest.mark.parametrize("key", ABLATIONS)
def test_the_reference_is_silent_on_what_a_toolset_lacks(key: str) -> None:
    lacks = registry.TOOLSETS[key].lacks
    text = build_reference("It draws toys.", "It changes toys.", lacks, extras="It knows cranes.")
    assert not [name for name in lacks if f"tools.{name}" in text]
    for name in {"dataset_exemplars", "text2image", "edit_images", "log_experiment"} - lacks:
        assert f"### tools.{name}(" in text
    assert ("It draws toys." in text) == ("text2image" not in lacks)
    assert ("It changes toys." in text) == ("edit_images" not in lacks)
    assert ("## What the game engine can draw\n\nIt knows cranes." in text) == ("game_engine" not in lacks)
    assert "What the game engine can draw" not in build_reference()
    assert "This run is without some tools" in text
    assert "without some tools" not in build_reference()


@pytest.mark.parametrize("key", ABLATIONS)
def test_names_that_a_toolset_lacks_are_names_of_tools(key: str) -> None:
    assert registry.TOOLSETS[key].lacks <= set(NAMES["tools"])
    assert registry.TOOLSETS[key].is_ablation


@pytest.mark.parametrize("style", ["function", "script"])
def test_a_call_of_what_is_lacking_gets_an_error(lab, monkeypatch, style) -> None:
    whole = tiny_bench(lab)
    lacks = frozenset({"dataset_exemplars", "edit_images"})
    monkeypatch.setitem(registry.TOOLSETS, "less", registry.Toolset("Less", "tiny", "tiny", "tiny", lacks))
    context = tiny_bench(lab, toolset="less")
    calls = context.calls(style)
    assert set(calls) == set(whole.calls(style))
    for name in lacks:
        with pytest.raises(ToolError, match=f"lacks tools.{name}"):
            calls[f"tools.{name}"](None, ["red"])
    assert len(calls["tools.text2image"](["red"])) == 1
    assert whole.tools.exemplar_mean is not None
    assert context.tools.exemplar_mean is None, "it would tell of the exemplars"
