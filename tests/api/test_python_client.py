"""The Python client against a served site: what it asks and reads, and each way in which that goes wrong."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.gallery.api import ObservationOut
from experiments.models import ApiToken, Image, LabelCheck, Observation, Run, TokenScope
from tests.support.api_world import KEY, PNG, World, fill
from tests.support.builders import make_run
from tests.support.python_client import CLIENT, answered, load_client, playing
from tests.support.served import served

TOKEN = "maia_secret"
PROBLEM = {"title": "Too many requests", "status": 429, "detail": "Go on in 1 s.", "errors": []}
EMPTY = {"items": [], "next": None}
HOSTILE = '"><script>alert(1)</script>\x1b[2J'
live = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis_url"),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
]


@pytest.fixture
def module() -> ModuleType:
    found = load_client()
    found.POLL_SECONDS = (0.05, 0.1)
    return found


@pytest.fixture
def world(transactional_db: None, owner: User) -> World:
    return fill(owner)


@pytest.fixture
def token(owner: User) -> tuple[ApiToken, str]:
    return ApiToken.issue(owner, "client", TokenScope.RUN)


@pytest.fixture
def maia(redis_url: str, world: World, token: tuple[ApiToken, str], module: ModuleType) -> Iterator[Any]:
    """The client of a researcher, on a site with one of each."""
    with served() as url:
        yield module.Maia(url, token[1])


class TestOnASite:
    pytestmark = live

    def test_a_question_becomes_one_run_for_one_key(self, maia: Any, owner: User) -> None:
        fields = {"model": "toybox", "layer": "layer4", "unit": 1, "backbone": "scripted"}
        run = maia.ask("What is it?", key="k1", **fields)
        assert (run.question, run.unit, run.owner) == ("What is it?", 1, owner.get_username())
        assert maia.ask("What is it?", key="k1", **fields).id == run.id
        assert maia.ask("What is it?", **fields).id != run.id

    def test_a_run_is_read_whole(self, maia: Any, world: World, module: ModuleType) -> None:
        run = maia.run(world.run.pk)
        assert [each["number"] for each in run.experiments()] == [1]
        table = run.observations()
        assert list(table.columns) == list(module.COLUMNS) == list(ObservationOut.model_fields)
        assert list(table["image"]) == [KEY] * 3
        assert list(make_table(maia, world).columns) == list(module.COLUMNS), "also where nothing was logged"
        assert run.images().png(0) == PNG
        assert [each["labels"] for each in maia.units(model="toybox")] == [["red balls"]]
        assert [each["rank"] for each in maia.exemplars("toybox", "layer4", 1, "toybox")] == [1]

    def test_runs_come_page_by_page(self, maia: Any, owner: User, module: ModuleType) -> None:
        module.PAGE_SIZE = 2
        numbers = [make_run(owner, unit=5).pk for _ in range(5)]
        assert [run.id for run in maia.runs(unit=5)] == numbers[::-1]
        assert [run.id for run in maia.runs(3, unit=5)] == numbers[:1:-1]

    def test_waiting_returns_what_was_concluded(self, maia: Any, owner: User, capsys: Any) -> None:
        done = make_run(owner, status="concluded", conclusion={"description": "Red.", "labels": ["red balls"]})
        run = maia.run(done.pk).wait()
        assert (run.description, run.labels) == ("Red.", ["red balls"])
        running = make_run(owner, status="running", rounds=2, limits={"rounds": 4})
        with pytest.raises(Exception, match=r"The time is up.*2 of 4 rounds"):
            maia.run(running.pk).wait(timeout=0.2)
        assert "████████████░░░░░░░░░░░░ 2 of 4 rounds" in capsys.readouterr().err

    def test_a_run_that_failed_is_told_with_its_reason(self, maia: Any, owner: User, module: ModuleType) -> None:
        failed = make_run(owner, status="failed", reason="The model is away.")
        with pytest.raises(module.MaiaError, match=f"Run {failed.pk} is failed: The model is away."):
            maia.run(failed.pk).wait()

    def test_checks_of_a_run_are_those_of_what_it_concluded(self, maia: Any, world: World, owner: User) -> None:
        unit = world.check.unit
        more = LabelCheck.objects.create(key="p", unit=unit, text=world.check.text, dataset="toybox", options={})
        LabelCheck.objects.create(key="q", unit=unit, text="something else", dataset="toybox", options={})
        run = make_run(owner, status="concluded", label_check=world.check)
        assert [each["id"] for each in maia.run(run.pk).checks()] == [more.pk, world.check.pk]
        assert maia.run(make_run(owner).pk).checks() == []

    def test_a_check_waits_for_its_figures_and_tells_why_there_are_none(
        self, maia: Any, world: World, owner: User, module: ModuleType
    ) -> None:
        run = make_run(owner, unit=1, status="concluded", conclusion={"labels": ["red balls"]})
        with pytest.raises(module.MaiaError, match="The time is up"):
            maia.run(run.pk).check(timeout=0.1)
        LabelCheck.objects.filter(runs=run).update(status="done", pearson=0.75, p_value=0.01, options={"judge": "clip"})
        assert maia.run(run.pk).check(timeout=60)["pearson"] == 0.75
        LabelCheck.objects.filter(runs=run).update(status="untestable", reason="Too rare.")
        with pytest.raises(module.MaiaError, match="untestable: Too rare"):
            maia.run(run.pk).check(timeout=60)
        with pytest.raises(module.MaiaError, match="has not ended") as found:
            maia.run(make_run(owner).pk).check()
        assert found.value.status == 409

    def test_ctrl_c_leaves_the_run_running_and_says_so(self, maia: Any, owner: User, token: Any) -> None:
        run = make_run(owner)
        # A test run in the background ignores SIGINT, and its children inherit that
        heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        code = f"{heeding}from maia_client import Maia; Maia().run({run.pk}).wait()"
        environment = {
            **os.environ,
            "MAIA_URL": maia._http.url,
            "MAIA_TOKEN": token[1],
            "PYTHONPATH": str(CLIENT.parent),
        }
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as waiting:
            assert waiting.stderr
            begun = waiting.stderr.read(8)
            waiting.send_signal(signal.SIGINT)
            said = (begun + waiting.stderr.read()).decode()
        assert f"Run {run.pk} continues: maia.run({run.pk}).wait() waits again" in said
        assert token[1] not in said
        run.refresh_from_db()
        assert run.status == "queued"

    def test_hostile_words_stay_words_in_a_notebook(self, maia: Any, world: World) -> None:
        Observation.objects.update(title=HOSTILE)
        shown = maia.run(world.run.pk).images()._repr_html_()
        assert shown.count('src="data:image/png;base64,') == 3
        assert "<script" not in shown
        assert "&quot;&gt;&lt;script&gt;" in shown
        assert "http" not in shown, "nothing is loaded from elsewhere"
        Image.objects.create(key="f" * 64, width=8, height=8, origin="generated")
        Observation.objects.update(image="f" * 64)
        assert "no image" in maia.run(world.run.pk).images()._repr_html_()

    def test_what_is_missing_or_wrong_is_told_in_the_words_of_the_problem(self, maia: Any, module: ModuleType) -> None:
        with pytest.raises(module.MaiaError) as found:
            maia.run(999)
        assert (found.value.status, found.value.title) == (404, "There is nothing here")
        assert "There is no run 999." in str(found.value)
        with pytest.raises(module.MaiaError) as found:
            maia.ask("What?", model="toybox", layer="layer4", unit=1, sead=3)
        assert found.value.status == 422
        assert "sead" in found.value.errors
        assert "sead" in str(found.value)
        with pytest.raises(module.MaiaError, match="Layers there: layer4"):
            maia.exemplars("toybox", "layer9", 1, "toybox")

    def test_a_revoked_token_is_told_and_never_shown(self, maia: Any, token: Any, module: ModuleType) -> None:
        token[0].revoke()
        with pytest.raises(module.MaiaError) as found:
            next(maia.runs())
        assert found.value.status == 401
        assert "Settings makes one" in str(found.value)
        told = "".join(traceback.format_exception(found.value)) + repr(maia) + repr(vars(maia)) + str(vars(maia._http))
        assert token[1] not in told

    def test_a_token_that_may_read_alone_asks_nothing(self, maia: Any, owner: User, module: ModuleType) -> None:
        reader = module.Maia(maia._http.url, ApiToken.issue(owner, "reader", TokenScope.READ)[1])
        before = Run.objects.count()
        with pytest.raises(module.MaiaError, match="Make another on the page Settings, Tokens") as found:
            reader.ask("What?", model="toybox", layer="layer4", unit=1)
        assert (found.value.status, Run.objects.count()) == (403, before)

    def test_the_page_of_the_api_offers_the_file_with_its_own_address(
        self, as_owner: Client, maia: Any, module: ModuleType
    ) -> None:
        page = as_owner.get("/api/v1/docs").content.decode()
        assert "http://testserver" in page
        assert "maia_…" in page
        assert 'href="/static/client/maia_client.py" download' in page
        found = maia._http.session.get(f"{maia._http.url}/static/client/maia_client.py", timeout=20)
        assert found.content == CLIENT.read_bytes()
        assert f'__version__ = "{module.__version__}"' in found.text


def make_table(maia: Any, world: World) -> Any:
    return maia.run(make_run(world.run.owner).pk).observations()


# --- connections that fail ---


def test_what_was_dropped_is_sent_again_with_the_same_key(module: ModuleType) -> None:
    with playing([b"", b"", answered(201, {"id": 3})]) as (url, requests):
        assert module.Maia(url, TOKEN).ask("What?").id == 3
    keys = {line for request in requests for line in request.splitlines() if line.startswith("Idempotency-Key")}
    assert (len(requests), len(keys)) == (3, 1)
    assert len({request.rpartition("\r\n\r\n")[2] for request in requests}) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_it_waits_as_long_as_it_is_told(module: ModuleType, status: int) -> None:
    with playing([answered(status, PROBLEM, Retry_After="0"), answered(200, EMPTY)]) as (url, requests):
        assert list(module.Maia(url, TOKEN).runs()) == []
    assert len(requests) == 2


@pytest.mark.parametrize("pause", ["3600", "Fri, 31 Dec 2199 23:59:59 GMT"])
def test_a_long_pause_is_told_rather_than_slept(module: ModuleType, pause: str) -> None:
    with (
        playing([answered(429, PROBLEM, Retry_After=pause)]) as (url, requests),
        pytest.raises(module.MaiaError, match="Go on in 1 s") as found,
    ):
        next(module.Maia(url, TOKEN).runs())
    assert (found.value.status, len(requests)) == (429, 1)


def test_the_token_follows_no_redirect(module: ModuleType) -> None:
    with (
        playing([answered(200, EMPTY)]) as (elsewhere, led),
        playing([answered(307, b"", Location=f"{elsewhere}/api/v1/runs")]) as (url, _),
        pytest.raises(module.MaiaError, match=f"sends on to {elsewhere}, and the token stays here"),
    ):
        list(module.Maia(url, TOKEN).runs())
    assert led == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answered(200, b"<html>hello"), "answered no JSON"),
        (answered(500, b"<html>broken"), "without a reason"),
        (answered(400, ["odd"]), "without a reason"),
        (answered(404, {"title": f"No {TOKEN}", "detail": f"\x1b[2J{TOKEN}"}), r"No …:  \[2J…"),
        (answered(200, b"[" + b" " * 2000), "ask for less at a time"),
    ],
    ids=["page", "broken", "odd", "echo", "long"],
)
def test_odd_answers_are_errors_in_words(module: ModuleType, answer: bytes, words: str) -> None:
    module.MAX_BYTES = 1000
    with playing([answer]) as (url, _), pytest.raises(module.MaiaError, match=words) as found:
        list(module.Maia(url, TOKEN).runs())
    assert TOKEN not in str(found.value) + str(vars(found.value))


def test_a_server_that_is_away_is_told(module: ModuleType) -> None:
    module.TRIES = 2
    with playing([b""]) as (url, _):
        pass
    with pytest.raises(module.MaiaError, match="cannot be reached: is it running"):
        list(module.Maia(url, TOKEN).runs())


@pytest.mark.parametrize(
    "url", ["", "maia.example.org", "ftp://maia.example.org", "https://", "https://h:x", "http://[", f"{TOKEN}_long"]
)
def test_an_odd_address_is_refused_with_the_remedy(module: ModuleType, url: str, monkeypatch: Any) -> None:
    monkeypatch.delenv("MAIA_URL", raising=False)
    with pytest.raises(module.MaiaError, match=r"as https://maia\.example\.org") as found:
        module.Maia(url, TOKEN)
    assert TOKEN not in str(found.value)


@pytest.mark.parametrize("url", ["https://me:word@maia.example.org", "https://maia.example.org/?a=b"])
def test_an_address_holds_a_place_alone(module: ModuleType, url: str) -> None:
    with pytest.raises(module.MaiaError, match="Leave out passwords") as found:
        module.Maia(url, TOKEN)
    assert "word@" not in str(found.value)
    assert (
        repr(module.Maia("https://maia.example.org/lab/api/v1/docs", TOKEN)) == "Maia('https://maia.example.org/lab')"
    )


@pytest.mark.parametrize("token", ["", "maia_a b", "maia_\r\nX-Other: 1", "maia_…"])
def test_an_odd_token_is_refused_and_not_shown(module: ModuleType, token: str, monkeypatch: Any) -> None:
    monkeypatch.delenv("MAIA_TOKEN", raising=False)
    with pytest.raises(module.MaiaError, match="Copy it whole from the page Settings, Tokens") as found:
        module.Maia("https://maia.example.org", token)
    assert not token or token not in str(found.value)


# --- the file ---


def test_a_table_without_pandas_is_refused_with_the_remedy(module: ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    run = module.MaiaRun(module.Maia("https://maia.example.org", TOKEN), {"id": 3})
    with pytest.raises(module.MaiaError, match="pip install pandas"):
        run.observations()


def test_the_file_needs_requests_alone() -> None:
    nodes = list(ast.walk(ast.parse(CLIENT.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in names}
    assert tops - sys.stdlib_module_names == {"requests", "pandas"}
    top_level = {
        alias.name
        for node in ast.parse(CLIENT.read_text()).body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert "pandas" not in top_level
