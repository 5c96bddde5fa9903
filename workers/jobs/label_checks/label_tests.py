"""Decide whether a run's programs may test labels, who judges them, and how many tests are used up. For `run_round`."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.label_checks.requests import choose_method
from experiments.models import Run
from workers.lab.label_tests import LabelTestRules
from workers.record.events import ExperimentEnded
from workers.record.systems import SystemSpec
from workers.record.tasks import find_task

TOOL = "test_label"
VERDICT = "its task ends in a verdict, not in a label of what the system responds to"


def choose_rules(spec: SystemSpec, used: int = 0) -> LabelTestRules:
    """Return the rules with the judge that a check without a backbone would use: one that is free."""
    judge = choose_method(spec.model, dataset=str(spec.options.get("dataset") or "")).judge
    return LabelTestRules(judge, used=used)


def rules_of(run: Run, spec: SystemSpec, results: Sequence[ExperimentEnded] = ()) -> LabelTestRules:
    """Return the rules of the run after these experiments."""
    return LabelTestRules(problem=VERDICT) if find_task(run.task).gives_verdict else choose_rules(spec, _count(results))


def find_lacking_tools(run: Run, spec: SystemSpec) -> frozenset[str]:
    """Return the tool's name if the run cannot test labels, so that its agent is not told about it."""
    return frozenset() if rules_of(run, spec).judge else frozenset({TOOL})


def _count(results: Sequence[ExperimentEnded]) -> int:
    """Count the recorded tests of labels that gave a score."""
    # From the record, so that a restarted worker continues the count
    return sum(call.name == f"tools.{TOOL}" and not call.failed for result in results for call in result.calls)
