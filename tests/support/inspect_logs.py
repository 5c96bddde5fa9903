"""Logs of Inspect AI, written by the product and read by Inspect's own loader."""

from __future__ import annotations

from pathlib import Path

from inspect_ai.log import EvalLog, read_eval_log

from experiments.models import Run
from workers.jobs.inspect_logs.log import write_runs


def logged(*runs: Run, path: Path) -> Path:
    with path.open("wb") as target:
        write_runs([run.pk for run in runs], target, lambda *_: None)
    return path


def read(path: Path) -> EvalLog:
    return read_eval_log(str(path), resolve_attachments=True)
