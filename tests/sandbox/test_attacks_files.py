"""Programs that want files: other people's, the installation's, the kernel's; or to write where they should not."""

import os
import threading
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.attack_range import BOUNDS, REFUSALS, ranges, secret_in, unharmed

sandbox, field = ranges(), unharmed()

PLACES = [
    "/etc/passwd",
    "/etc/shadow",
    "/etc/hostname",
    "/proc/self/environ",
    "/proc/self/maps",
    "/proc/self/mem",
    "/proc/1/environ",
    "/proc/meminfo",
    "/proc/net/tcp",
    "/sys/kernel/security/lsm",
    "/sys/class/net/lo/address",
    "/dev/mem",
    "/dev/tty",
    "/var/log/syslog",
    str(Path.home() / ".ssh/id_ed25519"),
    str(Path.home() / ".bash_history"),
    str(ROOT / "maia_web/settings.py"),
    str(ROOT / "workers/sandbox/jail.py"),
    str(ROOT / ".git/config"),
    str(ROOT / "var/maia.sqlite3"),
]
HERE = [path for path in PLACES if os.path.exists(path)]  # noqa: PTH110 Path.exists raises where it may not look


@pytest.mark.parametrize("path", HERE)
def test_a_file_elsewhere_cannot_be_read(field, path):
    field.must_fail(f"attempt('read', lambda: open({path!r}, 'rb').read(100))")


@pytest.mark.parametrize(
    "name", ["environ", "maps", "mem", "cmdline", "status", "fd/0", "cwd/README.md", "root/etc/passwd"]
)
def test_nothing_can_be_read_of_the_worker_and_the_zygote(field, name):
    pids = {"worker": os.getpid(), "zygote": field.condition()["zygote"]}
    program = "".join(
        f"attempt('{who}', lambda: open('/proc/{pid}/{name}', 'rb').read(100))\n" for who, pid in pids.items()
    )
    field.must_fail(f"{program}attempt('parent', lambda: open(f'/proc/{{os.getppid()}}/{name}', 'rb').read(100))", 3)


@pytest.mark.parametrize(
    "way",
    [
        "open({path!r}).read()",
        "os.open({path!r}, os.O_RDONLY)",
        "os.open({path!r}, os.O_RDWR)",
        "open(os.path.relpath({path!r})).read()",
        "open('/usr/lib/../..' + {path!r}).read()",
        "open('/proc/self/root' + {path!r}).read()",
        "open('/dev/fd/../root' + {path!r}).read()",
        "os.read(os.open({name!r}, os.O_RDONLY, dir_fd=os.open({folder!r}, os.O_PATH)), 9)",
        "[os.chdir({folder!r}), open({name!r}).read()]",
        "os.open('/proc/self/fd/%d' % os.open({path!r}, os.O_PATH), os.O_RDONLY)",
        "ctypes.string_at(libc.mmap(None, 9, 1, 2, os.open({path!r}, os.O_RDONLY), 0), 9)",
        "[os.symlink({path!r}, 'link'), open('link').read()]",
        "[os.link({path!r}, 'link'), open('link').read()]",
        "__import__('shutil').copy({path!r}, 'copy')",
        "__import__('sqlite3').connect({path!r}).execute('select 1 from sqlite_master').fetchall()",
        "__import__('runpy').run_path({path!r})",
        "__import__('zipfile').ZipFile({path!r})",
        "Image.open({path!r})",
    ],
)
def test_no_way_leads_to_a_file_elsewhere(field, tmp_path, way):
    path = secret_in(tmp_path / "theirs")
    words = way.format(path=str(path), folder=str(path.parent), name=path.name)
    field.must_fail(f"attempt('read', lambda: {words})", by=(*REFUSALS, "OperationalError "))


@pytest.mark.parametrize(
    "way",
    [
        "open({path!r}, 'w')",
        "open({path!r}, 'a')",
        "open({folder!r} + '/new', 'w')",
        "os.open({path!r}, os.O_RDONLY | os.O_TRUNC)",
        "os.open({path!r}, 3 | os.O_TRUNC)",
        "os.open({path!r}, os.O_RDONLY | os.O_CREAT | os.O_TRUNC)",
        "os.open({folder!r}, os.O_TMPFILE | os.O_RDWR)",
        "os.truncate({path!r}, 0)",
        "os.remove({path!r})",
        "os.mkdir({folder!r} + '/new')",
        "os.rmdir({folder!r})",
        "os.rename({path!r}, 'mine')",
        "os.replace(open('mine', 'w').name, {path!r})",
        "os.symlink('/etc', {folder!r} + '/link')",
        "os.link({path!r}, {folder!r} + '/link')",
        "os.mkfifo({folder!r} + '/fifo')",
        "os.mknod({folder!r} + '/node')",
        "os.chmod({path!r}, 0)",
        "os.chmod({folder!r}, 0o777)",
        "os.fchmod(os.open({path!r}, os.O_PATH), 0)",
        "os.chown({path!r}, 1, 1)",
        "os.utime({path!r}, (1, 1))",
        "os.setxattr({path!r}, 'user.a', b'b')",
    ],
)
def test_no_way_changes_a_file_elsewhere(field, tmp_path, way):
    path = secret_in(tmp_path / "theirs")
    before = path.stat()
    words = way.format(path=str(path), folder=str(path.parent))
    field.must_fail(f"attempt('change', lambda: {words})")
    assert path.read_text() == "hunter2"
    assert (path.stat().st_mode, path.stat().st_mtime, path.stat().st_uid) == (
        before.st_mode,
        before.st_mtime,
        before.st_uid,
    )
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("folder", ["/", "/etc", "/home", "/proc", "/tmp", "/dev", "..", str(ROOT), str(Path.home())])
def test_no_folder_elsewhere_can_be_listed(field, folder):
    field.must_fail(
        f"attempt('list', lambda: os.listdir({folder!r}))\nattempt('walk', lambda: next(os.scandir({folder!r})))", 2
    )


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/var/tmp", "/usr/lib", "os.__file__", "Image.__file__", ".."])
def test_nothing_can_be_written_outside_its_own_folder(field, folder):
    where = f"os.path.dirname({folder})" if folder.endswith("__") else repr(folder)
    field.must_fail(f"attempt('write', lambda: open({where} + '/maia_was_here', 'w'))")


def test_the_installed_packages_cannot_be_changed(field):
    field.must_fail(
        "attempt('patch', lambda: open(Image.__file__, 'r+'))\n"
        "attempt('add', lambda: os.mkdir(os.path.dirname(os.__file__) + '/x'))",
        2,
    )


def test_another_runs_folder_stays_closed(field):
    said = []
    written, read = threading.Event(), threading.Event()

    def wait(prompt_list):
        said.append(prompt_list[0])
        written.set()
        read.wait(20)

    victim = "import os\nopen('secret', 'w').write('hunter2')\ntools.text2image([os.getcwd()])"
    thread = threading.Thread(
        target=field.sandbox.run, args=(victim, {"tools.text2image": wait}, {}), kwargs={"bounds": BOUNDS}
    )
    thread.start()
    assert written.wait(20)
    try:
        # Programs that run side by side have a zygote each, and their folders lie apart.
        for path in (said[0], "/." + said[0]):
            field.must_fail(
                f"attempt('list', os.listdir, {path!r})\n"
                f"attempt('read', lambda: open({path!r} + '/secret').read())\n"
                f"attempt('write', lambda: open({path!r} + '/mine', 'w'))\n"
                f"attempt('delete', os.remove, {path!r} + '/secret')\n",
                4,
            )
        assert (Path(said[0]) / "secret").read_text() == "hunter2"
    finally:
        read.set()
        thread.join()
    now = field.condition()  # the zygote of the neighbour stays, for the next program that runs beside another
    field.before |= {name: now[name] for name in ("processes", "descriptors")}


def test_its_own_folder_is_its_own(field):
    program = """
import tempfile
os.makedirs("results/deep", exist_ok=True)
Image.new("RGB", (4, 4), "red").save("results/deep/a.png")
print(Image.open("results/deep/a.png").getpixel((0, 0)), os.listdir())
with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(suffix=".jpg") as file:
    Image.new("RGB", (4, 4)).save(file.name)
"""
    result = field.attack(program)
    assert (result.error, result.output) == ("", "(255, 0, 0) ['results']\n")


def test_a_refusal_says_what_a_program_may_reach(field):
    result = field.attack("open('/etc/passwd')")
    assert result.status == "program_error"
    assert "PermissionError" in result.error
    assert "may write files in its own folder" in result.error
