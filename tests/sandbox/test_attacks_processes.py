"""Programs that want other processes: new ones, the worker, the zygote, other experiments; or the kernel itself."""

import os
import platform
import threading
from pathlib import Path

import pytest

from tests.support.attack_range import BOUNDS, REFUSALS, ranges, unharmed
from workers.sandbox import jail
from workers.sandbox.watch import read_field

sandbox, field = ranges(), unharmed()

RENAME = {"x86_64": 157, "aarch64": 167}


# --- new processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "way",
    [
        "os.fork()",
        "os.forkpty()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "subprocess.run(['true'])",
        "subprocess.Popen('true', shell=True)",
        "subprocess.Popen(['true'], close_fds=False)",
        "os.popen('true').read()",
        "__import__('multiprocessing').Process(target=print).start()",
        "__import__('multiprocessing').get_context('spawn').Process(target=print).start()",
        "__import__('concurrent.futures').futures.ProcessPoolExecutor(1).submit(print).result(5)",
        "os.execv('/bin/true', ['true'])",
        "os.execv(sys.executable, ['python', '-c', '1'])",
        "os.execve('/proc/self/exe', ['python'], {})",
    ],
)
def test_no_process_or_program_can_be_started(field, way):
    field.must_fail(f"attempt('start', lambda: {way})")


def test_a_shell_command_does_nothing(field, tmp_path):
    result = field.attack(f"print(os.system('touch {tmp_path}/x') != 0, libc.system(b'touch {tmp_path}/y') != 0)")
    assert result.output == "True True\n"
    assert list(tmp_path.iterdir()) == []


def test_no_daemon_stays(field):
    program = """
def daemon():
    for start in (os.fork, lambda: raw(%d, 17, 0, 0, 0, 0), lambda: raw(435, ctypes.create_string_buffer(88), 88)):
        try:
            if start() == 0:
                while True:
                    time.sleep(1000)
        except OSError as error:
            print("daemon: blocked by", type(error).__name__, error.errno)
daemon()
"""
    clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    field.must_fail(program % clone, 3, by=("PermissionError 1", "OSError 38"))


# --- other processes ----------------------------------------------------------------------------------


def test_no_signal_reaches_another_process(field):
    targets = ["os.getppid()", "1", "0", "-1", "-os.getpgrp()", str(os.getpid()), str(field.condition()["zygote"])]
    numbers = ["signal.SIGTERM", "signal.SIGKILL", "signal.SIGSTOP", "0"]
    lines = [f"attempt('{target}', os.kill, {target}, {number})" for target in targets for number in numbers]
    field.must_fail("\n".join(lines), len(lines))


def test_a_program_may_signal_itself(field):
    program = """
signal.signal(signal.SIGUSR1, lambda number, frame: print("got", number))
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
signal.signal(signal.SIGALRM, lambda number, frame: print("rang"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
time.sleep(0.05)
"""
    result = field.attack(program)
    assert (result.error, result.output) == ("", "got 10\ngot 10\nrang\n")


@pytest.mark.parametrize(
    "way",
    [
        "os.killpg(os.getpgid(os.getppid()), 9)",
        "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.nice(-5)",
        "os.sched_setaffinity(os.getppid(), {{0}})",
        "os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))",
        "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))",
        "resource.prlimit({worker}, resource.RLIMIT_CPU, (0, 0))",
        "resource.prlimit({worker}, resource.RLIMIT_CPU)",
        "__import__('fcntl').fcntl(3, 8, os.getppid())",
        "__import__('fcntl').fcntl(3, 10, 9)",
        "__import__('fcntl').ioctl(3, 0x8901, struct.pack('i', {worker}))",
        "__import__('fcntl').ioctl(0, 0x5412, b'x')",
        "__import__('fcntl').fcntl(os.open('/usr/lib', os.O_RDONLY), 1026, 0xF)",
        "__import__('fcntl').flock(os.open(os.__file__, os.O_RDONLY), 2)",
        "os.setsid()",
        "os.setpgid(0, os.getppid())",
        "os.waitpid(-1, 0)",
        "os.setuid(0)",
        "os.setgroups([])",
        "os.chroot('.')",
    ],
)
def test_no_way_touches_another_process(field, way):
    field.must_fail(f"attempt('touch', lambda: {way.format(worker=os.getpid())})")


def test_limits_cannot_be_lifted(field):
    program = """
for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
    hard = resource.getrlimit(kind)[1]
    attempt(kind, resource.setrlimit, kind, (hard + 1, hard + 1))
    attempt(kind, resource.setrlimit, kind, (-1, -1))
"""
    field.must_fail(program, 8, by=("ValueError ",))


@pytest.mark.skipif(os.getuid() == 0, reason="the kernel bounds no thread of root; test_attacks_ordinary runs this")
@pytest.mark.parametrize("sandbox", ["every layer"], indirect=True)  # an old kernel has the watch alone, which is late
def test_a_burst_of_threads_meets_a_wall_before_anybody_looks(field):
    if "threads" not in {layer.name: layer for layer in jail.layers()}["rlimits"].detail:
        pytest.skip("the kernel has no count of processes for each namespace")
    burst = """
threading.stack_size(32768)
started = 0
try:
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
        started += 1
finally:
    os.write(1, str(started).encode())
    tools.text2image([])
"""
    result = field.attack(burst)
    assert result.status in {"killed", "program_error"}
    assert int(result.output or 0) < jail.PROCESSES


@pytest.mark.parametrize("name", ["b'\\xff\\xfe\\xff'", "b'\\x0bThreads:\\t1'", "b'harmless'"])
def test_a_process_cannot_be_renamed(field, name):
    field.must_fail(f"attempt('rename', raw, {RENAME[platform.machine()]}, 15, {name})", by=("PermissionError 1",))
    field.must_fail(
        f"attempt('comm', lambda: open('/proc/self/comm', 'wb').write({name}))", by=(*REFUSALS, "FileNotFoundError 2")
    )


def test_another_experiment_cannot_be_found_or_hurt(field):
    alive, done = threading.Event(), threading.Event()
    results = []

    def wait(prompt_list):
        alive.set()
        done.wait(20)
        return "unhurt"

    def work():
        victim = "secret = 'hunter2' * 3\nprint(tools.text2image([]))"
        results.append(field.sandbox.run(victim, {"tools.text2image": wait}, {}, bounds=BOUNDS))

    thread = threading.Thread(target=work)
    thread.start()
    assert alive.wait(20)
    try:
        field.attack("pass")  # beside the victim: this starts the second zygote, which stays
        (outside,) = set(field.condition()["children"])
        pids = {outside, int(read_field(Path(f"/proc/{outside}/status"), "NSpid")[-1])}
        ways = ("os.kill({}, 9)", "os.kill({}, 19)", "raw(434, {}, 0)", "open('/proc/{}/mem', 'rb').read(1)")
        lines = [f"attempt('hurt', lambda: {way.format(pid)})" for pid in sorted(pids) for way in ways]
        field.must_fail("\n".join(lines), len(lines), by=(*REFUSALS, "FileNotFoundError 2"))
    finally:
        done.set()
        thread.join()
    assert (results[0].status, results[0].output) == ("ok", "unhurt\n")
    field.before |= {name: field.condition()[name] for name in ("processes", "descriptors")}


# --- the kernel ---------------------------------------------------------------------------------------

CALLS = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "execve": (59, 221),
    "execveat": (322, 281),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_setup": (206, 0),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "acct": (163, 89),
    "swapon": (167, 224),
    "settimeofday": (164, 170),
    "personality": (135, 92),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchownat": (260, 54),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "linkat": (265, 37),
    "symlinkat": (266, 36),
    "renameat2": (316, 276),
    "mknodat": (259, 33),
    "truncate": (76, 45),
    "fallocate": (285, 47),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "setpriority": (141, 140),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "capset": (126, 91),
    "mlock": (149, 228),
    "sync": (162, 81),
    "splice": (275, 76),
    "timer_create": (222, 107),
}
"""Name -> number on x86-64 and on 64-bit ARM."""
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_the_kernel_that_no_program_needs_is_refused(field, name):
    field.must_fail(f"attempt({name!r}, raw, {CALLS[name][COLUMN]}, 0, 0, 0, 0, 0, 0)", by=("PermissionError 1",))


@pytest.mark.parametrize(("name", "number"), [("clone3", 435), ("openat2", 437)])
def test_a_call_whose_arguments_cannot_be_looked_at_seems_unknown(field, name, number):
    field.must_fail(f"attempt({name!r}, raw, {number}, 0, 0)", by=("OSError 38",))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 alone has other conventions of calls")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("32-bit", b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"),  # getpid there; writev in the 64-bit table
        ("x32", b"\xb8\x27\x00\x00\x40\x0f\x05\xc3"),
    ],
)
def test_a_call_in_another_convention_ends_the_program(field, name, code):
    program = f"""
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write({code!r})
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
    result = field.attack(program)
    assert (result.status, result.output) == ("killed", "")


def test_machine_code_may_still_run(field):
    result = field.attack("print(ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)(), libc.abs(-3))")
    assert result.output == "7 3\n"
