"""Find the units or latents of a layer that a class rests on, and how well they explain it alone."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.circuits.actions import create_circuit
from experiments.circuits.members import MemberDraft
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.management import options as choices
from experiments.management.prepared import FetchingCommand, ProgressLine
from experiments.management.supervisor import welcome
from workers.record.circuits import METHODS, CircuitCurve, CircuitMember, CircuitReport
from workers.record.decoding import encode
from workers.record.estimates import Estimate

TELL_EVERY = 30.0
"""Seconds between two lines of progress in a file."""


class Command(FetchingCommand):
    help = "Find the circuit of a class at a layer: faithfulness and completeness by size, beside controls."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        count = partial(choices.positive, int)
        parser.add_argument("classes", nargs="+", metavar="CLASS", help="names or numbers of classes, as car")
        parser.add_argument("--model", default="toybox", help="a network, or sae:NAME for its latents; default: toybox")
        parser.add_argument("--layer", default="", help="of a network; of sae:NAME it is known")
        parser.add_argument("--dataset", default="", metavar="D", help="key, name or path; default: the model's own")
        parser.add_argument("--images", type=count, default=100, help="on which the class is seen most; default: 100")
        parser.add_argument("--seeds", type=count, default=3, metavar="N", help="default: 3")
        parser.add_argument(
            "--save", default="", metavar="NAME", help="keep the strongest as a circuit; one class alone"
        )
        parser.add_argument("--members", type=count, default=10, metavar="N", help="of --save, 20 at most; default: 10")
        parser.add_argument("--json", action="store_true", help="print a line of JSON for each class instead")

    def handle(self, **options: Any) -> None:
        from workers.jobs import circuits

        if options["save"] and len(options["classes"]) > 1:
            raise CommandError("--save names one circuit: ask for one class.")
        line = ProgressLine(piped=TELL_EVERY)
        with line.until_ctrl_c("Nothing is kept; the same command begins again."):
            for target in options["classes"]:
                asked = {name: options[name] for name in ("model", "layer", "dataset", "images", "seeds")}
                found = circuits.find(**asked, target=target, progress=line)
                self.stdout.write(json.dumps(encode(found)) if options["json"] else describe(found))
        if options["save"]:
            self._save(found, options["save"], options["members"])

    def _save(self, found: CircuitReport, name: str, most: int) -> None:
        """Save the strongest members as a circuit of the owner. Raises CommandError."""
        if found.why:
            raise CommandError(f"Nothing is saved: {found.why}")
        drafts = [MemberDraft(CircuitMember(found.model, found.layer, each.unit)) for each in found.members[:most]]
        note = f"Found by effect on the logit of {found.target}."
        try:
            # On the terminal, the owner of the installation acts.
            row = create_circuit(Actor(welcome.owner()[0]), name, drafts, note)
        except InvalidInput as error:
            raise CommandError(str(error)) from error
        self.stderr.write(f"Saved as circuit {row.pk}, {row.name}: its page shows its members.")


def describe(found: CircuitReport) -> str:
    """Format faithfulness and completeness as a table, one size a row, then the members."""
    head = (
        f"{found.target}: {found.nodes} nodes of {found.layer} of {found.model}, {found.images} images, "
        f"{found.seeds} seeds; means with 95 % intervals over seeds"
    )
    if found.why:
        return f"{head}\n{found.why}"
    lines = [head]
    for words, name in (
        ("Faithfulness, the circuit alone", "faithfulness"),
        ("Completeness, without it", "completeness"),
    ):
        lines += ["", f"{words:34}{''.join(f'{METHODS[curve.method]:28}' for curve in found.curves)}"]
        for at, size in enumerate(found.curves[0].sizes):
            share = f"{size} of {found.nodes} ({size / found.nodes:.0%})"
            lines.append(f"{share:34}{''.join(f'{_format(_read(curve, name)[at]):28}' for curve in found.curves)}")
    named = ", ".join(f"{each.unit} ({each.effect:+.2f}, lift {each.lift:.1f})" for each in found.members[:10])
    return "\n".join([*lines, "", f"Members by effect on the logit: {named}"])


def _read(curve: CircuitCurve, name: str) -> tuple[Estimate, ...]:
    return curve.faithfulness if name == "faithfulness" else curve.completeness


def _format(found: Estimate) -> str:
    if found.value is None:
        return "-"
    spread = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{spread}"
