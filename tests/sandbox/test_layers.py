"""The layers of the jail: what each one reports, and that no program runs where a required one is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.older_kernel import CALLS
from workers.protocols import Bounds
from workers.sandbox import jail
from workers.sandbox.host import ZygoteSandbox

REQUIRED = [name for name in CALLS if name != "namespaces"]

TRY = """
import json
from tests.support.sandbox_lab import children_of
from workers.errors import SandboxBroke
from workers.protocols import Bounds
from workers.sandbox import jail
from workers.sandbox.host import ZygoteSandbox

told = {"summary": jail.summary(jail.layers()), "refusal": jail.refusal(jail.layers())}
with ZygoteSandbox() as sandbox:
    try:
        told["output"] = sandbox.run("print('ran')", {}, {}, bounds=Bounds()).output
    except SandboxBroke as error:
        told["error"] = str(error)
program = '''
import os, time
print("ran")
try:
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    print("forked")
except OSError:
    pass
'''
with ZygoteSandbox(override=True) as sandbox:
    told["override"] = sandbox.run(program, {}, {}, bounds=Bounds()).output
    told["left"] = children_of(sandbox)
print(json.dumps(told))
"""


def tried_without(layer):
    """What is told where the kernel has no such layer."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/support/older_kernel.py"), layer, TRY],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_each_layer_is_on_here_or_says_what_to_do():
    found = jail.layers()
    assert [layer.name for layer in found] == ["namespaces", "no_new_privs", "rlimits", "landlock", "seccomp"]
    assert [layer.name for layer in found if not layer.required] == ["namespaces"]
    assert all(layer.detail for layer in found)
    assert all(layer.remedy for layer in found if layer.state == "missing")


def test_the_record_of_a_run_counts_the_layers():
    on = jail.SandboxLayer("landlock", True, "on", "version 7")
    off = jail.SandboxLayer("namespaces", False, "missing", "none", "none")
    assert jail.summary([on, on]) == "2 of 2 layers"
    assert jail.summary([on, off]) == "1 of 2 layers, without namespaces"
    assert jail.refusal([on, off]) == ""


@pytest.mark.parametrize("kernel", REQUIRED)
def test_no_program_runs_without_a_required_layer(kernel):
    layer = kernel.split()[0]
    told = tried_without(kernel)
    assert "output" not in told
    assert f"its layer {layer} is missing: " in told["error"]
    assert "MAIA_SANDBOX_OVERRIDE=yes" in told["error"]
    assert told["refusal"] in told["error"]
    assert f"without {layer}" in told["summary"].replace("namespaces and ", "")
    assert told["override"].startswith("ran\n")


def test_programs_run_without_namespaces():
    told = tried_without("namespaces")
    assert (told["refusal"], told["output"]) == ("", "ran\n")
    assert told["summary"] == "4 of 5 layers, without namespaces"


def test_what_a_program_leaves_behind_is_killed_where_nothing_kept_it_from_that():
    told = tried_without("seccomp")
    assert (told["override"], told["left"]) == ("ran\nforked\n", [])


def test_a_lowered_limit_of_the_worker_is_kept():
    words = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
from workers.protocols import Bounds
from workers.sandbox.host import ZygoteSandbox
with ZygoteSandbox() as sandbox:
    print(sandbox.run("import resource; print(resource.getrlimit(7))", {}, {}, bounds=Bounds()).output)
"""
    done = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "(40, 40)"


def test_only_libraries_can_be_read_and_none_of_our_own_folders():
    paths = jail.readable()
    assert all(path.is_absolute() and path.exists() for path in paths)
    assert not any(ROOT.is_relative_to(path) for path in paths)
    assert not any(path.is_relative_to(ROOT / name) for path in paths for name in ("workers", "var", "tests"))
    with ZygoteSandbox() as sandbox:
        program = "import statistics, sqlite3, ssl, PIL.WebPImagePlugin, numpy.fft, msgspec\nprint('imported')"
        assert sandbox.run(program, {}, {}, bounds=Bounds()).output == "imported\n"


def test_the_worker_itself_stays_free():
    before = Path("/proc/self/status").read_text()
    assert jail.layers()
    os.close(os.open(__file__, os.O_RDONLY))
    assert [line for line in before.splitlines() if line.startswith(("Seccomp:", "NoNewPrivs:"))] == [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith(("Seccomp:", "NoNewPrivs:"))
    ]
