"""What may import what: the rules that keep the laboratory, the pages, the plug-ins and the tests apart."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests import ROOT

OURS = ("maia_web", "experiments", "workers")
WEB = ("django", "channels", "celery", "experiments", "maia_web")
PURE = (
    "workers.registry",
    "workers.errors",
    "workers.record",
    "workers.agent.conversation",  # which MCP clients read as agents do
    "workers.protocols",
    "workers.toybox.world.concepts",
    "workers.toybox.world.label_words",
    "workers.toybox.world.scenes",
    "workers.toybox.world.words",
)
"""What reads stored events and labels: plain Python, which the web may load."""
FOR_COMMANDS = ("workers.jobs", *PURE)
PLUGINS = ("backbones", "vision_models", "image_models", "detectors", "judges", "datasets", "systems", "toybox")
"""Folders of plug-ins; toybox is one plug-in that fills a folder of its own."""
FOR_PLUGINS = (
    "workers.protocols",
    "workers.record",
    "workers.errors",
    "workers.model_cache",
    "workers.files",
    "workers.hub",
    "workers.git_lfs",
    "workers.weights",
    "workers.registry",
    "workers.lab.decoding",
    "workers.lab.imaging",
    "workers.metrics.intervals",  # pure numbers
    "workers.metrics.ranking",
    "workers.metrics.significance",
    "workers.sparse.storage",  # files, as `files` and `weights`
    "workers.systems.indexed",  # no plug-ins but what several of them are made on
    "workers.systems.unit",
    "workers.vision_models.single_file",
    "workers.vision_models.centre_crop",
    "workers.vision_models.rewriting",
    "workers.vision_models.state_dicts",
    "workers.vision_models.torchvision_resnet.network",
)
OUTSIDE = ("management", "urls", "system_checks", "admin", "apps")
_, _, DRAWING = (ROOT / "CONTRIBUTING.md").read_text().partition("## Rooms and imports")
ROOMS = tuple(
    room for room in re.findall(r"\w+", DRAWING.split("```text\n")[1].split("\n\n")[0]) if room not in OUTSIDE
)
"""The rooms of `experiments/`, each standing on those before it, as CONTRIBUTING.md draws them. What a room needs of a
later one comes by a template tag, by registration when the app is ready, or as a column that its owner projects."""
HEAVY = ("torch", "panda3d", "transformers", "diffusers", "datasets", "openai", "safetensors")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for top in OURS for path in sorted((ROOT / top).rglob("*.py"))}
TESTS = {module_name(path): path for path in sorted((ROOT / "tests").rglob("*.py"))}


@cache
def imports(name: str) -> tuple[str, ...]:
    """Dotted names of all that a module imports, wherever in it; relative imports in full."""
    path, found = MODULES.get(name) or TESTS[name], []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            found += [f"{source}.{alias.name}" for alias in node.names]
    return tuple(found)


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def modules(*packages: str, but: tuple[str, ...] = ()) -> list[str]:
    return [name for name in MODULES if within(name, *packages) and not within(name, *but)]


def taken(names: Iterable[str], *packages: str, but: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """What these modules import of the packages, but not of the others: importer and imported."""
    return [
        (name, each) for name in names for each in imports(name) if within(each, *packages) and not within(each, *but)
    ]


LABORATORY = modules("workers", but=("workers.jobs",))


def test_in_workers_only_jobs_know_the_web() -> None:
    assert taken(LABORATORY, *WEB) == []


def test_pages_take_what_is_plain_from_workers_and_commands_their_jobs_too() -> None:
    assert taken(modules("experiments.management"), "workers", but=FOR_COMMANDS) == []
    assert taken(modules("experiments", "maia_web", but=("experiments.management",)), "workers", but=PURE) == []


def room_of(name: str) -> str:
    return name.split(".")[1]


def arrows() -> dict[str, set[str]]:
    """Room of `experiments/` -> the rooms that its modules import, wherever in them."""
    found: dict[str, set[str]] = {}
    for name in modules("experiments", but=("experiments.migrations",)):
        if "." in name:
            others = {room_of(each) for each in imports(name) if each.startswith("experiments.")}
            found.setdefault(room_of(name), set()).update(others & {*ROOMS, *OUTSIDE} - {room_of(name)})
    return found


def test_a_room_imports_only_what_stands_before_it() -> None:
    order = {room: place for place, room in enumerate((*ROOMS, *OUTSIDE))}
    drawn = arrows()
    assert set(drawn) <= set(order), "a new room has its place in the drawing of CONTRIBUTING.md"
    assert {room for room in ROOMS if not (ROOT / "experiments" / room).is_dir()} == set()
    upwards = {f"{room} -> {other}" for room, others in drawn.items() for other in others if order[other] > order[room]}
    assert upwards == set()


def is_outside(name: str) -> bool:
    """Whether a module adapts: a page or an operation of the API."""
    return within(name, "experiments") and name.rpartition(".")[2].rpartition("_")[2] in {"pages", "api"}


def test_what_adapts_is_reached_by_addresses_alone() -> None:
    """Pages and operations share by actions and lists; only what stands beside them in a room takes pieces of them."""
    wrong = []
    for name, each in taken(modules("experiments"), "experiments"):
        target = each if each in MODULES else each.rpartition(".")[0]
        if target != name and is_outside(target) and target in MODULES:
            kind = target.rpartition(".")[2].rpartition("_")[2]
            beside = is_outside(name) and name.endswith(kind) and room_of(name) == room_of(target)
            if not (beside or name.endswith("urls") or within(name, "experiments.api")):
                wrong.append(f"{name} -> {target}")
    assert wrong == []


def test_a_plugin_knows_the_contracts_and_no_other_plugin() -> None:
    plugins = modules(*(f"workers.{kind}" for kind in PLUGINS))
    assert plugins
    foreign = taken(plugins, "workers", but=FOR_PLUGINS)
    assert [(name, each) for name, each in foreign if not within(each, own_package(name))] == []


def own_package(plugin: str) -> str:
    """A plug-in is a module or a package: `workers.backbones.person`, `workers.backbones.openai`; or all of toybox."""
    return ".".join(plugin.split(".")[: 2 if within(plugin, "workers.toybox") else 3])


def test_tests_share_by_support_alone() -> None:
    """They import no other test and no conftest, whose fixtures come by their names."""
    own = re.compile(r"tests\.(\w+\.)*(test_\w+|conftest)\b")
    assert [(name, each) for name in TESTS for each in imports(name) if own.match(each)] == []


def test_toybox_is_reached_through_the_registry_alone() -> None:
    assert taken(modules("workers", but=("workers.toybox",)), "workers.toybox") == []


def test_the_registry_needs_the_standard_library_alone() -> None:
    ours = {"workers.errors.UnknownName"}
    others = {i.partition(".")[0] for i in imports("workers.registry") if i not in ours}
    assert others <= sys.stdlib_module_names
    assert imports("workers.errors") == ()


WEB_PROCESS = """
import sys
import maia_web.asgi
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
print(*sys.modules)
"""


def test_the_web_process_loads_no_laboratory(tmp_path: Path) -> None:
    pages = modules("experiments", but=("experiments.migrations",))
    jobs = ["experiments.core.queue", "workers.jobs.rounds", "workers.jobs.long", "workers.jobs.recovery"]
    loaded = run_python(WEB_PROCESS, *pages, *jobs, state=tmp_path).stdout.split()
    drawing = ("workers.toybox.world.render", "workers.toybox.networks.nets", "workers.toybox.networks.detection")
    assert [name for name in loaded if within(name, *HEAVY, *drawing, "workers.lab.laboratory")] == []


WATCHED = """
import logging, sys
sys.dont_write_bytecode = True

def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        did.append(f"{event} {arguments[0]}")
    if event in {"os.mkdir", "socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "os.forkpty"}:
        did.append(f"{event} {arguments}")

from importlib import import_module
for name in ["torch", "safetensors.torch", "panda3d.core", "PIL.Image", "asyncio"]:
    import_module(name)  # what others do when imported is not ours to judge
handlers = list(logging.getLogger().handlers)
did = []
sys.addaudithook(watch)
for name in sys.argv[1:]:
    import_module(name)
    if did:
        sys.exit(f"{name}: {did}")
if logging.getLogger().handlers != handlers:
    sys.exit("logging was set up")
if sys.modules["torch"].cuda.is_initialized():
    sys.exit("the GPU was probed")
"""


def test_importing_the_laboratory_does_nothing(tmp_path: Path) -> None:
    run_python(WATCHED, *LABORATORY, state=tmp_path)


SET_UP = "import maia_web.asgi  # the entry point of a process: it sets Django and logging up\n"


def test_importing_pages_and_jobs_does_nothing(tmp_path: Path) -> None:
    run_python(SET_UP + WATCHED, *(name for name in MODULES if name not in LABORATORY), state=tmp_path)


def run_python(program: str, *arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "MAIA_STATE": str(state),
        "MAIA_SECRET_KEY": "only for this test",
        "DJANGO_SETTINGS_MODULE": "maia_web.settings",
    }
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done
