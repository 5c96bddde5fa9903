"""Pages of sweeps: what they show, how light they are, and what a script and the command do with the same."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.models import Label, LabelCheck, Layer, Run, Sweep
from tests.support.api_world import Script
from tests.support.people import member
from tests.support.sweeps import create_sweep_runs, start
from tests.support.trials import unit

pytestmark = pytest.mark.django_db

FORM = {"model": "toybox", "layer": "layer3", "choose": "layers", "task": "describe", "agent": "scripted", "seed": "0"}

TESTED = [(0.9, 0.001), (0.8, 0.01), (0.3, 0.04), (-0.4, 0.05), (0.1, 0.9)]
"""r and the p-value of r = 0."""


def concluded(run: Run, text: str, r: float) -> None:
    place = unit(run.unit, Layer.objects.get(name=run.layer))
    check = LabelCheck.objects.create(key=f"{run.pk}", unit=place, text=text, options={}, pearson=r, status="done")
    Run.objects.filter(pk=run.pk).update(status="concluded", label_check=check, conclusion={"labels": [text]})
    Label.objects.create(text=text, source="run", run=run).units.add(place)


def test_without_a_sweep_the_list_says_what_one_is(as_owner: Client, client: Client) -> None:
    assert "asks one question of many units" in as_owner.get("/sweeps/").content.decode()


def test_the_form_says_what_it_would_take_and_starts_nothing(as_owner: Client, layers: list[Layer]) -> None:
    answer = as_owner.post("/sweeps/new/", FORM)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "<dt>Units</dt><dd><b>8</b>" in page
    assert "No run of scripted is recorded" in page
    assert not Sweep.objects.exists()


def test_what_is_wrong_is_told_and_nothing_typed_is_lost(as_owner: Client, layers: list[Layer]) -> None:
    file = SimpleUploadedFile("units.csv", b"layer3,99\n")
    sent = FORM | {"start": "yes", "question": "Why {unit}?", "file": file}
    answer = as_owner.post("/sweeps/new/", sent)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Line 1: There is no unit 99" in page
    assert "Why {unit}?" in page
    assert "layer3,99" in page
    assert not Sweep.objects.exists()


def test_a_sweep_is_started_and_shown(as_owner: Client, layers: list[Layer], redis_url: str) -> None:
    answer = as_owner.post("/sweeps/new/", FORM | {"start": "yes"})
    sweep = Sweep.objects.get()
    assert answer["Location"] == sweep.get_absolute_url()
    assert "0 of 8 done" in as_owner.get("/sweeps/1/".replace("1", str(sweep.pk))).content.decode()


@pytest.mark.parametrize("colour", ["status", "check", "label", "nothing"])
def test_its_page_shows_what_it_found(as_owner: Client, swept: Sweep, colour: str) -> None:
    one, two, three, *_ = swept.runs.order_by("pk")
    concluded(one, "red balls", 0.9)
    concluded(two, "a red ball", 0.1)
    Run.objects.filter(pk=three.pk).update(status="failed", reason="Out of <b>memory</b>.")
    page = as_owner.get(f"{swept.get_absolute_url()}?colour={colour}").content.decode()
    assert "2 of 8 done" in page
    assert "Out of &lt;b&gt;memory&lt;/b&gt;." in page
    assert "Retry 1 failed" in page
    assert f"?run={one.pk},{two.pk}" in page, "labels alike lead to their runs"
    assert f"red balls · r 0.90 · unit {one.unit}" in page
    wanted = {"status": "swept-failed", "check": "band-high", "label": "group-1"}
    assert f'class="{wanted.get(colour, "swept-failed")}"' in page


def test_a_page_of_many_runs_asks_little_of_the_database(as_owner: Client, owner: User, layers: list[Layer]) -> None:
    Layer.objects.filter(name="layer4").update(units=2_000)

    def read(sweep: Sweep) -> tuple[int, int]:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            answer = as_owner.get(sweep.get_absolute_url())
        return len(asked), len(answer.content)

    few = read(create_sweep_runs(start(owner, layer=["layer4"], choose="sample", sample=60)))
    many = read(create_sweep_runs(start(owner, layer=["layer4"])))
    assert many[0] == few[0] <= 40
    assert many[1] < 400_000


def test_a_viewer_sees_no_button_and_changes_nothing(teammate: User, swept: Sweep, client: Client) -> None:
    client.force_login(teammate)
    page = client.get(swept.get_absolute_url()).content.decode()
    assert "pause-sweep" not in page
    assert client.post(f"{swept.get_absolute_url()}pause/").status_code == 403


def test_what_cannot_be_done_is_told_on_the_page(as_owner: Client, swept: Sweep) -> None:
    answer = as_owner.post(f"{swept.get_absolute_url()}retry/", follow=True)
    assert "No run of this sweep has failed." in answer.content.decode()
    answer = as_owner.post(f"{swept.get_absolute_url()}change/", {"cost_limit": "lots"})
    assert answer.status_code == 400
    assert 'value="lots"' in answer.content.decode()
    assert "Enter a number, such as 5 or 0.50." in answer.content.decode()


def test_the_file_has_a_line_for_each_run(as_owner: Client, swept: Sweep) -> None:
    run = swept.runs.order_by("pk")[0]
    concluded(run, "=SUM(A1)", 0.5)
    first, second, *rest = as_owner.get(f"{swept.get_absolute_url()}runs.csv").content.decode("utf-8-sig").splitlines()
    assert first == "run,model,layer,unit,agent,status,label,r,q,cost"
    assert second == f"""{run.pk},toybox,layer3,{run.unit},"scripted, toybox",concluded,'=SUM(A1),0.5,,0.0"""
    assert len(rest) == 7


def test_labels_beyond_chance_are_counted_with_all_of_the_sweep_in_mind(as_owner: Client, swept: Sweep) -> None:
    for run, (r, p) in zip(swept.runs.order_by("pk"), TESTED, strict=False):
        concluded(run, f"label {run.pk}", r)
        LabelCheck.objects.filter(runs=run).update(p_value=p)
    page = as_owner.get(swept.get_absolute_url()).content.decode()
    assert "Beyond chance, 2 of 5 tested labels" in page
    lines = as_owner.get(f"{swept.get_absolute_url()}runs.csv").content.decode("utf-8-sig").splitlines()[1:6]
    assert [float(line.split(",")[-2]) for line in lines] == pytest.approx([0.005, 0.025, 0.0625, 0.0625, 0.9])
    told = as_owner.get(f"/api/v1/sweeps/{swept.pk}").json()
    assert (told["tested"], told["beyond_chance"]) == (5, 2)


def test_a_run_says_which_sweep_it_is_of_and_why_it_waits(as_owner: Client, swept: Sweep) -> None:
    as_owner.post(f"{swept.get_absolute_url()}pause/")
    page = as_owner.get(swept.runs.order_by("pk")[0].get_absolute_url()).content.decode()
    assert f"Sweep {swept.pk}</a>" in page
    assert "It waits with its sweep, which is paused." in page


def test_a_script_forecasts_starts_and_steers(owner: User, layers: list[Layer], redis_url: str) -> None:
    script = Script(owner)
    asked: dict[str, Any] = {"model": "toybox", "layers": ["layer3"], "agents": ["scripted"], "budget": {"cost": 5.0}}
    assert script.post("/sweeps/forecast", asked).json()["runs"] == 8
    made = script.post("/sweeps", asked)
    assert made.status_code == 201, made.content
    row = made.json()
    assert (row["planned"], row["status"], row["cost_limit"], row["left"]) == (8, "running", 5.0, 8)
    create_sweep_runs(Sweep.objects.get())
    assert script.get(f"/runs?sweep={row['id']}").json()["items"][0]["sweep"] == row["id"]
    assert script.post(f"/sweeps/{row['id']}/pause").json()["status"] == "paused"
    assert script.send("PATCH", f"/sweeps/{row['id']}", {"tokens": 10}).json()["token_limit"] == 10
    assert script.post(f"/sweeps/{row['id']}/stop").json()["status"] == "stopped"
    found = script.get(f"/sweeps/{row['id']}").json()
    assert (found["sweep"]["created_runs"], found["failures"], found["groups"]) == (8, [], [])
    wrong = script.post("/sweeps", asked | {"layers": ["layer9"]})
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "layer"


def test_the_command_starts_shows_and_steers(owner: User, layers: list[Layer], redis_url: str, tmp_path: Any) -> None:
    listed = tmp_path / "units.csv"
    listed.write_text("layer3,1\nlayer4,2\n")

    def told(*words: str) -> str:
        out = StringIO()
        call_command("sweep", *words, stdout=out, stderr=StringIO())
        return out.getvalue()

    assert told("start", "--units", str(listed), "--dry-run") == ""
    number = json.loads(told("start", "--units", str(listed), "--json"))["sweep"]
    assert json.loads(told("show", str(number), "--json"))["planned"] == 2
    assert "Paused: 0 of 2 done, 2 to come" in told("pause", str(number))
    assert "Running: 0 of 2 done" in told("resume", str(number), "--cost", "3")
    assert "2 units of 2 layers" in told("list")
    for words, problem in (
        (("start", "--layers", "layer9"), "There is none called “layer9”"),
        (("start", "--sample", "3", "--units", str(listed)), "in one way"),
        (("start", "--units", str(tmp_path / "none.csv")), "cannot be read"),
        (("retry", str(number)), "No run of this sweep has failed"),
        (("show", "99"), "There is no sweep 99"),
    ):
        with pytest.raises(CommandError, match=problem):
            told(*words)


def test_somebody_elses_sweep_is_not_stopped_by_a_script(swept: Sweep) -> None:
    other = Script(member("Cleo", "RESEARCHER"))
    assert other.post(f"/sweeps/{swept.pk}/stop").status_code == 403
    swept.refresh_from_db()
    assert swept.status == "running"


def test_ablation_is_an_option_of_each_run(as_owner: Client, layers: list[Layer], redis_url: str) -> None:
    as_owner.post("/sweeps/new/", FORM | {"start": "yes", "ablation": "on"})
    sweep = Sweep.objects.get()
    assert sweep.options["ablation"] is True
    create_sweep_runs(sweep)
    assert {run.options["ablation"] for run in sweep.runs.all()} == {True}


@pytest.mark.parametrize("ablation", [True, False])
def test_a_script_and_the_command_may_ask_for_ablation(
    owner: User, layers: list[Layer], redis_url: str, ablation: bool
) -> None:
    script = Script(owner)
    asked = {"model": "toybox", "layers": ["layer3"], "agents": ["scripted"], "ablation": ablation}
    assert script.post("/sweeps", asked).status_code == 201
    flag = ["--ablation"] if ablation else []
    call_command("sweep", "start", "--layers", "layer3", *flag, stdout=StringIO(), stderr=StringIO())
    assert [row.options.get("ablation", False) for row in Sweep.objects.all()] == [ablation, ablation]


def test_ablation_is_refused_if_one_of_the_layers_cannot(as_owner: Client, layers: list[Layer]) -> None:
    Layer.objects.filter(pk=layers[1].pk).update(kind="logit")
    sent = FORM | {"layer": [each.name for each in layers], "start": "yes", "ablation": "on"}
    answer = as_owner.post("/sweeps/new/", sent)
    assert answer.status_code == 400
    assert f"{layers[1].name}: A class is an output of the model itself" in answer.content.decode()
    assert not Sweep.objects.exists()
