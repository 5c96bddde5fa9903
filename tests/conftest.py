"""The cast, a database in a file (so that threads and processes share it), and a real Redis."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.people import member
from tests.support.quick_laboratory import draw_laboratory
from tests.support.redis_server import forget_broker, redis_binary
from tests.support.state_folders import copied, with_tables

if TYPE_CHECKING:
    from tests.support.object_store import ObjectStore
    from workers.sandbox.host import ZygoteSandbox

pytest_plugins = ["tests.support.fixtures"]
ROOT = Path(__file__).resolve().parent.parent
if "PYTEST_XDIST_WORKER" in os.environ:
    # Beside other processes a thread for each core slows all of them down; PyTorch reads this when it is loaded
    os.environ.setdefault("OMP_NUM_THREADS", "1")
STATE = Path(tempfile.mkdtemp(prefix="maia-test-"))
FIRST = (
    "house/test_whole_path_browser",
    "management/test_investigate",
    "management/test_up",
    "sandbox/test_attacks_ordinary",
    "runs/test_browser",
    "jobs/test_checks",
    "jobs/test_people",
    "jobs/test_grading",
    "house/test_keyboard_browser",
    "management/test_demo_whole",
    "house/test_walk_everything",
    "management/test_applications",
    "faults/test_campaign",
    "house/test_accessibility_browser",
    "house/test_faults",
    "house/test_odd_rows",
)
"""Files that take longest: begun first, so that the others run beside them. Those that mostly wait come first."""


def pytest_configure() -> None:
    """Nothing a test does touches the state of an installation."""
    from django.conf import settings

    settings.STATE = STATE
    settings.MEDIA_ROOT = STATE / "images"
    settings.STATIC_ROOT = STATE / "static"
    settings.STATIC_ROOT.mkdir()
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of the tests that take longer, read only the files that have some: to read all takes half a minute."""
    if config.option.markexpr == "more" and collection_path.suffix == ".py":
        return "mark.more" not in collection_path.read_text() or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; of all tests every n-th, where TESTS_EVERY says so."""
    items[:] = items[:: int(os.environ.get("TESTS_EVERY", "1"))]
    places = {ROOT / "tests" / f"{name}.py": place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_unconfigure() -> None:
    shutil.rmtree(STATE, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """SQLite's database is a copy of one that was migrated once for all processes."""
    from django.conf import settings

    return "sqlite3" in settings.DATABASES["default"]["ENGINE"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_keepdb: bool, request: pytest.FixtureRequest
) -> None:
    """Each process of those that run tests side by side has a database of its own. SQLite's is a file rather than in
    memory: threads have connections of their own, as in production."""
    from django.conf import settings

    if django_db_keepdb:
        database = STATE / "test.sqlite3"
        shutil.copy(request.getfixturevalue("migrated") / "maia.sqlite3", database)
        settings.DATABASES["default"]["TEST"]["NAME"] = str(database)


@pytest.fixture(autouse=True, scope="session")
def tables_emptied_between_tests() -> Iterator[None]:
    """The audit's triggers refuse to have it emptied: they are put aside for that moment."""
    import django.db.backends.postgresql.base
    import django.db.backends.sqlite3.base  # noqa: F401 - first: the tests' own database alone is loaded yet
    from django.db.backends.postgresql.operations import DatabaseOperations as OfPostgres
    from django.db.backends.sqlite3.operations import DatabaseOperations

    refusing = DatabaseOperations.execute_sql_flush

    def flush(operations: DatabaseOperations, statements: list[str]) -> None:
        with operations.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit_%'")
            triggers = cursor.fetchall()
            for name, _ in triggers:
                cursor.execute(f"DROP TRIGGER {name}")
            refusing(operations, statements)
            for _, sql in triggers:
                cursor.execute(sql)

    def truncate(operations: OfPostgres, statements: list[str]) -> None:
        switch = "ALTER TABLE experiments_auditentry {} TRIGGER USER"
        emptying(operations, [switch.format("DISABLE"), *statements, switch.format("ENABLE")])

    emptying = OfPostgres.execute_sql_flush
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OfPostgres, "execute_sql_flush", truncate)
        patch.setattr(DatabaseOperations, "execute_sql_flush", flush)
        yield


@pytest.fixture(autouse=True)
def voice_given_back() -> Iterator[None]:
    """A command that works without Redis silences the process it runs in: here that is everybody's."""
    from experiments.core import notify

    yield
    notify.muted.clear()


@pytest.fixture(scope="module")
def little_garbage() -> Iterator[None]:
    """What a module finds is passed over by collections of garbage: those of a whole process take long."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ZygoteSandbox]:
    """A zygote for the programs of a module's tests."""
    from workers.sandbox.host import ZygoteSandbox

    with ZygoteSandbox() as one:
        yield one


@pytest.fixture(scope="module")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store of objects for a module's tests."""
    from tests.support.object_store import ObjectStore

    with ObjectStore(tmp_path_factory.mktemp("store") / "weed") as one:
        yield one


@pytest.fixture
def owner(db: None) -> User:
    """A researcher, who asks the questions."""
    return member("owner", "RESEARCHER")


@pytest.fixture
def teammate(db: None) -> User:
    """A viewer of the same team."""
    return member("teammate", "VIEWER")


@pytest.fixture
def stranger(db: None) -> User:
    """Somebody with an account and no role."""
    return User.objects.create_user("stranger", password="correct horse battery")


@pytest.fixture
def as_owner(client: Client, owner: User) -> Client:
    """A browser session of the owner's."""
    client.force_login(owner)
    return client


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The address of a real, private Redis on a socket."""
    folder = Path(tempfile.mkdtemp(prefix="maia-redis-"))
    address = folder / "redis.sock"
    command = [redis_binary(), "--port", "0", "--unixsocket", str(address), "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        while not address.exists():
            assert server.poll() is None, "redis-server did not start"
            time.sleep(0.02)
        yield f"unix://{address}"
        server.terminate()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def redis_url(redis_server: str, settings) -> Iterator[str]:
    """An empty Redis that channels, Celery and `experiments.core.notify` use for the length of one test."""
    from celery import current_app
    from channels.layers import channel_layers
    from redis import Redis

    from experiments.core import notify

    notify.end()
    settings.REDIS_URL = redis_server
    host = {"address": redis_server, "socket_timeout": 8}
    layer = {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [host]}}
    settings.CHANNEL_LAYERS = {"default": layer}
    channel_layers.backends.clear()
    before = current_app.conf.broker_url
    current_app.conf.broker_url = redis_server.replace("unix://", "redis+socket://")
    forget_broker()
    with Redis.from_url(redis_server) as connection:
        connection.flushall()
    yield redis_server
    current_app.conf.broker_url = before
    forget_broker()
    notify.end()
    channel_layers.backends.clear()


@pytest.fixture(scope="session")
def quick_laboratory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with toybox's first scenes drawn and indexed, for installations that tests start."""
    return copied(made_once(tmp_path_factory, "laboratory", draw_laboratory), tmp_path_factory.mktemp("state"))


@pytest.fixture
def on_toybox(quick_laboratory: Path, settings: Any) -> Iterator[None]:
    """This process plays on the quick laboratory, which is shared: what a test writes there, later tests see."""
    yield from _play_on(quick_laboratory, settings)


@pytest.fixture
def on_own_toybox(quick_laboratory: Path, tmp_path: Path, settings: Any) -> Iterator[None]:
    """This process plays on a copy of it, without the auto-encoders that others left there."""
    state = copied(quick_laboratory, tmp_path / "own")
    shutil.rmtree(state / "sparse", ignore_errors=True)
    yield from _play_on(state, settings)


def _play_on(state: Path, settings: Any) -> Iterator[None]:
    from tests.support.quick_laboratory import QUICK_IMAGES
    from workers.jobs.laboratory import build_laboratory

    settings.STATE, settings.LAB_DATASET_IMAGES = state, QUICK_IMAGES
    build_laboratory.cache_clear()
    yield
    build_laboratory.cache_clear()


@pytest.fixture
def no_redis() -> None:
    """This process works without Redis."""
    from experiments.core import notify

    notify.muted.set()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with an empty database, whose tables take an installation longer to make than to copy."""
    return made_once(tmp_path_factory, "migrated", migrate)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder: of processes that run tests side by side the first makes it, the others wait for it."""
    base = factory.getbasetemp()
    made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = made.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)  # of a process that died meanwhile
            make(part)
            part.rename(made)
    return made


def migrate(state: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    command = [sys.executable, "manage.py", "migrate", "-v0"]
    subprocess.run(command, cwd=ROOT, env=own | {"MAIA_STATE": str(state)}, check=True)


@pytest.fixture(scope="module")
def quick_state(quick_laboratory: Path, migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the quick laboratory and an empty database in it, for one installation."""
    return with_tables(migrated, copied(quick_laboratory, tmp_path_factory.mktemp("state")))


@pytest.fixture
def quick_state_copy(quick_laboratory: Path, tmp_path: Path) -> Path:
    """Another one, without a database."""
    return copied(quick_laboratory, tmp_path / "state")
