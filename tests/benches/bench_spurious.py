"""Table 2 on toybox's twin of Spawrious, with the scripted scientist as the agent: every row, and the headline.

Set MAIA_BENCH_SEEDS for other seeds, such as "3,4,5". A seed takes minutes; a second time only the runs do.
"""

from __future__ import annotations

import os
import time

import pytest
from tqdm import tqdm

from tests.benches.bench_scripted import STATE
from tests.support.toybox_run import play
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.record.estimates import Estimate
from workers.record.events import Ended
from workers.sandbox.host import ZygoteSandbox
from workers.spurious.evaluation import SpuriousSpec, prepare, repair, score
from workers.spurious.table import Table2, compute_headline


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_table_two_on_the_twin() -> None:
    seeds = [int(each) for each in os.environ.get("MAIA_BENCH_SEEDS", "3").split(",")]
    settings = LabSettings(STATE, words_per_second=0)
    with ZygoteSandbox() as sandbox:
        tables = [measure(settings, sandbox, seed) for seed in seeds]
    for regularised in (True, False):
        found = compute_headline(tables, regularised=regularised)
        assert found
        rivals = "l1 fits" if regularised else "refits without a penalty"
        print(f"headline against {rivals}: {write(found.share)}, {found.share.n} seeds", end="")
        print(f"; agent {found.agent:.3f}, l1 {found.l1:.3f}, balanced {found.balanced:.3f}")
        assert found.gap > 0.05, "the data are too easy"


def write(share: Estimate) -> str:
    spread = "" if share.low is None else f" [{share.low:.2f}, {share.high:.2f}]"
    return f"{share.value:.2f}{spread}"


def measure(
    settings: LabSettings,
    sandbox: ZygoteSandbox,
    seed: int,
    spec: SpuriousSpec = SpuriousSpec(),  # noqa: B008  frozen
    most: int | None = None,
) -> Table2:
    """The table of one seed, printed; `most` units are judged, where that is given."""
    began = time.monotonic()
    prepared = prepare(settings, spec, seed)
    ready = time.monotonic()
    laboratory, verdicts = Laboratory(settings), {}
    for unit in tqdm(prepared.units[:most], unit="unit"):
        system, question = prepared.system(unit), prepared.question(unit)
        events = play(laboratory, sandbox, system, seed=seed, task="spurious", question=question)
        end = events[-1].payload
        assert isinstance(end, Ended)
        verdicts[unit] = end.conclusion.labels == ("SELECTIVE",)
    took = (time.monotonic() - ready) / len(verdicts)
    table = score(prepared, verdicts)
    print(f"\nseed {seed}: prepared in {ready - began:.0f} s, {took:.1f} s a run, {len(table.selective)} selective")
    for row in table.rows:
        way = "l1 " if row.regularised else "-  "
        print(f"  {row.title:52} {row.units:5.1f} units {way} {row.accuracy:.3f} ± {row.spread:.3f}", end="")
        print(f"  worst {row.worst.accuracy:.2f} ({row.worst.class_name} on {row.worst.ground})")
    repaired = repair(prepared, verdicts)
    print(f"  repair: {repaired.before:.3f} to {repaired.after:.3f}", end="")
    print(f", worst group {repaired.worst_before:.2f} to {repaired.worst_after:.2f}")
    return table
