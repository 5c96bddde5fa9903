"""The process of an experiment: what it holds, what it may say, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.sandbox_lab import BOUNDS, Lab, children_of, folder_of, is_running, runner, zygote_of, zygote_pid
from workers.errors import SandboxBroke
from workers.protocols import Bounds
from workers.sandbox.host import ZygoteSandbox

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


def test_it_runs_programs_though_several_idle_zygotes_were_killed():
    with ZygoteSandbox() as sandbox:
        run = runner(sandbox, Lab())
        inner = Lab()
        inner.calls["tools.text2image"] = lambda prompts: run("pass") and []  # so there are two
        runner(sandbox, inner)("tools.text2image([])")
        idle = sandbox._launcher._idle
        assert len(idle) == 2
        for zygote in idle:
            zygote.process.kill()
            zygote.process.wait()
        assert run("print('well')").output == "well\n"
        assert len(idle) == 1


def test_it_says_that_the_machinery_broke_when_the_zygote_dies_under_a_program(run, sandbox, lab):
    def kill_zygote(prompts):
        os.kill(zygote_pid(sandbox), signal.SIGKILL)

    lab.calls["tools.text2image"] = kill_zygote
    with pytest.raises(SandboxBroke, match="zygote died"):
        run("tools.text2image([])\nwhile True: pass")
    assert run("print('well')").output == "well\n"


def test_a_program_that_brings_its_zygote_down_ends_no_other(lab):
    """As two runs of one worker: the neighbour is under way when the zygote dies, and never hears of it."""
    begun, over = threading.Event(), threading.Event()
    results = []

    def wait():
        begun.set()
        over.wait(20)

    def kill_zygote():
        os.kill(sandbox._launcher._zygotes[1].process.pid, signal.SIGKILL)

    with ZygoteSandbox() as sandbox:
        neighbour = threading.Thread(
            target=lambda: results.append(
                sandbox.run("tools.wait()\nprint('done')", {"tools.wait": wait}, {}, bounds=BOUNDS)
            )
        )
        neighbour.start()
        try:
            assert begun.wait(20)
            with pytest.raises(SandboxBroke):
                sandbox.run("tools.kill()\nwhile True: pass", {"tools.kill": kill_zygote}, {}, bounds=BOUNDS)
        finally:
            over.set()
            neighbour.join()
        assert (results[0].status, results[0].output) == ("ok", "done\n")
        assert len(sandbox._launcher._zygotes) == len(sandbox._launcher._idle) == 1


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("who", [zygote_pid, lambda sandbox: zygote_of(sandbox).process.pid])
def test_a_program_dies_with_the_zygote(lab, least, who):
    orphans = []

    def kill_zygote(prompts):
        orphans.extend(children_of(sandbox))
        os.kill(who(sandbox), signal.SIGKILL)

    lab.calls["tools.text2image"] = kill_zygote
    program = "tools.text2image([])\nwhile True: pass"
    with ZygoteSandbox(least=least) as sandbox, pytest.raises(SandboxBroke):
        sandbox.run(program, lab.calls, {}, bounds=BOUNDS)
    assert len(orphans) == 1
    for _ in range(200):
        if not is_running(orphans[0]):
            return
        time.sleep(0.05)
    pytest.fail("the program lives on")


def test_it_runs_nothing_once_closed():
    sandbox = ZygoteSandbox()
    sandbox.close()
    with pytest.raises(SandboxBroke, match="closed"):
        sandbox.run("pass", {}, {}, bounds=BOUNDS)


# --- the child --------------------------------------------------------------------------------------


def test_it_shows_a_program_nothing_of_the_workers_environment(monkeypatch):
    monkeypatch.setenv("MAIA_TEST_SECRET", "hunter2")
    seen = []
    with ZygoteSandbox() as fresh:

        def look():
            pids = [zygote_of(fresh).process.pid, zygote_pid(fresh), *children_of(fresh)]
            seen.extend(Path(f"/proc/{pid}/environ").read_text() for pid in pids)

        program = "import os\nprint(dict(os.environ))\ntools.look()"
        assert fresh.run(program, {"tools.look": look}, {}, bounds=BOUNDS).output == "{}\n"
    assert len(seen) == 3
    assert all(environment.startswith("PYTHONHASHSEED=0") for environment in seen)
    assert "hunter2" not in "".join(seen)


def test_it_gives_each_program_a_process_of_its_own_from_one_zygote(run):
    program = "import os\nprint(os.getpid(), os.getppid(), os.getsid(0))"
    seen = [run(program).output.split() for _ in range(4)]
    assert len({pid for pid, _, _ in seen}) == 4
    assert len({zygote for _, zygote, _ in seen}) == 1
    assert all(pid == session for pid, _, session in seen)


def test_it_leaves_a_program_one_descriptor_and_one_thread(run, lab, sandbox):
    seen = {}

    def look(prompt_list):
        (child,) = children_of(sandbox)
        seen["descriptors"] = {int(fd.name): str(fd.readlink()) for fd in Path(f"/proc/{child}/fd").iterdir()}
        seen["threads"] = len(list(Path(f"/proc/{child}/task").iterdir()))

    lab.calls["tools.text2image"] = look
    assert run("tools.text2image([])").status == "ok"
    assert {number: seen["descriptors"].pop(number) for number in (0, 1, 2)} == dict.fromkeys((0, 1, 2), "/dev/null")
    assert [target.split(":")[0] for target in seen["descriptors"].values()] == ["socket"]
    assert seen["threads"] == 1


def test_it_loads_neither_django_nor_torch_nor_our_own_modules(run):
    program = (
        "import sys\nprint([name for name in sys.modules if name.split('.')[0] in ('django', 'torch', 'workers')])"
    )
    assert run(program).output == "[]\n"
    assert "No module named 'workers'" in run("import workers.errors").error


def test_it_takes_privileges_and_core_files_away(run, lab, sandbox):
    seen = []

    def look(prompt_list):
        (child,) = children_of(sandbox)
        seen.append(Path(f"/proc/{child}/status").read_text())

    lab.calls["tools.text2image"] = look
    result = run("import resource\ntools.text2image([])\nprint(resource.getrlimit(resource.RLIMIT_CORE))")
    assert result.output == "(1, 1)\n"
    for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"):
        assert line in seen[0]


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


def test_it_leaves_no_file_behind(run, sandbox):
    result = run(
        "import os, tempfile\nopen('left', 'w').write('x')\nos.mkdir('d')\ntempfile.mkdtemp()\nprint(os.getcwd())"
    )
    folder = Path(result.output.strip())
    assert folder.parent == folder_of(sandbox)
    assert not folder.exists()
    assert {path.name for path in folder_of(sandbox).iterdir()} == {"zygote.log"}


def test_it_removes_folders_nested_deeper_than_a_path_can_say(run, sandbox):
    deep = "import os\nfor _ in range(900):\n    os.mkdir('a_rather_long_name'); os.chdir('a_rather_long_name')"
    assert run(deep + "\nopen('file', 'w').close()\nos.mkdir('closed', 0)").status in {"ok", "killed"}
    assert {path.name for path in folder_of(sandbox).iterdir()} == {"zygote.log"}


def test_it_takes_zygote_and_folder_away_when_closed():
    with ZygoteSandbox() as sandbox:
        sandbox.run("pass", {}, {}, bounds=BOUNDS)
        zygote, folder = zygote_pid(sandbox), folder_of(sandbox)
        assert is_running(zygote)
    assert not is_running(zygote)
    assert not folder.exists()


def test_it_takes_children_and_files_along_when_the_worker_dies(tmp_path):
    words = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.sandbox_lab import descendants
from workers.protocols import Bounds
from workers.sandbox.host import ZygoteSandbox
def tell():
    print(*descendants(os.getpid()), flush=True)
    os.kill(os.getpid(), 9)
ZygoteSandbox().run("open('left', 'w').close()\\ntools.tell()", {{"tools.tell": tell}}, {{}}, bounds=Bounds())
"""
    worker = subprocess.run([sys.executable, "-c", words], stdout=subprocess.PIPE, env={"TMPDIR": str(tmp_path)})
    pids = [int(word) for word in worker.stdout.split()]
    assert len(pids) >= 2
    for _ in range(200):
        if not any(is_running(pid) for pid in pids) and not list(tmp_path.iterdir()):
            return
        time.sleep(0.05)
    pytest.fail(f"of {pids} or {list(tmp_path.iterdir())} something stays")


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
