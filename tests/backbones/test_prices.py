"""What language models cost: the file of prices, and everything that is said and refused where no price is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from experiments.core import transcript
from experiments.exchange.tables import RUNS
from experiments.models import Backbone, Layer, Run, VisionModelRow
from experiments.runs.asking.form import QueryForm
from experiments.runs.asking.terminal import command_line
from maia_web.settings import price_file
from tests.support.builders import make_run
from tests.support.playback import CONCLUSION, Playback, end, kinds, new_run_log, play
from workers import registry
from workers.backbones.openai import pricing
from workers.backbones.openai.backbone import OpenAIChat
from workers.errors import MissingPart
from workers.prices import DEFAULT_PRICES, PriceList, read_prices
from workers.protocols import LabSettings, Price, Provider
from workers.record.decoding import decode
from workers.record.limits import Limits, Usage

LINE = '"{}" = {{ prompt = {}, completion = {} }}\n'
CACHED = LINE.format("a", 1, "1, cached = -1")


# --- the file -----------------------------------------------------------------------------------------


def test_an_admins_file_goes_before_what_is_shipped_and_holds_as_soon_as_it_is_written(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    prices = PriceList(own)
    assert prices["gpt-4o"] == (2.5, 10.0, 1.25)
    own.write_text("[models]\n" + LINE.format("gpt-4o", 1, 2) + LINE.format("qwen3-vl", 0, 0))
    own_share = (1.0, 2.0, 0.5)
    assert (prices["gpt-4o"], prices["qwen3-vl"]) == (own_share, (0.0, 0.0, None))
    own.write_text('[models]\n"gpt-4o" = { prompt = 1, cached = 0.7, completion = 2 }')
    assert prices["gpt-4o"] == (1.0, 2.0, 0.7)
    own.write_text("[models]\n" + LINE.format("qwen3-vl", 0, 0))
    assert prices["gpt-4.1"] == (2.0, 8.0, 0.5)
    own.unlink()
    assert "qwen3-vl" not in prices
    assert set(prices) == set(read_prices(DEFAULT_PRICES))


@pytest.mark.parametrize(
    "text",
    [
        "[models",
        "models = 3",
        '[models]\n"a" = 3',
        LINE.format("a", -1, 2),
        LINE.format("a", "inf", 1),
        LINE.format("a", 1, "1, cached = -1"),
    ],
)
def test_a_file_that_makes_no_sense_is_named_with_what_to_write(tmp_path: Path, text: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text if text.startswith(("[", "models")) else f"[models]\n{text}")
    with pytest.raises(MissingPart, match=rf"{own}.*prompt = 2.5"):
        PriceList(own)["gpt-4o"]


def test_the_old_form_of_the_setting_is_told_where_prices_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_OPENAI_PRICES", "gpt-4o=2.5/10")
    with pytest.raises(ImproperlyConfigured, match=r"under \[models\] in /state/prices.toml"):
        price_file("MAIA_OPENAI_PRICES", Path("/state/prices.toml"))


def test_a_backbone_offers_its_models_with_those_prices_that_are_known() -> None:
    settings = LabSettings(Path(), provider=Provider(models=("a", "b"), prices={"a": (1.0, 2.0)}))
    assert registry.list_prices(registry.BACKBONES, "openai", settings) == {"a": (1.0, 2.0)}
    assert registry.list_prices(registry.BACKBONES, "scripted", settings) == {}
    known = [OpenAIChat(settings.provider, model).price_known for model in ("a", "a-2024-01-01", "b")]
    assert known == [True, True, False]


PRIVATE = (
    *("localhost:11434", "127.3.0.1", "[::1]:80", "10.1.2.3", "a.local"),
    *("172.16.0.1", "172.31.255.1", "192.168.1.2:8000", "[fd00::1]"),
)
PUBLIC = ("172.32.0.1", "11.0.0.1", "local", "localhost.example.org", "[::2]", "[::1", "")


@pytest.mark.parametrize(("host", "free"), [*((each, True) for each in PRIVATE), *((each, False) for each in PUBLIC)])
def test_a_server_in_a_private_network_costs_nothing_unless_it_has_a_price(host: str, free: bool) -> None:
    url = f"http://{host}/v1" if host else ""
    provider = Provider(base_url=url, models=("a", "b"), prices={"b": Price(1.0, 2.0)})
    assert [OpenAIChat(provider, model).price_known for model in ("a", "b")] == [free, True]
    listed = registry.list_prices(registry.BACKBONES, "openai", LabSettings(Path(), provider=provider))
    assert listed == ({"a": (0.0, 0.0, None)} if free else {}) | {"b": (1.0, 2.0, None)}


# --- a limit that cannot hold ---------------------------------------------------------------------------


def test_what_a_model_without_a_price_took_has_no_known_cost_nor_has_any_sum_with_it() -> None:
    known, unknown = (pricing.price_usage(price, 1_000_000, 500_000) for price in (Price(1.0, 2.0), None))
    assert known == Usage(1_000_000, 500_000, 2.0)
    assert unknown == Usage(1_000_000, 500_000, priced=False)
    assert known + unknown == Usage(2_000_000, 1_000_000, 2.0, priced=False)


class Unpriced(Playback):
    label = "claude"
    price_known = False


@pytest.mark.parametrize(("cost", "expected"), [(5.0, ["blocked"]), (None, ["reply", "concluded"])])
def test_without_a_price_nothing_is_asked_under_a_limit_of_the_cost(cost: float | None, expected: list[str]) -> None:
    backbone = Unpriced(CONCLUSION, usage=Usage(10, 10, priced=False))
    run_log = play(backbone, run_log=new_run_log(limits=Limits(cost=cost)))
    assert kinds(run_log)[1:] == expected
    assert backbone.asked == ([] if cost else [1])
    if cost:
        told = end(run_log).reason
        assert "No price is known for claude, so the limit of $5" in told
        assert all(each in told for each in ("“Run without a known price”", "--unpriced", "MAIA_OPENAI_PRICES"))


@pytest.fixture
def offered(db: None) -> Backbone:
    model = VisionModelRow.objects.create(name="toybox")
    Layer.objects.create(model=model, name="layer4", path="layer4", kind="conv", units=96, position=1)
    prices = {"gpt-4o": [2.5, 10.0, 1.25]}
    names = ["claude", "gpt-4o"]
    return Backbone.objects.create(key="openai", label="Provider", model_names=names, prices=prices)


QUERY = {
    "question": "What?",
    "task": "describe",
    "model": "toybox",
    "layer": "layer4",
    "unit": "7",
    "toolset": "toybox",
    "backbone": "openai",
}


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({"backbone_model": "claude", "cost": "5"}, "refused"),
        ({"backbone_model": "claude", "cost": "5", "unpriced": "on"}, None),
        ({"backbone_model": "claude", "cost": ""}, None),
        ({"backbone_model": "gpt-4o", "cost": "5", "unpriced": "on"}, 5.0),
    ],
)
def test_the_form_wants_to_be_told_that_a_run_may_do_without_a_price(offered, owner: User, given, limit) -> None:
    form = QueryForm(QUERY | given)
    if limit == "refused":
        assert "Run without a known price" in form.errors["unpriced"][0]
    else:
        assert form.is_valid(), form.errors
        assert form.run(owner).limits["cost"] == limit


def test_page_api_and_commands_offer_the_same(offered, as_owner: Client) -> None:
    page = as_owner.get("/query/").content.decode()
    assert 'name="unpriced"' in page
    assert "claude · price unknown</option>" in page
    assert "gpt-4o</option>" in page
    assert "--unpriced" in command_line(QUERY | {"unpriced": "on"})
    body = QUERY | {"backbone_model": "claude", "unit": 7}
    refused = as_owner.post("/api/v1/runs", body, content_type="application/json")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "unpriced")
    made = as_owner.post("/api/v1/runs", body | {"unpriced": True}, content_type="application/json")
    assert made.json()["limits"]["cost"] is None
    settings = as_owner.get("/settings/models/").content.decode()
    assert "price unknown" in settings
    assert "$2.50 input, $1.25 cached, $10.00 output" in settings


# --- what is shown --------------------------------------------------------------------------------------


def unpriced_run(owner: User) -> Run:
    run = make_run(owner, limits={"rounds": 5, "tokens": None, "cost": None, "seconds": None})
    reply = {"round": 1, "author": "claude", "text": "Hm.", "prose": "Hm.", "hypotheses": [], "code": None}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 10, "cost": 0.0, "priced": False, "cached_tokens": 800}
    told = {
        "conclusion": None,
        "usage": usage,
        "seconds": 1.0,
        "provider_errors": ["It was silent."],
        "reasoning": "Two words",
    }
    transcript.append(run.pk, "reply", decode("reply", reply | told))
    run.refresh_from_db()
    return run


def test_a_cost_that_nobody_knows_is_called_so_everywhere(owner: User, as_owner: Client) -> None:
    run = unpriced_run(owner)
    assert (run.known_cost, run.tokens) == (None, 1_010)
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/?tab=cost", "/runs/?col=cost"):
        page = as_owner.get(address).content.decode()
        assert "price unknown" in page, address
        assert "$0.00" not in page, address
    other = make_run(owner)
    assert "price unknown" in as_owner.get(f"/compare/?run={run.pk}&run={other.pk}").content.decode()
    assert as_owner.get(f"/api/v1/runs/{run.pk}").json()["cost"] is None
    column = next(each for each in RUNS.columns if each.name == "cost")
    assert column.get(run) is None


def test_the_transcript_shows_what_came_between_and_what_was_thought_folded(owner: User, as_owner: Client) -> None:
    page = as_owner.get(f"/runs/{unpriced_run(owner).pk}/").content.decode()
    assert "<li>It was silent.</li>" in page
    assert "2 words, not part of the conversation" in page
    assert page.count("Two words") == 1
    assert "1k input tokens (800 cached)" in page
