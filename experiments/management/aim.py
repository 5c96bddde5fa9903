"""`evaluate aim`: run small evaluations of AIM's claims one after the other, and show its claims beside our findings.

An existing evaluation is continued, as in `evaluate compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from experiments.core.compatibility import TOYBOX
from experiments.core.errors import InvalidInput
from experiments.evaluations import claims
from experiments.evaluations.autoencoders import compare_options, list_autoencoders
from experiments.evaluations.claims import ClaimRow
from experiments.management.comparing import Step, find_or_draft
from experiments.models import EvaluationKind
from workers.record.decoding import encode
from workers.record.evaluation_kinds import KINDS
from workers.record.evaluations import CAVEAT, Figure

AIM = "aim"
LAYER = "layer4"
"""Toybox's last layer before its classes, on which an auto-encoder is trained if there is none."""
RECIPE: dict[str, Any] = {"kind": "topk", "latents": 256, "k": 8, "steps": 500, "images": 0, "seed": 0}
UNITS = 1
PER_UNIT = {
    EvaluationKind.CIRCUITS: 2,
    EvaluationKind.ABLATION: 1,
    EvaluationKind.LATENTS: 1,
    EvaluationKind.SPURIOUS: 10,
}
"""The evaluations in order -> their units for each one of `--units`."""
TABLE_LATENTS = 64
"""Number of latents of Table 2's auto-encoder, whose latents have a row as well."""
_SMALL, _SMALL_GROUNDS = 5, "toybox-grounds:seed-{seed}-of-600"
"""Below this number of `--units` the classifier of Table 2 is trained on a tenth of its images."""


def choose_autoencoder(named: Sequence[str], progress: Callable[[str, int, int], None]) -> tuple[str, str]:
    """Return the named auto-encoder, else the newest of toybox's last layer, else one trained now; and say which of
    these it is.

    Raises CommandError for several, Cancelled if `progress` does; the same call then continues.
    """
    from workers.jobs import sparse

    if len(named) > 1:
        raise CommandError(f"One auto-encoder is set against its layer, not {len(named)}: name one.")
    if named:
        return f"sae:{named[0].removeprefix('sae:')}", "as named"
    # An existing one spares the training.
    rows = [row for row in list_autoencoders() if (row.card["model_key"], row.card["layer"]) == (TOYBOX, LAYER)]
    if rows:
        return max(rows, key=lambda row: row.pk).model.name, "the newest there"
    card = sparse.train(TOYBOX, LAYER, TOYBOX, RECIPE, "", progress)
    return f"sae:{card['name']}", "trained for this"


def plan(owner: User, autoencoder: str, options: Mapping[str, Any]) -> list[Step]:
    """Return the evaluations in the order in which they run. Raises CommandError."""
    # 1. Check the options before anything is built.
    units = UNITS if options["units"] is None else options["units"]
    if units < 1:
        raise CommandError(f"--units {units} measures nothing. Write 1 or more.")
    try:
        latents = compare_options([autoencoder])
    except InvalidInput as error:
        raise CommandError(f"{error} manage.py sae list says which there are.") from error
    model = options["backbone_model"]
    backbone = f"{options['backbone']}:{model}" if model else options["backbone"]
    # 2. One step for each kind; spurious features twice, for units and for latents as in Table 2.
    steps = []
    for kind, more in [*((kind, {}) for kind in PER_UNIT), (EvaluationKind.SPURIOUS, {"latents": TABLE_LATENTS})]:
        asked: dict[str, Any] = {"units": units * PER_UNIT[kind], **more}
        asked |= latents if "autoencoders" in KINDS[kind].asks else {}
        asked |= {"dataset": _SMALL_GROUNDS} if kind == EvaluationKind.SPURIOUS and units < _SMALL else {}
        # Kinds without runs use no backbone, so they are shared by all.
        asking = backbone if KINDS[kind].runs else ""
        words = f"{kind.label.lower()}{' of latents' if more else ''}"
        title = f"AIM's claims, seed {options['seed']}: {words}, {backbone}"
        step = find_or_draft(owner, asking, kind, asked, options["seed"], title)
        step.evaluation.unpriced = options["unpriced"]
        steps.append(step)
    return steps


def tabulate(steps: Sequence[Step]) -> list[ClaimRow]:
    """Set the claims beside the results of these evaluations, and of the newest of other relevant kinds."""
    for step in steps:
        if step.evaluation.pk:
            # The work was done on another copy of the row.
            step.evaluation.refresh_from_db()
    own = {claims.sort_of(step.evaluation): step.evaluation for step in steps}
    # Own evaluations replace the newest of their kind.
    return claims.set_beside({**claims.find_newest(), **own})


def write_text(rows: Sequence[ClaimRow]) -> str:
    """Format the table for a terminal: each claim, with our figure below it."""
    lines = []
    for row in rows:
        claimed = "claimed without a number" if row.claimed is None else f"claimed {row.claimed:g}"
        lines += ["", f"{row.words}: {claimed}"]
        lines += [f"  {_write(each.figure)}  {each.words}" for each in row.own]
        lines += [] if row.own else ["  ours: nothing yet"]
        lines.append(f"  {row.note}")
    return "\n".join([*lines[1:], "", claims.LIMITS, CAVEAT])


def _write(figure: Figure) -> str:
    if figure.value is None:
        return f"{figure.label:72} -"
    spread = "" if figure.low is None or figure.high is None else f" [{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.label:72} {figure.value:.3f}{spread} n={figure.n}"


def write_plain(rows: Sequence[ClaimRow], autoencoder: str, undone: Sequence[str]) -> dict[str, Any]:
    """Return the table as plain JSON."""
    told = [
        {
            "claim": row.key,
            "words": row.words,
            "claimed": row.claimed,
            "ours": [{"evaluation": each.evaluation, "trial": each.trial, **encode(each.figure)} for each in row.own],
            "note": row.note,
        }
        for row in rows
    ]
    return {
        "autoencoder": autoencoder,
        "claims": told,
        "undone": list(undone),
        "limits": claims.LIMITS,
        "caveat": CAVEAT,
    }
