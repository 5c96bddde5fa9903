"""Figures as files, tables of checks and items, and the check of a run in its bundle."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.exchange import export_query, run_record, tables
from experiments.models import (
    CheckStatus,
    Evaluation,
    ExportSubject,
    Format,
    LabelCheck,
    Layer,
    ReviewQueue,
    Run,
    VisionModelRow,
)
from tests.support import trials
from tests.support.builders import make_run
from tests.support.bundles import brought, bundled, exported
from tests.support.people import member, signed_in
from tests.support.seeding import evaluations
from workers.record.decoding import encode
from workers.record.evaluations import CAVEAT, Cell, EvaluationResult, Figure, ResultTable

pytestmark = pytest.mark.django_db
NASTY = r"50 % of A&B_{#1} ~ $x^2$ \input{/etc/passwd}"


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(member("viewer", "VIEWER"))


@pytest.fixture
def nasty(evaluation: Evaluation) -> Evaluation:
    """One whose words are commands to LaTeX and formulas to a spreadsheet."""
    figures = (Figure("a.right", NASTY, 0.5, 0.25, 0.75, 12, 0.8), Figure("b", "=cmd()", None))
    table = ResultTable("t", NASTY, ("Unit", NASTY), ((Cell(NASTY), Cell(value=0.125, low=0.0, high=0.5, n=3)),))
    evaluation.result = encode(EvaluationResult(figures, (table,)))
    evaluation.name = NASTY
    evaluation.save()
    return evaluation


def fetch(client: Client, row: Evaluation, end: str) -> str:
    response = client.get(f"{row.get_absolute_url()}figures.{end}")
    assert response.status_code == 200
    assert "attachment" in response["Content-Disposition"]
    return response.content.decode("utf-8-sig")


def test_latex_takes_words_for_words(viewer: Client, nasty: Evaluation) -> None:
    text = fetch(viewer, nasty, "tex")
    escaped = r"50 \% of A\&B\_\{\#1\} \textasciitilde{} \$x\textasciicircum{}2\$ \textbackslash{}input\{/etc/passwd\}"
    assert text.count(escaped) == 5, "name, figure, title, column, cell"
    assert r"\input" not in text
    assert text.count(r"\begin{tabular}") == text.count(r"\toprule") == text.count(r"\bottomrule") == 2
    assert r"$0.5$ & [$0.25$, $0.75$] & 12 \\" in text
    assert text.count(CAVEAT) == 2
    assert "2 of 6 items done, 1 failed, 1 without a label, 2 not done" in text


def test_a_spreadsheet_runs_nothing_and_says_how_much_is_done(viewer: Client, nasty: Evaluation) -> None:
    rows = list(csv.DictReader(io.StringIO(fetch(viewer, nasty, "csv"))))
    assert (rows[0]["value"], rows[0]["low"], rows[0]["n"]) == ("0.5", "0.25", "12")
    assert rows[1]["figure"] == "'=cmd()"
    assert rows[-2]["note"].startswith("2 of 6 items done")
    assert rows[-1]["note"] == CAVEAT


def test_tables_of_tests_are_lines_of_the_spreadsheet(viewer: Client, evaluation: Evaluation) -> None:
    cells = (Cell("layer4 / unit 3"), Cell("=balls"), Cell(value=0.75, low=0.5, high=1.0, n=8), Cell())
    columns = ("Unit", "Label", "Fuzzing", "Intruder")
    tables = tuple(ResultTable(key, "=Each label", columns, (cells,)) for key in ("tests.labels", "testsuite"))
    evaluation.result = encode(EvaluationResult((), tables))
    evaluation.save()
    rows = list(csv.DictReader(io.StringIO(fetch(viewer, evaluation, "csv"))))
    assert len(rows) == 3, "one number, of one table, and what stands under all of it"
    assert rows[0]["figure"] == "'=Each label: layer4 / unit 3 / =balls: Fuzzing"
    assert [rows[0][name] for name in ("key", "value", "low", "high", "n")] == [
        "tests.labels",
        "0.75",
        "0.5",
        "1.0",
        "8",
    ]


def test_json_holds_all_of_it_with_the_settings(viewer: Client, nasty: Evaluation) -> None:
    found = json.loads(fetch(viewer, nasty, "json"))
    assert found["items"] == {"all": 6, "done": 2, "failed": 1, "lacking": 1, "open": 2}
    assert found["result"]["figures"][0]["label"] == NASTY
    assert found["seed"] == nasty.seed
    assert found["note"] == CAVEAT
    assert viewer.get(f"{nasty.get_absolute_url()}figures.exe").status_code == 404


# --- exports ---


@pytest.mark.parametrize("what", [ExportSubject.CHECKS, ExportSubject.EVALUATIONS])
@pytest.mark.django_db(transaction=True)
def test_every_table_holds_the_same_in_every_format(
    what: ExportSubject, owner: User, evaluation: Evaluation, redis_url: str
) -> None:
    from pyarrow import parquet

    lines = [json.loads(line) for line in exported(owner, what, "jsonl")[1].splitlines()]
    rows = list(csv.DictReader(io.StringIO(exported(owner, what, "csv")[1].decode("utf-8-sig"))))
    columns = parquet.read_table(io.BytesIO(exported(owner, what, "parquet")[1])).to_pylist()
    assert len(lines) == len(rows) == len(columns) == 6
    assert list(rows[0]) == list(lines[0]) == list(columns[0])
    assert {line["note"] for line in lines} == {CAVEAT}


def test_items_are_chosen_by_their_evaluation(evaluation: Evaluation, every_kind: list[Evaluation]) -> None:
    chosen = export_query.select_rows(ExportSubject.EVALUATIONS, f"evaluation={evaluation.pk}&status=done")
    assert chosen.count() == 2
    assert export_query.select_rows(ExportSubject.EVALUATIONS, "kind=bias").count() == 6


def test_a_file_does_not_tell_what_is_to_be_judged_unseen(owner: User) -> None:
    unit = trials.unit(1, trials.layer("concept", ("cone", "ball")))
    check = evaluations.make_check(unit, "round things", CheckStatus.DONE, Random(0))
    place = {"model": unit.layer.model.name, "layer": unit.layer.name, "unit": 1}
    run = make_run(owner, system_kind="synthetic", **place, status="concluded", label_check=check)
    ReviewQueue.objects.create(name="blind", owner=owner, blind=True).items.create(run=run, position=1)
    target = io.BytesIO()
    rows = export_query.select_rows(ExportSubject.CHECKS, "", None)
    tables.write(tables.CHECKS, Format.JSONL, rows, target, lambda *_: None)
    line = json.loads(target.getvalue())
    assert (line["model"], line["layer"], line["unit"]) == ("", "", None)


# --- bundles ---


@pytest.fixture
def checked(owner: User, done: LabelCheck) -> Run:
    conclusion = {"labels": [done.text], "description": "It likes it."}
    return make_run(owner, unit=done.unit.number, status="concluded", conclusion=conclusion, label_check=done)


def test_a_bundle_keeps_what_a_check_found(checked: Run, done: LabelCheck, teammate: User, tmp_path: Path) -> None:
    path = bundled(checked, path=tmp_path / "run.zip")
    checked.delete()
    (taken,) = brought(path, teammate)
    run = Run.objects.get(pk=taken.run.pk)
    assert run.label_check is not None
    assert run.label_check.key != done.key, "what somebody brings is not what was measured here"
    assert (run.label_check.text, run.label_check.pearson) == (done.text, done.pearson)
    found = run.label_check.result["natural"]
    assert found["ceiling"]["what"] == "the truth"
    assert len(found["activations"]) == len(done.result["natural"]["activations"])


def test_a_bundle_without_a_check_and_one_of_a_unit_that_is_not_here(
    checked: Run, teammate: User, tmp_path: Path
) -> None:
    told = run_record.to_json(checked)
    assert told["check"]["pearson"] == checked.label_check.pearson
    path = bundled(checked, path=tmp_path / "run.zip")
    checked.delete()
    Layer.objects.all().delete()
    VisionModelRow.objects.all().delete()
    (taken,) = brought(path, teammate)
    assert Run.objects.get(pk=taken.run.pk).label_check is None
