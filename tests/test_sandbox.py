import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workers.errors import Cancelled, SandboxBroke, ToolMisuse, ToolRefused
from workers.protocols import Bounds
from workers.sandbox.host import ZygoteSandbox
from workers.sandbox.program import dialect

BOUNDS = Bounds(seconds=20, memory_bytes=512 << 20)


class Lab:
    """A small system and tools, in every published dialect's names."""

    def __init__(self):
        self.logged = []
        self.calls = {
            "system.neuron": self.neuron,
            "system.call_neuron": self.neuron,
            "tools.text2image": self.text2image,
            "tools.dataset_exemplars": self.dataset_exemplars,
            "tools.log_experiment": self.log_experiment,
            "tools.save_experiment_log": self.log_experiment,
            "tools.display": self.display,
            "tools.experiment_log": lambda: "so far",
        }

    def neuron(self, image_list):
        """Brightness of the first pixel, and the image upside down."""
        if not isinstance(image_list, list) or not all(isinstance(image, Image.Image) for image in image_list):
            raise ToolMisuse("system.neuron: image_list must be a list of images")
        return [float(image.getpixel((0, 0))[0]) for image in image_list], [image.rotate(180) for image in image_list]

    def text2image(self, prompt_list):
        if "forbidden" in prompt_list:
            raise ToolRefused("the generator refuses 'forbidden'")
        return [Image.new("RGB", (8, 8), (len(prompt), 0, 0)) for prompt in prompt_list]

    def dataset_exemplars(self, system):
        return [9.0, 8.0], [Image.new("RGB", (8, 8), "red")] * 2

    def log_experiment(self, activation_list, image_list, image_titles, image_textual_information):
        self.logged.append((activation_list, image_list, image_titles, image_textual_information))

    def display(self, *things):
        self.logged.append(things)


@pytest.fixture(scope="module")
def sandbox():
    with ZygoteSandbox() as sandbox:
        yield sandbox


@pytest.fixture
def lab():
    return Lab()


@pytest.fixture
def run(sandbox, lab):
    def run(program, facts=None, *, calls=None, **options):
        options.setdefault("bounds", BOUNDS)
        return sandbox.run(program, lab.calls if calls is None else calls, facts or {}, **options)

    return run


def children_of(sandbox):
    """Pids of all that was forked from the zygote and lives, or waits to be reaped."""
    found, left = [], [zygote_pid(sandbox)]
    while left:
        pid = left.pop()
        found += (born := [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()])
        left += born
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def zygote_pid(sandbox):
    return sandbox._launcher._zygote.process.pid


def folder_of(sandbox):
    return sandbox._launcher._folder


# --- programs as published --------------------------------------------------------------------------

PAPER = """
def run_experiment(system, tools) -> Tuple[int, str]:
    prompts = ["a red ball", "a kite"]
    images = tools.text2image(prompts)
    def label(n):
        return [prompts[i] for i in range(n)]
    activation_list, masked_list = system.neuron(images)
    tools.log_experiment(activation_list, masked_list, label(len(images)), "two toys")
    return activation_list, masked_list
"""

CODE_2024 = """
import torch
import random, math
from typing import List
from PIL import Image
import numpy as np

def execute_command(system, tools) -> torch.Tensor:
    activation_list, image_list = tools.dataset_exemplars(system)
    tools.save_experiment_log(activation_list, image_list, [str(a) for a in activation_list], '')
"""

CODE_2025 = """
images = tools.text2image(["a", "abc"])
def brightest(images):
    return max(system.call_neuron([image])[0][0] for image in images)
print("best", brightest(images))
display("Both:", *images)
"""


def test_it_runs_a_program_in_the_papers_dialect(run, lab):
    result = run(PAPER)
    assert (result.status, result.error) == ("ok", "")
    assert lab.logged[0][0] == [10.0, 6.0]
    assert lab.logged[0][2:] == (["a red ball", "a kite"], "two toys")
    assert lab.logged[0][1][0].getpixel((7, 7)) == (10, 0, 0)
    assert [call.name for call in result.calls] == ["tools.text2image", "system.neuron", "tools.log_experiment"]
    assert result.calls[0].arguments == "['a red ball', 'a kite']"
    assert result.calls[1].arguments == "<2 images>"


def test_it_runs_a_program_in_the_dialect_of_2024(run, lab):
    result = run(CODE_2024)
    assert (result.status, result.error) == ("ok", "")
    assert lab.logged[0][0] == [9.0, 8.0]


def test_it_runs_a_script_in_the_dialect_of_2025(run, lab):
    result = run(CODE_2025)
    assert (result.status, result.output) == ("ok", "best 3.0\n")
    assert lab.logged[0][0] == "Both:"
    assert len(lab.logged[0]) == 3


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (PAPER, "function"),
        (CODE_2024, "function"),
        (CODE_2025, "script"),
        ("text = '''\ndef run_experiment(system, tools):\n'''", "script"),
        ("class A:\n    def run_experiment(self): pass", "script"),
        ("def run_experiment(system, tools", "script"),
        ("-" * 100_000 + "1", "script"),
        ("a\0b", "script"),
    ],
)
def test_it_knows_the_dialect_from_the_text(program, expected):
    assert dialect(program) == expected


@pytest.mark.parametrize(
    "call",
    [
        "",
        "run_experiment(system, tools)",
        "if __name__ == '__main__':\n    run_experiment(system, tools)",
        "def main():\n    run_experiment(system, tools)\nmain()",
    ],
)
def test_it_runs_the_entry_point_once_even_if_the_program_calls_it(run, call):
    assert run("def run_experiment(system, tools):\n    print('ran')\n" + call).output == "ran\n"


def test_it_shows_facts_as_plain_attributes(run):
    result = run("print(system.layer, system.unit, tools.experiment_log)", {"system.layer": "layer4", "system.unit": 7})
    assert result.output == "layer4 7 so far\n"


def test_it_names_what_there_is_when_a_program_asks_for_more(run):
    result = run("tools.teleport()")
    assert result.status == "program_error"
    assert "tools has no attribute 'teleport'; it has dataset_exemplars, display" in result.error


def test_it_lets_annotations_name_what_is_not_imported(run):
    assert run("def f(x: torch.Tensor) -> nn.Module: return x\nprint(f(1))").output == "1\n"


def test_it_tells_which_module_is_missing(run):
    assert "ModuleNotFoundError: No module named 'skimage_of_mars'" in run("import skimage_of_mars").error


def test_it_repeats_a_programs_randomness_for_the_same_seed(run):
    program = "import random\nimport numpy as np\nprint(random.random(), np.random.rand(), list({'a', 'b', 'c', 'd'}))"
    first, again, other = (run(program, {"experiment.seed": seed}).output for seed in (5, 5, 2**63))
    assert first == again != other


def test_it_carries_images_both_ways_unchanged(run, lab):
    noise = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    lab.calls["tools.text2image"] = lambda prompts: [Image.fromarray(noise)] * 15
    assert run("tools.display(*tools.text2image([]))").status == "ok"
    assert [np.array_equal(np.asarray(image), noise) for image in lab.logged[0]] == [True] * 15


# --- failures of the program ------------------------------------------------------------------------


def test_it_tells_a_failure_with_the_programs_own_lines_alone(run):
    result = run("def half(x):\n    return x / 0\n\ndef run_experiment(system, tools):\n    half(1)\n")
    assert result.status == "program_error"
    lines = result.error.splitlines()
    assert lines[1:3] == ['  File "experiment.py", line 5, in run_experiment', "    half(1)"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "guest" not in result.error
    assert result.error.count("File") == 2


def test_it_hides_our_frames_in_the_cause_of_a_failure_too(run):
    result = run("try:\n    system.neuron(1)\nexcept ToolError as error:\n    raise ValueError('no') from error")
    assert result.error.count("File") == 2
    assert "ToolError: system.neuron: image_list must be a list of images" in result.error


@pytest.mark.parametrize(
    ("program", "line", "words"),
    [
        ("x = 1\ndef f(:\n    pass", 2, "invalid syntax"),
        ("x = 1\nreturn x", 2, "'return' outside function"),
    ],
)
def test_it_points_at_an_error_of_syntax(run, program, line, words):
    result = run(program)
    assert result.status == "program_error"
    assert f'File "experiment.py", line {line}' in result.error
    assert "^" in result.error
    assert words in result.error


@pytest.mark.parametrize("program", ["-" * 100_000 + "1", "a\0b", "\ud800", "(" * 10_000])
def test_it_tells_of_a_program_that_cannot_be_compiled(run, program):
    assert run(program).status == "program_error"


def test_it_refuses_a_program_of_a_million_characters(run):
    assert "characters" in run("#" * 1_000_001).error


def test_it_raises_a_tools_refusal_in_the_program(run):
    result = run("try:\n    tools.text2image(['forbidden'])\nexcept ToolError as error:\n    print('caught', error)")
    assert (result.status, result.output) == ("ok", "caught the generator refuses 'forbidden'\n")


def test_it_ends_with_the_tools_error_that_the_program_does_not_catch(run):
    result = run("def run_experiment(system, tools):\n    system.neuron('bird')")
    assert result.status == "tool_error"
    assert "line 2, in run_experiment" in result.error
    assert "ToolError: system.neuron: image_list must be a list of images" in result.error
    assert len(result.calls) == 1


@pytest.mark.parametrize("call", ["system.neuron()", "system.neuron([], 2)", "system.neuron([], size=3)"])
def test_it_tells_of_arguments_that_a_tool_does_not_take(run, call):
    result = run(call)
    assert result.status == "tool_error"
    assert "it takes (image_list)" in result.error


def test_it_tells_of_an_argument_that_cannot_be_sent(run):
    result = run("import numpy as np\nsystem.neuron(np.zeros((4, 4, 3)))")
    assert result.status == "tool_error"
    assert "Image.fromarray" in result.error


def test_it_tells_of_an_answer_that_is_too_large(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: "x" * (3 << 20)
    result = run("tools.text2image([])", bounds=Bounds(frame_bytes=2 << 20))
    assert result.status == "tool_error"
    assert "tools.text2image: what it returns is too large" in result.error


@pytest.mark.parametrize(
    ("code", "status"), [("", "ok"), ("0", "ok"), ("3", "program_error"), ("'why'", "program_error")]
)
def test_it_takes_sys_exit_for_an_end(run, code, status):
    assert run(f"import sys\nprint('before')\nsys.exit({code})").status == status


def test_it_tells_of_a_program_that_leaves_its_process(run):
    result = run("import os\nprint('before')\nos._exit(3)")
    assert (result.status, result.output) == ("killed", "before\n")
    assert "exit code 3" in result.error


def test_it_tells_of_recursion_without_end(run):
    result = run("def f(n):\n    return f(n + 1)\nf(0)")
    assert result.status == "program_error"
    assert "RecursionError" in result.error
    assert len(result.error) < 2000


def test_it_survives_a_program_that_overflows_its_stack(run):
    result = run("import sys\nsys.setrecursionlimit(10**8)\nx = []\nfor _ in range(10**6): x = [x]\nrepr(x)")
    assert result.status == "killed"
    assert "SIGSEGV" in result.error


@pytest.mark.parametrize(
    "raised", ["KeyboardInterrupt", "GeneratorExit", "BaseException('odd')", "ExceptionGroup('g', [ValueError()])"]
)
def test_it_tells_of_whatever_a_program_raises(run, raised):
    result = run(f"raise {raised}")
    assert result.status == "program_error"
    assert raised.split("(")[0] in result.error


def test_it_tells_of_an_error_that_cannot_be_printed(run):
    assert run("class Odd(Exception):\n    def __str__(self): raise self\nraise Odd()").status == "program_error"


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
    result = run("print('before')\n" + loop, bounds=Bounds(seconds=0.3))
    assert result.status == "timeout"
    assert "0.3 s of its own time" in result.error
    assert result.output.startswith("before\n")
    assert children_of(sandbox) == []


def test_it_does_not_count_the_time_inside_tools(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: time.sleep(0.5)
    result = run("tools.text2image([])\nprint('done')", bounds=Bounds(seconds=0.4))
    assert (result.status, result.output) == ("ok", "done\n")
    assert result.tool_seconds >= 0.5
    assert result.calls[0].seconds >= 0.5


def test_it_bounds_the_time_inside_tools(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: time.sleep(0.05)
    result = run("while True: tools.text2image([])", bounds=Bounds(tool_seconds=0.12))
    assert result.status == "timeout"
    assert "tools took more than 0.12 s" in result.error
    assert len(result.calls) == 3


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


# --- our own trouble --------------------------------------------------------------------------------


def test_it_passes_on_what_a_call_raises_and_kills_the_child(run, lab, sandbox):
    def broken(prompts):
        raise ConnectionError("the database is gone")

    lab.calls["tools.text2image"] = broken
    with pytest.raises(ConnectionError, match="the database is gone"):
        run("try:\n    tools.text2image([])\nexcept BaseException: pass\nwhile True: pass")
    assert children_of(sandbox) == []


def test_it_says_that_the_machinery_broke_when_an_answer_cannot_be_sent(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: object()
    with pytest.raises(SandboxBroke, match=r"tools\.text2image returned"):
        run("tools.text2image([])")


def test_it_starts_another_zygote_when_one_was_killed(run, sandbox):
    run("pass")
    os.kill(zygote_pid(sandbox), signal.SIGKILL)
    assert run("print('well')").output == "well\n"


def test_it_says_that_the_machinery_broke_when_the_zygote_dies_under_a_program(run, sandbox, lab):
    def kill_zygote(prompts):
        os.kill(zygote_pid(sandbox), signal.SIGKILL)

    lab.calls["tools.text2image"] = kill_zygote
    with pytest.raises(SandboxBroke, match="zygote died"):
        run("tools.text2image([])\nwhile True: pass")
    assert run("print('well')").output == "well\n"


def test_it_runs_nothing_once_closed():
    sandbox = ZygoteSandbox()
    sandbox.close()
    with pytest.raises(SandboxBroke, match="closed"):
        sandbox.run("pass", {}, {}, bounds=BOUNDS)


# --- the child --------------------------------------------------------------------------------------


def test_it_shows_a_program_nothing_of_the_workers_environment(monkeypatch):
    monkeypatch.setenv("MAIA_TEST_SECRET", "hunter2")
    program = """
import os
print(dict(os.environ))
for pid in os.getpid(), os.getppid():
    print(open(f"/proc/{pid}/environ").read())
"""
    with ZygoteSandbox() as fresh:
        output = fresh.run(program, {}, {}, bounds=BOUNDS).output
    assert output.startswith("{}\nPYTHONHASHSEED=0")
    assert "hunter2" not in output


def test_it_gives_each_program_a_process_of_its_own_from_one_zygote(run):
    program = "import os\nprint(os.getpid(), os.getppid(), os.getsid(0))"
    seen = [run(program).output.split() for _ in range(4)]
    assert len({pid for pid, _, _ in seen}) == 4
    assert len({zygote for _, zygote, _ in seen}) == 1
    assert all(pid == session for pid, _, session in seen)


def test_it_leaves_a_program_one_descriptor_and_one_thread(run):
    program = "import os\nprint(sorted(os.listdir('/proc/self/fd'))[:4], len(os.listdir('/proc/self/task')))"
    assert run(program).output.startswith("['0', '1', '2', '3'] 1")
    assert "'4'" in run("import os\nprint(sorted(os.listdir('/proc/self/fd')))").output  # the listing's own
    assert "'5'" not in run("import os\nprint(sorted(os.listdir('/proc/self/fd')))").output


def test_it_loads_neither_django_nor_torch_nor_our_own_modules(run):
    program = (
        "import sys\nprint([name for name in sys.modules if name.split('.')[0] in ('django', 'torch', 'workers')])"
    )
    assert run(program).output == "[]\n"
    assert "No module named 'workers'" in run("import workers.errors").error


def test_it_takes_privileges_and_core_files_away(run):
    program = (
        "import resource\nprint(open('/proc/self/status').read())\nprint(resource.getrlimit(resource.RLIMIT_CORE))"
    )
    output = run(program).output
    assert "NoNewPrivs:\t1" in output
    assert "(0, 0)" in output


def test_it_gives_standard_input_no_end_but_eof(run):
    assert "EOFError" in run("input()").error


def test_it_tells_of_a_child_that_was_killed(run, lab, sandbox):
    def kill(prompts):
        for pid in children_of(sandbox):
            os.kill(pid, signal.SIGKILL)

    lab.calls["tools.text2image"] = kill
    result = run("print('before')\ntools.text2image([])\nwhile True: pass")
    assert (result.status, result.output) == ("killed", "before\n")
    assert "SIGKILL" in result.error


def test_it_leaves_no_process_behind(run, sandbox):
    program = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
time.sleep(0.1)
"""
    assert run(program).status == "ok"
    assert children_of(sandbox) == []


def test_it_leaves_no_file_behind(run, sandbox):
    result = run(
        "import os, tempfile\nopen('left', 'w').write('x')\nos.mkdir('d')\ntempfile.mkdtemp()\nprint(os.getcwd())"
    )
    folder = Path(result.output.strip())
    assert folder.parent == folder_of(sandbox)
    assert not folder.exists()
    assert {path.name for path in folder_of(sandbox).iterdir()} == {"zygote.log"}


def test_it_removes_folders_that_a_program_closed_and_follows_no_link(run, sandbox, tmp_path):
    inside = tmp_path / "theirs"
    inside.mkdir(mode=0o755)
    run(f"import os\nos.makedirs('a/b')\nos.symlink({str(inside)!r}, 'link')\nos.chmod('a', 0)")
    assert {path.name for path in folder_of(sandbox).iterdir()} == {"zygote.log"}
    assert inside.stat().st_mode & 0o777 == 0o755


def test_it_takes_zygote_and_folder_away_when_closed():
    with ZygoteSandbox() as sandbox:
        sandbox.run("pass", {}, {}, bounds=BOUNDS)
        zygote, folder = zygote_pid(sandbox), folder_of(sandbox)
        assert is_running(zygote)
    assert not is_running(zygote)
    assert not folder.exists()


def test_it_takes_the_children_along_when_the_worker_dies(tmp_path):
    words = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from workers.protocols import Bounds
from workers.sandbox.host import ZygoteSandbox
def tell(pids):
    print(*pids, flush=True)
    os.kill(os.getpid(), 9)
program = "import os\\ntools.tell([os.getpid(), os.getppid()])"
ZygoteSandbox().run(program, {{"tools.tell": tell}}, {{}}, bounds=Bounds())
"""
    worker = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, env={"TMPDIR": str(tmp_path)}
    )
    pids = [int(word) for word in worker.stdout.split()]
    assert len(pids) == 2
    for _ in range(200):
        if not any(is_running(pid) for pid in pids):
            return
        time.sleep(0.05)
    pytest.fail(f"of {pids} some live on")


def test_it_runs_programs_of_two_threads_at_the_same_time(sandbox, lab):
    met = threading.Barrier(2, timeout=20)
    results = {}

    def work(name):
        calls = {"tools.meet": lambda: str(met.wait())[:0] + name}
        results[name] = sandbox.run("print(tools.meet(), tools.meet())", calls, {}, bounds=BOUNDS).output

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"one": "one one\n", "two": "two two\n"}


def test_it_serves_threads_of_a_program_one_call_at_a_time(run):
    program = """
from concurrent.futures import ThreadPoolExecutor
def measure(n):
    return system.neuron([Image.new("RGB", (2, 2), (n, 0, 0))])[0][0]
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(measure, range(20))) == list(range(20)))
"""
    assert run(program).output == "True\n"


# --- hostile bytes ----------------------------------------------------------------------------------

FORGE = """
import socket, struct
wire = socket.socket(fileno=3)
"""


@pytest.mark.parametrize(
    "words",
    [
        "wire.sendall(struct.pack('>II', 2**32 - 1, 2**32 - 1))",
        "wire.sendall(struct.pack('>II', 10, 60 << 20)); wire.close()",
        "wire.sendall(b'garbage that is no frame at all')",
        "wire.sendall(struct.pack('>II', 3, 0) + b'\\xc1\\xc1\\xc1')",
        "wire.sendall(struct.pack('>II', 13, 0) + b'\\x94\\xa4call\\xa4exec\\x90\\x80')",
        "wire.sendall(struct.pack('>II', 7, 0) + b'\\x91\\xa5ready')",
        "wire.sendall(struct.pack('>II', 10, 0) + b'\\x92\\xa6broken\\xa1x')",
        "wire.shutdown(socket.SHUT_WR); wire.recv(1)",
    ],
)
def test_it_ends_a_program_that_speaks_out_of_turn_and_lives_on(run, words):
    result = run(FORGE + words + "\nwhile True: pass")
    assert result.status == "killed"
    assert result.error
    assert run("print('well')").output == "well\n"


@pytest.mark.parametrize("words", ["wire.close()", "wire.shutdown(socket.SHUT_RDWR)", "import os; os.close(3)"])
def test_it_ends_a_program_that_closes_its_connection(run, words):
    result = run(FORGE + words + "\nwhile True: pass")
    assert result.status == "killed"
    assert "closed its connection" in result.error


def test_it_believes_a_forged_end_only_of_the_program_itself(run):
    finished = r"b'\x94\xa8finished\xa2ok\xa0\xc4\x03abc'"
    result = run(f"{FORGE}end = {finished}\nwire.sendall(struct.pack('>II', len(end), 0) + end)\nwhile True: pass")
    assert (result.status, result.state) == ("ok", b"abc")
    after = run("print('well')", state=result.state)
    assert (after.status, after.output) == (
        "ok",
        "[the names of earlier experiments cannot be read; bind them again]\nwell\n",
    )


def test_it_prints_what_looks_like_our_own_protocol_as_mere_text(run):
    program = "print(b'\\x94\\xa8finished'.decode('latin-1'), '[CODE]: [LABEL]: x')"
    assert run(program).output == "\x94¨finished [CODE]: [LABEL]: x\n"


def test_it_is_not_held_up_by_a_program_that_does_not_read_its_answer(run, lab):
    lab.calls["tools.text2image"] = lambda prompts: "x" * (8 << 20)
    call = r"b'\x94\xa4call\xb0tools.text2image\x91\x90\x80'"
    program = f"{FORGE}call = {call}\nwire.sendall(struct.pack('>II', len(call), 0) + call)\nwhile True: pass"
    assert run(program, bounds=Bounds(seconds=0.4)).status == "timeout"


# --- state ------------------------------------------------------------------------------------------


def test_it_shows_a_script_the_names_of_the_one_before(run):
    first = run(
        "import numpy\nn, image, a, pair = 3, Image.new('RGB', (4, 4), 'red'), numpy.eye(2), [(1.5, 'x')]\ndef f(): 0"
    )
    second = run("print(n, image.getpixel((0, 0)), a.sum(), pair)\nn += 1", state=first.state)
    assert second.output == "3 (255, 0, 0) 2.0 [(1.5, 'x')]\n"
    assert run("print(n)", state=second.state).output == "4\n"
    assert "NameError: name 'f' is not defined" in run("f()", state=second.state).error


def test_it_keeps_what_was_bound_before_a_failure(run):
    assert run("print(n)", state=run("n = 3\n1 / 0").state).output == "3\n"


def test_it_keeps_the_state_it_was_given_when_a_program_is_stopped(run):
    state = run("n = 3").state
    assert run("n = 4\nwhile True: pass", state=state, bounds=Bounds(seconds=0.3)).state == state


def test_it_says_what_was_too_large_to_keep(run):
    result = run("big = bytes(40 << 20)\nsmall = 1")
    assert result.status == "ok"
    assert "too large to be kept for the next experiment: big" in result.output
    assert run("print(small)", state=result.state).output == "1\n"


def test_it_does_not_let_state_hide_system_and_tools(run):
    state = run("system = tools = display = 1").state
    assert run("print(system.neuron([]), display('x'))", state=state).output == "([], []) None\n"
