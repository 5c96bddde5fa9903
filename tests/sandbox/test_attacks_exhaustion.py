"""Programs that want all there is of something: processor, memory, disk, threads, descriptors, output, patience."""

import pytest

from tests.support.attack_range import BOUNDS, SOON, ranges, unharmed
from tests.support.sandbox_lab import children_of
from workers.protocols import Bounds
from workers.sandbox import watch

sandbox, field = ranges(), unharmed()


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "for number in set(signal.valid_signals()) - {9, 19, 32, 33}:\n    signal.signal(number, signal.SIG_IGN)\n"
        "while True: time.sleep(9)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: time.sleep(9)",
        "sum(range(10**13))",
        "'a' * 10**5 in 'b' * 10**8 or [10 ** 10**8 for _ in range(99)]",
        "__import__('re').match('(a+)+$', 'a' * 50 + 'b')",
        "int('9' * 4000) ** 10**7",
        "libc.pause()",
        "while libc.usleep(1000) == 0: pass",
        "while True: print()",
        "while True: print('x' * 10**6)",
        "while True: os.write(1, b'x' * 10**6)",
        "while True: gc.collect()",
        "import atexit\natexit.register(lambda: [None for _ in iter(int, 1)])\nwhile True: pass",
        "class Sticky:\n    def __del__(self):\n        while True: pass\nSticky()",
        "def tracer(*event):\n    while True: pass\nsys.settrace(tracer)\nprint()\nattempt('x', print)",
    ],
)
def test_a_program_that_does_not_end_is_ended(field, loop):
    result = field.attack(f"print('before')\n{loop}", SOON)
    assert result.status == "timeout", result
    assert result.output.startswith("before\n")


@pytest.mark.parametrize(
    "bomb",
    [
        "x = []\nwhile True: x.append(bytearray(10**7))",
        "x = 'x'\nwhile True: x += x",
        "import numpy\nx = [numpy.ones((2000, 2000))]\nwhile True: x.append(x[-1] + 1)",
        "import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 10**7))",
        "libc.malloc.restype = ctypes.c_void_p\nwhile libc.malloc(ctypes.c_size_t(10**7)): pass\nx = bytearray(10**9)",
        "Image.new('RGB', (100_000, 100_000))",
        "bytearray(2**40)",
    ],
)
def test_memory_is_bounded(field, bomb):
    result = field.attack(bomb, Bounds(seconds=20, memory_bytes=64 << 20))
    assert result.status == "memory", result
    assert "64 MiB" in result.error


def test_a_program_that_swallows_its_memory_errors_is_stopped(field):
    bomb = "x = []\nwhile True:\n    try:\n        x.append(bytearray(10**6))\n    except MemoryError: pass"
    assert field.attack(bomb, SOON).status == "timeout"


def test_processor_time_is_bounded_even_inside_a_call(field):
    field.lab.calls["tools.text2image"] = lambda prompts: None
    bomb = "threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()\nwhile True: tools.text2image([])"
    result = field.attack(bomb, Bounds(seconds=0.3, tool_seconds=0.3, calls=10**6))
    assert result.status == "timeout"


@pytest.mark.parametrize(
    "start",
    [
        "threading.Thread(target=time.sleep, args=(99,)).start()",
        "import _thread; _thread.start_new_thread(time.sleep, (99,))",
    ],
)
def test_threads_are_bounded(field, start):
    bomb = f"threading.stack_size(32768)\nwhile True:\n    try:\n        {start}\n    except RuntimeError: pass"
    result = field.attack(bomb, Bounds(seconds=20, memory_bytes=256 << 20))
    assert (result.status, result.error) == (
        "killed",
        f"The program started more than {watch.THREADS} threads. Make it do with less.",
    )


def test_a_bomb_of_bare_threads_is_ended(field):
    bomb = """
sleep = ctypes.cast(libc.usleep, ctypes.c_void_p)
attributes = ctypes.create_string_buffer(64)
libc.pthread_attr_init(attributes)
libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(16384))
while True:
    libc.pthread_create(ctypes.byref(ctypes.c_ulong()), attributes, sleep, ctypes.c_void_p(4_000_000_000))
"""
    result = field.attack(bomb, BOUNDS)
    assert (result.status, "threads" in result.error) == ("killed", True), result


@pytest.mark.parametrize("size", ["1, 3000", "3000, 1", "1, 2**22"])
def test_no_slim_image_reaches_a_network(field, size):
    result = field.attack(f"system.neuron([Image.new('RGB', ({size}))])")
    assert (result.status, "too slim" in result.error) == ("tool_error", True), result


def test_a_fork_bomb_never_goes_off(field):
    bomb = "while True:\n    try:\n        os.fork()\n    except OSError: pass"
    assert field.attack(bomb, SOON).status == "timeout"
    assert children_of(field.sandbox) == []


@pytest.mark.parametrize(
    ("bomb", "words"),
    [
        ("n = 0\nwhile True:\n    n += 1\n    open(str(n), 'wb').write(b'x' * (30 << 20))", "MiB of files"),
        ("n = 0\nwhile True:\n    n += 1\n    open(str(n), 'wb').close()", "files and folders"),
        ("while True:\n    os.mkdir('a'); os.chdir('a')", "files and folders|cannot be looked into"),
        ("while True:\n    os.mkdir('a' * 250); os.chdir('a' * 250)", "files and folders|cannot be looked into"),
        ("os.mkdir('a', 0o300); os.chdir('a')\nn = 0\nwhile True:\n    n += 1\n    os.mkdir(str(n))", "folders"),
        (
            "x = []\nfor n in range(50):\n    x.append(open('x', 'w+b')); os.remove('x')\n"
            "    x[-1].write(b'x' * (60 << 20)); x[-1].flush()\nwhile True: pass",
            "MiB of files",
        ),
        (
            "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
            "for n in range(10):\n    with open('x', 'w+b', 0) as x:\n        os.remove('x')\n"
            "        x.write(b'x' * (60 << 20)); libc.mmap(None, 4096, 1, 1, x.fileno(), 0)\nwhile True: pass",
            "MiB of files",
        ),
        (
            "def go():\n    x = []\n    for n in range(10):\n        x.append(open('x', 'w+b', 0)); os.remove('x')\n"
            "        x[-1].write(b'x' * (60 << 20))\n    while True: pass\n"
            "threading.Thread(target=go).start()\nraw({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)",
            "MiB of files",
        ),
    ],
)
def test_the_disk_is_bounded(field, bomb, words):
    result = field.attack(bomb, BOUNDS)
    assert result.status == "killed", result
    assert any(each in result.error for each in words.split("|")), result.error


@pytest.mark.parametrize(
    "bomb",
    [
        "x = [open('/dev/null') for _ in range(10**5)]",
        "x = [os.dup(0) for _ in range(10**5)]",
        "x = [os.pipe() for _ in range(10**5)]",
        "x = [socket.socketpair() for _ in range(10**5)]",
        "x = [os.eventfd(0) for _ in range(10**5)]",
        "import select\nx = [select.epoll() for _ in range(10**5)]",
    ],
)
def test_descriptors_are_bounded(field, bomb):
    result = field.attack(bomb)
    assert result.status == "program_error"
    assert "Too many open files" in result.error


def test_a_large_file_is_refused(field):
    field.must_fail("attempt('write', open('big', 'wb', 0).truncate, 65 << 20)", by=("OSError 27",))


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("def f(): f()\nf()", "program_error"),
        ("sys.setrecursionlimit(10**9)\nf = lambda x: repr(x)\nx = []\nx.append([x] * 2)\nprint(f(x)[:3])", "ok"),
        ("raise type('E', (Exception,), {'__str__': lambda self: 'x' * 10**9})()", "program_error|memory"),
        ("raise ExceptionGroup('g' * 10**6, [ValueError('v' * 10**6)] * 100)", "program_error|memory"),
        ("exec('x = 1\\n' * 10**4)", "ok"),
        ("compile('(' * 10**5, '', 'eval')", "program_error"),
        ("float('nan') == float('inf'); int(float('inf'))", "program_error"),
        ("print('\\x1b[2J\\x00' * 10)", "ok"),
        ("sys.exit(10**30)", "program_error"),
        ("os._exit(0)", "killed"),
        ("os.abort()", "killed"),
        ("ctypes.string_at(1)", "killed"),
        ("signal.raise_signal(signal.SIGSTOP)", "timeout"),
        ("os.closerange(0, 64)\nwhile True: pass", "killed"),
        ("os.close(1)\nos.close(2)\nprint('still here')", "ok"),
        ("sys.stdout = sys.stderr = None\nprint('gone')", "ok"),
        ("sys.stdout.close()", "ok"),
        ("sys.modules.clear()\nimport json", "ok|program_error"),
        ("import builtins\nbuiltins.__dict__.clear()", "ok|program_error|killed"),
        ("sys.excepthook = sys.unraisablehook = None\n1 / 0", "program_error"),
        (
            "gc.disable(); gc.set_threshold(1)\nfor o in gc.get_objects():\n    if type(o) is dict: o.clear()",
            "ok|program_error|killed",
        ),
    ],
)
def test_a_program_that_wrecks_itself_wrecks_nothing_else(field, program, status):
    result = field.attack(program, SOON if status == "timeout" else BOUNDS)
    assert result.status in status.split("|"), result
    assert (result.status == "ok") == (not result.error)
