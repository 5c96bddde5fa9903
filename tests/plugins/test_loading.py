"""Which plug-ins are loaded, and what is told of one that cannot be: it takes no other down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plugin_files import NETWORK, plugged_in, write_plugin
from workers import registry
from workers.errors import MissingPart
from workers.plugins.loading import find_origin
from workers.protocols import LabSettings

TAKEN = 'def register(maia):\n    maia.dataset("fresh", "Fresh", list)\n    maia.vision_model("{}", "Mine", list)\n'
BAD = {
    "import": ("x = 1\nraise ValueError('three')\n", "ValueError: three (line 2)"),
    "exit": ("import sys\nsys.exit(3)\n", "it raised SystemExit(3)"),
    "syntax": ("def register(maia:\n", "SyntaxError"),
    "nothing": ("def register(maia):\n    pass\n", "its function `register` registers nothing"),
    "no function": ("x = 1\n", "it has no function `register(maia)`"),
    "taken": (TAKEN.format("toybox"), "it registers the vision model 'toybox', which belongs to MAIA Web itself"),
    "family": (TAKEN.format("hf:"), "it registers the vision model 'hf:', which belongs to MAIA Web itself"),
    "key": (TAKEN.format("../x"), "'../x' is no key of a vision model"),
    "twice": (TAKEN.format("a") + '    maia.vision_model("a", "A", list)\n', "it registers a key twice"),
    "label": ('def register(maia):\n    maia.dataset("a", "", list)\n', "The dataset 'a' needs a label"),
    "load": ('def register(maia):\n    maia.dataset("a", "A", 7)\n', "needs a function that loads it, not 7"),
    "toolset": (
        'def register(maia):\n    maia.toolset("t", "T", generator="gone")\n',
        "its toolset 't' names the generator 'gone', and there is none",
    ),
    "system": ('def register(maia):\n    maia.system("conv", "C", list)\n', "the system 'conv', which belongs to MAIA"),
    "hangs": ("import threading\nthreading.Event().wait()\n", "it did not finish loading in 1 s"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_plug_in_that_cannot_be_used_adds_nothing_and_stops_no_other(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, told = BAD[kind]
    before = {name: dict(getattr(registry, name)) for name in ("VISION_MODELS", "DATASETS", "SYSTEMS", "TOOLSETS")}
    bad, good = write_plugin(tmp_path, text, "bad.py"), write_plugin(tmp_path, NETWORK, "good.py")
    with plugged_in(bad, good, seconds=1 if kind == "hangs" else 30) as (first, second):
        assert told in first.problem
        assert first.problem in caplog.text
        assert bad in first.problem
        assert first.keys == ()
        if kind != "hangs":  # one second may be too little to import PyTorch
            assert (second.problem, second.keys) == ("", ("vision model our-net",))
        assert set(registry.VISION_MODELS) <= {*before["VISION_MODELS"], "our-net"}
        assert all(dict(getattr(registry, name)) == before[name] for name in ("DATASETS", "SYSTEMS", "TOOLSETS"))
    assert {name: dict(getattr(registry, name)) for name in before} == before


def test_two_plug_ins_with_one_key_are_both_named(tmp_path: Path) -> None:
    first, second = write_plugin(tmp_path, NETWORK, "a.py"), write_plugin(tmp_path, NETWORK + "\n", "b.py")
    with plugged_in(first, second) as (kept, refused):
        assert kept.problem == ""
        assert second in refused.problem
        assert f"which belongs to the plug-in {first}" in refused.problem
        origin = find_origin(registry.VISION_MODELS, "our-net")
        assert origin is not None
        assert (origin.path, origin.version) == (first, kept.version)


def test_a_file_that_is_not_there_and_a_module_that_is_not_installed_are_told(tmp_path: Path) -> None:
    with plugged_in(str(tmp_path / "gone.py"), "no_such.module", "not a name", str(tmp_path)) as reports:
        told = [each.problem for each in reports]
    assert "it cannot be read (No such file or directory)" in told[0]
    assert "Python finds no such module" in told[1]
    assert "neither a path of a .py file nor a module's dotted name" in told[2]
    assert "Is a directory" in told[3]


def test_a_module_and_an_entry_point_of_a_package_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(tmp_path / "their_lab", "", "__init__.py")
    write_plugin(tmp_path / "their_lab", 'def register(maia):\n    maia.dataset("ours", "Ours", list)\n')
    write_plugin(tmp_path / "their_lab", 'def add(maia):\n    maia.dataset("theirs", "Theirs", list)\n', "more.py")
    about = tmp_path / "their_lab-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: our-lab\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text("[maia_web.plugins]\nmore = their_lab.more:add\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with plugged_in("their_lab.parts") as (named, installed):
        assert (named.path, named.keys) == (str(tmp_path / "their_lab" / "parts.py"), ("dataset ours",))
        assert (installed.name, installed.version, installed.keys) == ("more", "2.5", ("dataset theirs",))
        assert {"ours", "theirs"} <= set(registry.DATASETS)


SLOW = """
import time
waited = []

def load(settings):
    time.sleep(2.5)
    return "there"

def fail(settings):
    raise OSError("no disk")

def register(maia):
    maia.dataset("slow", "Slow", load)
    maia.dataset("fails", "Fails", fail, missing=lambda settings: "a disk")
    maia.dataset("own:", "Family", lambda settings, name: name * 2)
"""


def test_a_part_that_takes_too_long_is_told_and_waited_for_again(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path)
    with plugged_in(write_plugin(tmp_path, SLOW), seconds=2) as (report,):
        assert report.problem == ""
        load = registry.load(registry.DATASETS, "slow")
        with pytest.raises(MissingPart, match=r"'slow' of the plug-in .* did not finish loading in 2 s"):
            load(settings)
        assert load(settings) == "there"  # the same call, not a second one
        with pytest.raises(
            MissingPart, match=r"'fails' of the plug-in .*parts.py.* cannot be loaded: OSError: no disk"
        ):
            registry.load(registry.DATASETS, "fails")(settings)
        assert registry.missing(registry.DATASETS, "fails", settings) == "a disk"
        assert registry.missing(registry.DATASETS, "slow", settings) == ""
        assert registry.load(registry.DATASETS, "own:x")(settings) == "xx"
