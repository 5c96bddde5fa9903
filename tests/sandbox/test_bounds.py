"""What bounds a program."""

import time

import pytest

from tests.support.sandbox_lab import children_of
from workers.errors import Cancelled
from workers.protocols import Bounds

# --- bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)",
        "sum(range(10**12))",
        "while True: print()",
    ],
)
def test_it_stops_a_program_that_does_not_end(run, sandbox, loop):
    result = run("print('before')\n" + loop, bounds=Bounds(seconds=1))
    assert result.status == "timeout"
    assert "1 s of its own time" in result.error
    assert result.output.startswith("before\n")
    assert children_of(sandbox) == []


def test_it_does_not_count_the_time_inside_tools(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: time.sleep(1.5)
    result = run("tools.text2image([])\nprint('done')", bounds=Bounds(seconds=1.2))
    assert (result.status, result.output) == ("ok", "done\n")
    assert result.tool_seconds >= 1.5
    assert result.calls[0].seconds >= 1.5


def test_it_bounds_the_time_inside_tools(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: time.sleep(0.05)
    result = run("while True: tools.text2image([])", bounds=Bounds(tool_seconds=0.12))
    assert result.status == "timeout"
    assert "tools took more than 0.12 s" in result.error
    took = [each.seconds for each in result.calls]
    assert sum(took[:-1]) <= 0.12 < sum(took)


@pytest.mark.parametrize(
    "program",
    [
        "print('x' * 10**8)",
        "for _ in range(10**5): print('x' * 999)",
        "import sys\nfor _ in range(100): sys.stderr.write('x' * 10**6)",
    ],
)
def test_it_cuts_output_and_says_so(run, program):
    result = run(program, bounds=Bounds(output_chars=5000))
    assert result.status == "ok"
    assert len(result.output) == 5000
    assert result.output_truncated


def test_it_does_not_call_output_cut_that_just_fits(run):
    result = run("print('é' * 99)", bounds=Bounds(output_chars=100))
    assert (result.output, result.output_truncated) == ("é" * 99 + "\n", False)


def test_it_merges_standard_output_and_error_in_order(run):
    program = (
        "import sys\nprint('a')\nprint('b', file=sys.stderr)\nsys.stdout.buffer.write(b'c\\xff')\nprint('\\ud800')"
    )
    assert run(program).output == "a\nb\nc\ufffd\\ud800\n"


@pytest.mark.parametrize(
    "program",
    [
        "x = []\nwhile True: x.append(bytearray(10**7))",
        "x = []\nwhile True: x.append(str(len(x)))",
        "import numpy as np\nnp.ones((10**5, 10**5))",
        "'x' * 10**12",
        "import mmap\nmmap.mmap(-1, 10**12)",
    ],
)
def test_it_bounds_memory(run, program):
    result = run(program, bounds=Bounds(memory_bytes=128 << 20))
    assert result.status == "memory"
    assert "more than 128 MiB" in result.error


def test_it_bounds_files_and_descriptors(run):
    assert "Too many open files" in run("files = [open('/dev/null') for _ in range(1000)]").error
    assert "File too large" in run("open('big', 'wb').write(b'x' * (65 << 20))").error


def test_it_bounds_the_number_of_calls(run):
    result = run(
        "while True:\n    try:\n        system.neuron([])\n    except BaseException: pass", bounds=Bounds(calls=5)
    )
    assert result.status == "killed"
    assert "more than 5 calls" in result.error
    assert len(result.calls) == 5


def test_it_bounds_all_that_a_program_sends(run):
    result = run("while True: tools.display('x' * 100_000)", bounds=Bounds(total_bytes=1 << 20))
    assert result.status == "killed"
    assert "more than 1 MiB" in result.error


def test_it_tells_of_an_image_with_too_many_pixels(run):
    result = run("system.neuron([Image.new('RGB', (100, 101))])", bounds=Bounds(pixels=10_000))
    assert result.status == "tool_error"
    assert "100 by 101 pixels" in result.error


def test_it_stops_at_once_when_cancelled(run, sandbox):
    began = time.monotonic()
    with pytest.raises(Cancelled):
        run("while True: pass", cancelled=lambda: time.monotonic() > began + 0.2)
    assert children_of(sandbox) == []


def test_it_notices_a_cancellation_during_a_call_right_after_it(run, lab):
    asked: list[object] = []
    lab.calls["tools.text2image"] = asked.append
    with pytest.raises(Cancelled):
        run("while True: tools.text2image([])", cancelled=lambda: bool(asked))
    assert len(asked) == 1
