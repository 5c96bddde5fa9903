"""`manage.py investigate`: the whole path in the foreground, without Redis or a worker, on the real laboratory."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from experiments.management.commands.investigate import suggest_question
from experiments.models import Event, Experiment, Hypothesis, Image, Label, Observation, Run
from tests.support.builders import make_run, replied
from tests.support.installation import ROOT
from tests.support.sparse_layers import save_random
from workers.jobs import registration
from workers.jobs.console import Console, ConsoleRunLog
from workers.jobs.images import ImagesInDatabase
from workers.jobs.laboratory import laboratory
from workers.jobs.plugin_keys import system_named
from workers.record.events import Note

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_own_toybox")]
UNIT = ("--model", "toybox", "--layer", "layer4", "--unit", "12")


def investigate(*options: str) -> str:
    out = StringIO()
    call_command("investigate", *options, stdout=out)
    return out.getvalue()


def test_it_concludes_and_keeps_everything(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(investigate(*UNIT, "--json"))
    run = Run.objects.get()
    assert set(told) == {
        "run", "status", "reason", "rounds", "experiments", "observations", "description", "labels", "seconds",
        "question", "task", "bias", "reasoning", "hypotheses", "exemplar_mean", "best_activation",
        "prompt_tokens", "completion_tokens", "cost", "check", "grades", "domain", "code", "biases",
    }  # fmt: skip
    assert told["check"]["status"] == "done"
    assert run.label_check is not None
    assert (told["run"], told["status"], told["labels"]) == (run.pk, "concluded", run.labels)
    assert told["rounds"] == run.rounds == Event.objects.filter(kind="reply").count()
    assert told["experiments"] == Experiment.objects.count() > 1
    assert told["observations"] == Observation.objects.count() > 20
    assert told["description"]
    assert (told["cost"], told["prompt_tokens"], told["exemplar_mean"]) == (0.0, run.prompt_tokens, run.exemplar_mean)
    last = Hypothesis.objects.filter(run=run, round=run.hypotheses.latest("round").round)
    assert [each["text"] for each in told["hypotheses"]] == [each.text for each in last]
    assert {each["status"] for each in told["hypotheses"]} <= {"open", "supported", "refuted"}
    assert Label.objects.filter(run=run).count() == len(told["labels"]) > 0
    assert not Observation.objects.filter(masked=None).exists()
    raw = set(Observation.objects.values_list("image_id", flat=True))
    assert set(Image.objects.filter(key__in=raw).values_list("raw", flat=True)) == {""}
    assert "Round 1" in capsys.readouterr().err


def test_a_latent_is_investigated_like_a_unit_with_as_many_exemplars_as_aim_takes() -> None:
    save_random(laboratory().settings.state, latents=24, k=8)
    registration.model("sae:random")
    statistics = laboratory().index("sae:random", "toybox").layer("layer4")
    asked = ("--model", "sae:random", "--layer", "layer4", "--unit", str(int(statistics.active.argmax())))
    told = json.loads(investigate(*asked, "--exemplars", "5", "--json"))
    run = Run.objects.get()
    assert (run.system_kind, run.toolset, run.options["exemplars"]) == ("latent", "toybox", 5)
    shown = Observation.objects.filter(origin="exemplar", experiment__number=1).values_list("activation", flat=True)
    assert len(shown) == 5
    assert told["exemplar_mean"] == pytest.approx(sum(shown) / 5, abs=1e-3)
    assert (told["status"], told["check"]["status"]) == ("concluded", "done")


def test_the_same_seed_gives_the_same_run() -> None:
    asked = (*UNIT, "--json", "--seed", "5", "--max-rounds", "2")
    first, second = (json.loads(investigate(*asked)) for _ in range(2))
    for told in (first, second):
        told.pop("run"), told.pop("seconds")
    assert first == second


def test_a_round_limit_ends_it_with_the_best_conclusion_so_far() -> None:
    told = json.loads(investigate(*UNIT, "--json", "--max-rounds", "2"))
    assert told["status"] == "limit_reached"
    assert "2 rounds" in told["reason"]
    assert told["description"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--model", "toybix", "--layer", "layer4", "--unit", "1"), "Choose one of: toybox"),
        (("--layer", "layer4", "--unit", "seven"), "whole number"),
        (("--layer", "logits", "--unit", "no such class"), "or the name of one"),
        ((*UNIT, "--dataset", "/no/such/folder"), "no dataset or folder '/no/such/folder'"),
        ((*UNIT, "--toolset", "diffusion"), "scripted scientist knows toybox"),
        (("--layer", "layer9", "--unit", "1"), "layer4"),
        (("--layer", "layer4", "--unit", "100000"), "has units 0 to 95"),
        (("--layer", "layer4", "--unit=-1"), "has units 0 to 95"),
        ((*UNIT, "--question", "  "), "question is empty"),
        ((*UNIT, "--question", "x" * 100_000), "Shorten it"),
        ((*UNIT, "--max-rounds", "0"), "above 0"),
        ((*UNIT, "--max-seconds", "inf"), "'inf' is no number above 0.*\"none\" for no limit"),
        ((*UNIT, "--seed", "2147483648"), "no whole number from 0 to 2147483647"),
        ((*UNIT, "--max-cost", "cheap"), "'cheap' is no number above 0"),
        (("--layer", "layer4"), "Say which unit"),
        (("--layer", "logits", "--unit", "3", "--ablation"), "is the output itself.*Or ask without ablation"),
        (("--resume", "77"), "There is no run 77"),
        (("--fork", "77", "--round", "1"), "There is no run 77"),
    ],
)
def test_it_refuses_what_makes_no_sense_and_saves_nothing(options: tuple[str, ...], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        investigate(*options)
    assert not Run.objects.exists()


def test_for_a_person_it_makes_the_run_and_says_whose_turn_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(
        investigate(
            *UNIT, "--backbone", "person", "--surroundings", "dark", "--reflections", "2", "--ablation", "--json"
        )
    )
    assert (told["status"], told["rounds"], told["description"]) == ("waiting", 0, "")
    assert Run.objects.get().options["surroundings"] == "dark"
    assert Run.objects.get().options["reflections"] == 2
    assert Run.objects.get().options["ablation"] is True
    assert "Round 1 is yours to write, on its page." in capsys.readouterr().err


def test_a_model_without_a_price_wants_leave(settings) -> None:
    settings.OPENAI_BASE_URL, settings.OPENAI_ATTEMPTS = "http://0.0.0.0:9/v1", 1
    asked = (*UNIT, "--backbone", "openai", "--backbone-model", "qwen")
    with pytest.raises(CommandError, match=r"No price is known for qwen.*\(--unpriced\).*MAIA_OPENAI_PRICES"):
        investigate(*asked)
    assert not Run.objects.exists()
    with pytest.raises(CommandError, match=r"The run waits: .*cannot be reached"):
        investigate(*asked, "--unpriced")
    assert Run.objects.get().limits["cost"] is None


def test_the_question_it_asks_by_itself_names_the_class_of_a_logit() -> None:
    for unit in ("38", "day"):
        spec = system_named("toybox", "logits", unit)
        assert "“day” (unit 38 of logits)" in suggest_question(spec, "bias")
        assert "“day” (unit 38 of logits)" in suggest_question(spec, "spurious")
    assert suggest_question(system_named("toybox", "layer4", "7"), "describe").startswith("What does unit 7 of layer4")


def test_the_transcript_of_a_run_does_nothing_to_the_terminal(owner: User) -> None:
    hostile = "\x1b]0;ours\x07\x1b[2J\x9b2J\x7f\u202etxt"
    shown = StringIO()
    run_log = ConsoleRunLog(make_run(owner), ImagesInDatabase(), threading.Event(), Console(shown))
    run_log.append("reply", replied(author=hostile, text=hostile))
    run_log.append("note", Note(1, hostile, hostile))
    assert shown.getvalue().count("\\u001b]0;ours\\u0007\\u001b[2J\\u009b2J\\u007f\\u202etxt") == 4
    assert all(each.isprintable() or each == "\n" for each in shown.getvalue())


@pytest.mark.more
def test_on_a_fresh_state_folder_ctrl_c_pauses_it_and_resume_goes_on(quick_state_copy: Path) -> None:
    assert not (quick_state_copy / "maia.sqlite3").exists()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    environment |= {"MAIA_STATE": str(quick_state_copy), "MAIA_DATASET_IMAGES": "200"}
    command = [sys.executable, "manage.py", "investigate"]
    with subprocess.Popen(
        [*command, *UNIT, "--max-rounds", "2"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        while "Experiment 1: ok" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "investigate --resume 1" in errors
    assert status_of(quick_state_copy) == ("paused",)
    resumed = subprocess.run(
        [*command, "--resume", "1", "--json"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(resumed.stdout)["status"] == "limit_reached"
    assert status_of(quick_state_copy) == ("limit_reached",)


def test_a_fork_goes_on_from_a_round_of_a_run_without_a_worker(capsys: pytest.CaptureFixture[str]) -> None:
    first = json.loads(investigate(*UNIT, "--json", "--max-rounds", "2"))
    assert first["rounds"] == 3
    with pytest.raises(CommandError, match="has no round 9"):
        investigate("--fork", str(first["run"]), "--round", "9")
    options = ("--round", "2", "--seed", "5", "--max-rounds", "3", "--note", "Separate the water.")
    told = json.loads(investigate("--fork", str(first["run"]), *options, "--json"))
    assert (told["status"], told["rounds"]) == ("limit_reached", 4)
    fork = Run.objects.get(pk=told["run"])
    assert (fork.parent_id, fork.fork_round, fork.seed, fork.limits["rounds"]) == (first["run"], 2, 5, 3)
    assert fork.experiment_count == 3
    shown = capsys.readouterr().err
    assert f"Forked from run {first['run']} after round 2" in shown
    assert "Separate the water." in shown


def status_of(state: Path) -> tuple[str]:
    with closing(sqlite3.connect(state / "maia.sqlite3")) as database:
        found: tuple[str] = database.execute("SELECT status FROM experiments_run").fetchone()
    return found
