"""The jobs of evaluations."""

from __future__ import annotations

from experiments.models import Evaluation, Job


def work(evaluation: Evaluation, status: str) -> None:
    """Have its job stand so."""
    Job.objects.filter(pk=evaluation.job_id).update(status=status, stop_requested=False)
