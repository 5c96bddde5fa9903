"""Write the archive of an Inspect log: one sample per run or item, then the summary of all.

Version 2 of the format: `samples/ID_epoch_1.json`, `_journal/start.json`, `summaries.json`, `header.json`. A log of
runs also has their bundle, one folder and manifest each, which Inspect ignores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import add
from typing import IO, Any

from django.contrib.auth.models import User

from experiments.exchange import export_bundle, export_query, opinions
from experiments.exchange.export_bundle import Pack
from experiments.exchange.image_services import Progress
from experiments.models import Run
from workers.jobs.inspect_logs import sample
from workers.jobs.inspect_logs.pieces import Json, chunks
from workers.jobs.inspect_logs.sample import LogSample
from workers.jobs.inspect_logs.scores import Means
from workers.jobs.inspect_logs.transcript import error_json, usage_json
from workers.record.limits import Usage

VERSION = 2
"""Version of the format."""
SEVERAL = "several"
"""Value where samples differ."""


@dataclass
class Log:
    """A log being written."""

    pack: Pack
    summaries: list[Json] = field(default_factory=list)
    means: Means = field(default_factory=Means)
    usage: dict[str, list[Usage]] = field(default_factory=dict)
    told: dict[str, dict[str, None]] = field(default_factory=dict)
    """Tasks, models and statuses of the samples so far, as ordered sets."""
    limits: list[Json] = field(default_factory=list)
    """Distinct limits."""
    times: list[datetime] = field(default_factory=list)
    """The first and the last time."""

    def add(self, each: LogSample) -> None:
        self._write(f"samples/{each.id}_epoch_1.json", each.fields())
        self.summaries.append(each.summary())
        self.means.add(each.scores)
        for name, value in (("task", each.task), ("model", each.model), ("status", each.status), ("uuid", each.uuid)):
            self.told.setdefault(name, {})[value] = None
        for model, used in each.usage.items():
            # Summed up at once: one figure a model stays in memory.
            self.usage[model] = [reduce(add, self.usage.get(model, []), used)]
        # A dictionary cannot be in a set.
        if each.limits not in self.limits:
            self.limits.append(each.limits)
        found = [at for at in (*self.times, each.started, each.ended) if at is not None]
        self.times = [min(found), max(found)] if found else []

    def finish(self, created: datetime, **more: Any) -> None:
        """Write the header. `more` holds values of the whole log: `spec`, `status`, `scores`, `error`."""
        spec = self._spec(created) | more.get("spec", {})
        plan = {"name": "plan", "steps": [{"solver": "maia"}]}
        self._write("_journal/start.json", {"version": VERSION, "eval": spec, "plan": plan})
        self._write("summaries.json", self.summaries)
        done = sum(each["completed"] for each in self.summaries)
        results = {
            "total_samples": len(self.summaries),
            "completed_samples": done,
            "scores": more.get("scores", self.means.scores()),
        }
        head = {"version": VERSION, "status": more.get("status") or self._status(), "eval": spec, "plan": plan}
        self._write("header.json", {**head, "results": results, "stats": self._stats(), "error": more.get("error")})

    def _write(self, name: str, value: Any) -> None:
        self.pack.add(name, chunks(value), listed=False)

    def _only(self, name: str) -> str:
        """Return the value shared by all samples, else `SEVERAL`."""
        values = list(self.told.get(name, {}))
        return values[0] if len(values) == 1 else SEVERAL

    def _status(self) -> str:
        """Return the common status of all samples; else "started" if any is, or "success"."""
        statuses = self.told.get("status", {})
        if len(statuses) == 1:
            return self._only("status")
        return "started" if "started" in statuses else "success"

    def _spec(self, created: datetime) -> Json:
        # The same runs give the same ids
        key = hashlib.sha256("\n".join(self.told.get("uuid", {})).encode()).hexdigest()
        ids = [each["id"] for each in self.summaries]
        return {
            "eval_id": key[:22],
            "run_id": key[22:44],
            "task_id": key[:22],
            "created": created.isoformat(),
            "task": self._only("task"),
            "dataset": {"name": "runs", "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": self._only("model"),
            "config": self.limits[0] if len(self.limits) == 1 else {},
        }

    def _stats(self) -> Json:
        times = [at.isoformat() for at in self.times] or ["", ""]
        usage = {model: usage_json(used) for model, (used,) in self.usage.items()}
        return {"started_at": times[0], "completed_at": times[1], "model_usage": usage}


def write_runs(keys: Sequence[int], target: IO[bytes], progress: Progress, viewer: User | None = None) -> int:
    """Write the log of these runs with their bundle, as this person may see them. Return their number."""
    with export_bundle.packing(target) as pack:
        log = Log(pack)
        heads: list[Run] = []
        for done, run in enumerate(_read_runs(keys)):
            progress(f"Run {run.pk}", done, len(keys))
            if viewer is not None:
                export_query.record_disclosure(opinions.reviews_of(run, viewer), viewer)
            log.add(sample.build_sample(run))
            export_bundle.write(pack, run, None, f"run-{run.pk}/", viewer)
            # The first and the last run suffice for the name of the sweep
            heads = [*heads[:1], run]
        log.finish(heads[0].created, spec=_name_sweep(heads), error=_error_of(heads, len(keys)))
    return len(keys)


def _read_runs(keys: Iterable[int]) -> Iterator[Run]:
    for key in keys:
        yield Run.objects.select_related("owner", "parent", "sweep", "label_check").get(pk=key)


def _name_sweep(heads: Sequence[Run]) -> Mapping[str, Any]:
    """Return the sweep of the first and the last run, if it is the same."""
    sweeps = {run.sweep for run in heads}
    sweep = sweeps.pop() if len(sweeps) == 1 else None
    if sweep is None:
        return {}
    return {"task_display_name": str(sweep), "metadata": {"sweep": sweep.pk}}


def _error_of(heads: Sequence[Run], count: int) -> Json | None:
    """Return why the only run failed."""
    run = heads[0]
    return error_json(run.reason) if count == 1 and run.status == "failed" else None
