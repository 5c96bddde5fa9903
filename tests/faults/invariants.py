"""What must hold after a campaign, whatever happened: by SQL of its own, and by `manage.py verify`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.faults.scientist import Scientist
from tests.faults.site import Site

if TYPE_CHECKING:
    from tests.faults.campaign import Report

_FORBIDDEN = {
    "events with a gap before them": """
        SELECT run_id, seq FROM (
            SELECT run_id, seq, row_number() OVER (PARTITION BY run_id ORDER BY seq) AS place FROM experiments_event
        ) AS numbered WHERE seq <> place""",
    "steps recorded twice": """
        SELECT run_id, kind, payload ->> 'round' FROM experiments_event
        WHERE kind IN ('started', 'reply', 'experiment', 'result', 'concluded', 'failed', 'stopped')
        GROUP BY run_id, kind, payload ->> 'round' HAVING count(*) > 1""",
    "observations kept twice": """
        SELECT experiment_id, position FROM experiments_observation
        GROUP BY experiment_id, position HAVING count(*) > 1""",
    "runs that did not conclude": """
        SELECT id, status, reason FROM experiments_run WHERE status <> 'concluded'""",
    "runs that somebody still holds": "SELECT id FROM experiments_run WHERE lease_worker <> ''",
    "sweeps whose totals are not those of their runs": """
        SELECT s.id, s.tokens, sum(r.prompt_tokens + r.completion_tokens), s.cost, sum(r.cost)
        FROM experiments_sweep AS s JOIN experiments_run AS r ON r.sweep_id = s.id
        GROUP BY s.id, s.tokens, s.cost
        HAVING s.tokens <> sum(r.prompt_tokens + r.completion_tokens) OR abs(s.cost - sum(r.cost)) > 1e-6""",
}
"""What there may not be -> the query that finds it."""


def check(site: Site, scientist: Scientist, report: Report) -> None:
    """Write into the report what was lost on its way, and whatever should not be."""
    for what, query in _FORBIDDEN.items():
        report.violations += [f"{what}: {', '.join(map(str, row))}" for row in site.rows(query)]
    recorded = {
        (question, int(number))
        for question, number in site.rows(
            "SELECT r.question, e.payload ->> 'round' FROM experiments_event AS e "
            "JOIN experiments_run AS r ON r.id = e.run_id WHERE e.kind = 'reply'"
        )
    }
    report.runs = site.rows("SELECT count(*) FROM experiments_run")[0][0]
    report.replies = len(recorded)
    asked = Counter((each.question, each.number) for each in scientist.requests)
    last = {(each.question, each.number): each for each in scientist.requests}
    report.lost = [each for each in scientist.requests if last[each.question, each.number] is not each]
    report.violations += [
        f"asked again for what was recorded: round {each.number} of {each.question}"
        for each in scientist.requests
        if each.recorded
    ]
    report.violations += [f"recorded and never asked for: {step}" for step in recorded - asked.keys()]
    try:
        site.manage("verify")
    except AssertionError as error:
        report.violations.append(str(error))
