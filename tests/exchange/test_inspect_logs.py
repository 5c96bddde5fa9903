"""Logs of Inspect AI, read by its own loader: what a run holds is in them, and they can be imported again."""

from __future__ import annotations

import io
import zipfile
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from inspect_ai.log import (
    EvalSample,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from PIL import Image as Pillow

from experiments.exchange.export_bundle import KNOWN
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Event, Export, Image, Import, LabelCheck, Observation, Run, Sweep, Unit
from experiments.models.mapped import MAP_COLUMNS
from tests.support.api_world import KEY
from tests.support.blind_runs import blind_run, queued
from tests.support.builders import make_run
from tests.support.bundles import HOSTILE, brought, exported, forgotten, full_run
from tests.support.inspect_logs import logged, read
from tests.support.people import member
from tests.support.tiny_run import CONCLUSION, PROGRAM, Seeing, install, play, tiny_run
from workers.agent.conversation import messages
from workers.jobs import laboratory as place
from workers.jobs import long
from workers.protocols import ImagePart
from workers.record.events import Event as RecordedEvent
from workers.record.limits import Usage

pytestmark = pytest.mark.usefixtures("redis_url")

ROUNDS = 25
LOOKS = (
    "def run_experiment(system, tools):\n"
    "    pictures = [Image.new('RGB', (8 + {0}, 8), (10 * {0}, 40, 60)) for _ in range(1)]\n"
    "    activations, images = system.neuron(pictures)\n"
    "    tools.log_experiment(activations, images, ['picture {0}'], 'seen')"
)
OBSERVED = ("position", "title", "activation", "image", "masked", "origin", "prompt", "seed")
FIGURES = {"pearson": 0.75, "pearson_low": 0.5, "pearson_high": 0.9}


def pictures(sample: EvalSample) -> list[str]:
    """Data URIs of the images in the messages."""
    contents = [each.content for each in sample.messages if not isinstance(each.content, str)]
    return [part.image for content in contents for part in content if part.type == "image"]


def recorded(rows: Sequence[Event]) -> list[RecordedEvent]:
    return [RecordedEvent(row.seq, row.kind, row.content) for row in rows]


def stored_bytes(key: str) -> bytes:
    with default_storage.open(Image.path_of(key)) as file:
        return file.read()


def pixels(data: bytes) -> tuple[Any, ...]:
    image = Pillow.open(io.BytesIO(data))
    return image.mode, image.size, image.tobytes()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    install(monkeypatch, settings, tmp_path)
    yield
    place.build_laboratory.cache_clear()
    place.sandbox().close()
    place.build_sandbox.cache_clear()


@pytest.mark.usefixtures("tiny")
@pytest.mark.django_db(transaction=True)
def test_a_run_of_25_rounds_is_the_same_in_inspect(owner: User, tmp_path: Path) -> None:
    programs = [PROGRAM.format(LOOKS.format(number)) for number in range(ROUNDS - 1)]
    seeing = Seeing(*programs, CONCLUSION, usage=Usage(1_000, 50, 0.01, cached_tokens=400))
    run = play(tiny_run(owner, seeing))
    assert (run.rounds, run.status) == (ROUNDS, "concluded")
    log = read(logged(run, path=tmp_path / "run.eval"))
    assert log.samples is not None
    (sample,) = log.samples
    rows = list(run.events.order_by("seq"))
    # Events
    named = [each for each in sample.events if each.metadata and "seq" in each.metadata]
    assert [(each.metadata["seq"], each.metadata["kind"]) for each in named] == [(row.seq, row.kind) for row in rows]
    counts = Counter(each.event for each in sample.events)
    assert (counts["model"], counts["tool"], counts["span_begin"]) == (ROUNDS, ROUNDS - 1, ROUNDS - 1)
    assert counts["span_end"] == counts["span_begin"]
    # Messages: what the model was given is what the agent asked with
    models = [each for each in sample.events if each.event == "model"]
    asked = messages(recorded(rows[: max(place for place, row in enumerate(rows) if row.kind == "reply")]))
    text = "\n".join(part.text for turn in models[-1].input for part in turn.content if part.type == "text")
    assert text == "\n".join(turn.text for turn in asked)
    assert [each.output.completion for each in models] == [row.payload["text"] for row in rows if row.kind == "reply"]
    # Images
    shown = [part.key for turn in messages(recorded(rows)) for part in turn.parts if isinstance(part, ImagePart)]
    assert len(set(shown)) == ROUNDS - 1
    assert [pixels(b64decode(uri.partition(",")[2])) for uri in pictures(sample)] == [
        pixels(stored_bytes(key)) for key in shown
    ]
    # Tokens and times
    (used,) = sample.model_usage.values()
    assert used.input_tokens + (used.input_tokens_cache_read or 0) == run.prompt_tokens
    assert (used.output_tokens, used.total_cost) == (run.completion_tokens, pytest.approx(run.cost))
    assert sum(each.output.usage.total_tokens for each in models if each.output.usage) == used.total_tokens
    assert (sample.working_time, log.status) == (run.seconds, "success")
    assert run.ended is not None
    assert run.started is not None
    assert sample.total_time == (run.ended - run.started).total_seconds()
    # Scores
    assert sample.scores is not None
    assert (sample.scores["label"].answer, sample.scores["label"].explanation) == (
        "red squares",
        "It responds to red squares.",
    )


def test_the_head_the_summaries_and_one_sample_are_read_alone(owner: User, tmp_path: Path) -> None:
    run = checked(full_run(owner))
    path = logged(run, path=tmp_path / "run.eval")
    head = read_eval_log(str(path), header_only=True)
    assert (head.samples, head.status, head.eval.dataset.sample_ids) == (None, "success", [run.pk])
    assert head.eval.config.turn_limit == run.limits["rounds"]
    (summary,) = read_eval_log_sample_summaries(str(path))
    assert summary.scores is not None
    assert (summary.id, summary.completed, summary.scores["pearson"].value) == (run.pk, True, 0.75)
    sample = read_eval_log_sample(str(path), id=run.pk, resolve_attachments=True)
    assert sample.scores is not None
    assert sample.scores["pearson"].metadata == {
        "pearson_low": 0.5,
        "pearson_high": 0.9,
        "p_value": None,
        "dataset": "toybox",
        "split": "probe",
    }
    assert head.results is not None
    assert {each.name: each.metrics["mean"].value for each in head.results.scores} == {"pearson": 0.75}
    assert [Path(each.name).name for each in list_eval_logs(str(tmp_path))] == ["run.eval"]


def checked(run: Run) -> Run:
    """With a label check."""
    run.label_check = LabelCheck.objects.create(
        key="k", unit=Unit.objects.get(), text="a red ball", dataset="toybox", options={}, status="done", **FIGURES
    )
    run.save()
    return run


@pytest.mark.django_db
def test_a_log_is_imported_without_loss(owner: User, teammate: User, tmp_path: Path) -> None:
    runs = [full_run(owner, "a blue ball"), full_run(owner)]
    before = rows_of(*runs)
    path = logged(*runs, path=tmp_path / "runs.eval")
    forgotten(*runs)
    taken = brought(path, teammate)
    assert [each.known for each in taken] == [False, False]
    assert rows_of(*Run.objects.order_by("question")) == before
    assert [each.known for each in brought(path, owner)] == [True, True]


def rows_of(*runs: Run) -> list[Any]:
    """All that has to come back: events, observations, images, labels, states of programs, figures of the row."""
    found: list[Any] = [list(Image.objects.order_by("key").values(*KNOWN))]
    for run in runs:
        found.append(list(run.events.values("seq", "kind", "payload", "time")))
        found.append(list(Observation.objects.filter(run=run).values(*OBSERVED, *MAP_COLUMNS)))
        found.append(list(run.label_set.values("text", "source", "position", "scores", "run__tags__name")))
        found += [[bytes(each.state) for each in run.experiments.all()], run.question, run.conclusion, run.seconds]
    return found


@pytest.mark.django_db
def test_a_log_of_an_evaluation_is_not_taken_for_runs(owner: User, tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", "{}")
    with pytest.raises(ExchangeError, match="has no runs of MAIA Web"):
        brought(path, owner)


@pytest.mark.django_db
def test_an_export_of_runs_as_a_log(owner: User, tmp_path: Path) -> None:
    runs = [full_run(owner), full_run(owner, "a blue ball"), make_run(owner)]
    job, data = exported(owner, "bundle", "eval")
    assert (job.status, job.result) == ("done", "3 runs")
    path = tmp_path / "runs.eval"
    path.write_bytes(data)
    log = read(path)
    assert [each.id for each in log.samples or ()] == sorted(run.pk for run in runs)
    assert log.status == "started", "one has not ended"
    assert log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (3, 2)


@pytest.mark.django_db
def test_a_sweep_is_one_log(owner: User, tmp_path: Path) -> None:
    sweep = Sweep.objects.create(owner=owner, name="A layer", task="describe", selection={})
    runs = [full_run(owner), full_run(owner, "a blue ball")]
    Run.objects.update(sweep=sweep)
    full_run(owner, "of no sweep")
    _, data = exported(owner, "bundle", "eval", f"sweep={sweep.pk}")
    (tmp_path / "sweep.eval").write_bytes(data)
    log = read(tmp_path / "sweep.eval")
    assert [each.id for each in log.samples or ()] == [run.pk for run in runs]
    assert (log.eval.task_display_name, (log.eval.metadata or {})["sweep"]) == ("A layer", sweep.pk)
    tokens = sum(used.total_tokens for used in log.stats.model_usage.values())
    assert tokens == sum(run.prompt_tokens + run.completion_tokens for run in Run.objects.filter(sweep=sweep))


@pytest.mark.django_db
def test_a_log_is_refused_to_those_who_are_to_judge_it_unseen(owner: User) -> None:
    run, judge = blind_run(owner), member("judge", "REVIEWER")
    Image.objects.create(key=KEY, width=1, height=1)
    queued(run, judge, blind=True)
    job, _ = exported(judge, "bundle", "eval", f"run={run.pk}")
    assert job.status == "failed"
    assert "You are still to judge" in job.result


@pytest.mark.django_db(transaction=True)
def test_the_page_offers_it_and_the_import_takes_it(as_owner: Client, owner: User, tmp_path: Path) -> None:
    run = full_run(owner, HOSTILE)
    assert "Inspect log (.eval)" in as_owner.get("/exports/?what=bundle").content.decode()
    assert "Inspect log" not in as_owner.get("/exports/?what=runs").content.decode()
    as_owner.post("/exports/make/", {"what": "bundle", "format": "eval", "query": f"run={run.pk}"})
    export = Export.objects.get()
    long.work(export.job_id)
    answer = as_owner.get(f"/exports/{export.pk}/file/")
    assert answer["Content-Disposition"] == f'attachment; filename="maia-runs-{export.pk}.eval"'
    data = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    forgotten(run)
    file = SimpleUploadedFile("run.eval", data)
    assert as_owner.post("/imports/bring/", {"kind": "bundle", "file": file}).status_code == 302
    long.work(Import.objects.get().job_id)
    assert Run.objects.get().question == f"What? {HOSTILE}"


@pytest.mark.django_db
def test_the_command_writes_a_log(owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = full_run(owner)
    monkeypatch.chdir(tmp_path)
    call_command("export_run", str(run.pk), "--format", "eval")
    assert read_eval_log(f"run-{run.pk}.eval", header_only=True).status == "success"
