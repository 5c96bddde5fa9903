"""Measure how right labels are, in the foreground: units, synthetic neurons, ablations, spurious features, biases."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.core import compatibility, notify, parts
from experiments.core.actors import Actor
from experiments.core.compatibility import PERSON, SCRIPTED
from experiments.core.errors import InvalidInput
from experiments.evaluations import actions
from experiments.evaluations.autoencoders import compare_options
from experiments.evaluations.forecast import predict
from experiments.evaluations.results import read_result
from experiments.management import aim, comparing, comparison_table
from experiments.management import options as choices
from experiments.management.aim import AIM
from experiments.management.comparing import COMPARE, Step
from experiments.management.prepared import FetchingCommand, ProgressLine
from experiments.management.supervisor import welcome
from experiments.models import Evaluation, EvaluationKind, ItemStatus, Job, JobStatus
from workers.record.decoding import encode
from workers.record.evaluation_kinds import KINDS, explain_latents
from workers.record.evaluations import CAVEAT

ALL = "all"
NOT_COMPARED = (
    *("backbone", "backbone_model", "model", "layers", "dataset", "toolset", "source", "repeats", "reflections"),
    *("judge", "people", "seconds", "resume", "families", "published", "hints", "autoencoders"),
    "latents",
)
"""Options that `compare` does not take: it decides them itself."""
NOT_OF_AIM = tuple(name for name in NOT_COMPARED if name not in ("backbone", "backbone_model", "autoencoders"))
"""Options that `aim` does not take."""

TELL_EVERY = 30.0
"""Seconds between two lines of progress in a file."""


class Command(FetchingCommand):
    help = "Measure how right labels are. Progress on the terminal, figures at the end; Ctrl+C keeps what is done."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        self.parser = parser
        kinds = [*EvaluationKind, ALL, COMPARE, AIM]
        parser.add_argument(
            "kind", nargs="?", choices=kinds, help="what to evaluate; compare: backbones side by side; aim: its claims"
        )
        parser.add_argument("--backbone", choices=choices.OfferedKeys(parts.list_backbones), default="scripted")
        parser.add_argument("--backbone-model", default="", metavar="NAME", help="the provider's name, as gpt-4o")
        parser.add_argument("--seed", type=choices.seed, default=0, help="draws units and neurons; default: 0")
        parser.add_argument(
            "--units", type=int, metavar="N", help="how many, functions of each family; default: as in the paper, or 60"
        )
        parser.add_argument("--model", default="", help="whose units; default: toybox, or the batch of the seed")
        parser.add_argument("--layers", nargs="+", default=[], metavar="LAYER", help="default: all with units")
        parser.add_argument("--dataset", default="", metavar="D", help="where images come from")
        toolsets = choices.OfferedKeys(parts.list_toolsets)
        parser.add_argument("--toolset", choices=toolsets, help="of units; default: toybox, for models of toys")
        parser.add_argument("--source", nargs="+", default=[], metavar="S", help="whose labels, as import:milan")
        parser.add_argument(
            "--repeats", type=int, metavar="N", help="seeds, of spurious features and biases; default: 1"
        )
        parser.add_argument(
            "--reflections", type=int, metavar="N", help="how often a failed label goes back to the agent"
        )
        parser.add_argument("--judge", default="", metavar="B[:M]", help="prefers labels two by two, as openai:gpt-4o")
        parser.add_argument(
            "--families", default="", metavar="F,…", help="find: functions of these alone, as numeric,concepts"
        )
        parser.add_argument("--published", default="", metavar="DIR", help="find: those of FIND's published benchmark")
        parser.add_argument(
            "--hints", action="store_true", help="find: ask once more with some inputs and outputs to begin with"
        )
        parser.add_argument(
            "--autoencoders", nargs="+", default=[], metavar="NAME", help="latents: of one layer, as sae:NAME"
        )
        parser.add_argument(
            "--latents",
            type=int,
            default=0,
            metavar="N",
            help="spurious: of an auto-encoder of each classifier, in the place of its units",
        )
        parser.add_argument("--people", action="store_true", help="have people write labels of a quarter of the units")
        parser.add_argument(
            "--cost",
            "--max-cost",
            type=partial(choices.positive, float),
            metavar="USD",
            help="budget of the whole; of a comparison, of all its evaluations together",
        )
        parser.add_argument("--seconds", type=float, metavar="S", help="seconds of work for the whole")
        parser.add_argument("--unpriced", action="store_true", help="though no price of the backbone is known")
        parser.add_argument("--resume", type=int, metavar="ID", help="resume an evaluation")
        parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
        parser.add_argument(
            "--backbones", default="", metavar="B[:M],…", help="compare: these and the scripted scientist"
        )
        parser.add_argument("--kinds", default="", metavar="K,…", help="compare: these alone, as synthetic,bias")

    def handle(self, **options: Any) -> None:
        notify.muted.set()  # works without Redis
        if options["resume"] is None and not options["kind"]:
            raise CommandError(f"Say what to evaluate: {', '.join([*EvaluationKind, ALL, COMPARE, AIM])}.")
        if options["kind"] == COMPARE:
            self.compare(options)
            return
        if options["backbones"] or options["kinds"]:
            raise CommandError("--backbones and --kinds are for a comparison: manage.py evaluate compare …")
        if options["kind"] == AIM:
            self.measure_claims(options)
            return
        if options["resume"] is not None:
            found = Evaluation.objects.filter(pk=options["resume"]).first()
            if found is None:
                raise CommandError(f"There is no evaluation {options['resume']}.")
            if options["people"]:
                _ask_people(found)
            evaluations = [found]
        elif options["kind"] == ALL:
            evaluations = [_begin(kind.key, options | {"units": kind.quick}) for kind in KINDS.values() if kind.quick]
        else:
            evaluations = [_begin(EvaluationKind(options["kind"]), options)]
        results = {evaluation.kind: self.do(evaluation) for evaluation in evaluations}
        if options["json"]:
            (only,) = results.values() if len(results) == 1 else (results,)
            self.stdout.write(json.dumps(only, ensure_ascii=False))

    def compare(self, options: dict[str, Any]) -> None:
        """Run the same evaluations of each backbone, within the budget, and show one table."""
        self.refuse(options, NOT_COMPARED, "A comparison takes no {}: it asks all backbones the same.")
        actor = Actor(welcome.owner()[0])
        steps = comparing.plan(actor.person, options)
        comparing.do_all(actor, steps, options["cost"], partial(self.do, kept="The same command continues."))
        rows, unfinished = comparison_table.tabulate(steps), self.list_unfinished(steps)
        told = comparison_table.write_plain(rows, unfinished)
        self.stdout.write(
            json.dumps(told, ensure_ascii=False) if options["json"] else comparison_table.write_text(rows)
        )

    def measure_claims(self, options: dict[str, Any]) -> None:
        """Show AIM's claims beside small evaluations of the same kind."""
        self.refuse(options, NOT_OF_AIM, "AIM's claims take no {}: what is measured follows from them.")
        line = ProgressLine(piped=TELL_EVERY)
        with line.until_ctrl_c("The same command continues."):
            autoencoder, why = aim.choose_autoencoder(options["autoencoders"], line)
        self.stderr.write(f"Auto-encoder: {autoencoder}, {why}.")
        actor = Actor(welcome.owner()[0])
        steps = aim.plan(actor.person, autoencoder, options)
        comparing.do_all(actor, steps, options["cost"], partial(self.do, kept="The same command continues."))
        rows, unfinished = aim.tabulate(steps), self.list_unfinished(steps)
        told = aim.write_plain(rows, autoencoder, unfinished)
        self.stdout.write(json.dumps(told, ensure_ascii=False) if options["json"] else aim.write_text(rows))

    def refuse(self, options: dict[str, Any], names: tuple[str, ...], words: str) -> None:
        """Raise CommandError for a given option of this list."""
        for name in names:
            if options[name] != self.parser.get_default(name):
                raise CommandError(words.format(f"--{name.replace('_', '-')}"))

    def list_unfinished(self, steps: list[Step]) -> list[str]:
        """Report what is left of each evaluation."""
        unfinished = comparing.list_undone(steps)
        for each in unfinished:
            self.stderr.write(f"Left unfinished: {each}.")
        if unfinished:
            self.stderr.write("The same command continues, and pays nothing twice; raise --max-cost if it is used up.")
        return unfinished

    def do(self, evaluation: Evaluation, kept: str = "") -> dict[str, Any]:
        """Run what is left of an evaluation, and report its figures; `kept` says what Ctrl+C leaves."""
        from workers.jobs import foreground

        self.stderr.write(f"Evaluation {evaluation.pk}: {evaluation.name}. {_forecast_evaluation(evaluation)}")
        line = ProgressLine(piped=TELL_EVERY)
        with line.until_ctrl_c(kept or f"Resume with: manage.py evaluate --resume {evaluation.pk}"):
            result = foreground.work(_claim(evaluation), line)
        evaluation.refresh_from_db()
        self.stderr.write(result)
        found = read_result(evaluation)
        for figure in map(encode, found.figures):
            self.stderr.write(_format_figure(figure))
        for note in found.notes:
            self.stderr.write(str(note))
        self.stderr.write(CAVEAT)
        return _nest(evaluation)


def _begin(kind: EvaluationKind, options: dict[str, Any]) -> Evaluation:
    """Start it as the page does, except that this process runs it."""
    return actions.begin(Actor(welcome.owner()[0]), _draft(kind, options), enqueue=False)


def _draft(kind: EvaluationKind, options: dict[str, Any]) -> Evaluation:
    """Build an unsaved evaluation from the options."""
    asked = {name: options[name] for name in ("units", "model", "layers", "dataset", "repeats", "reflections")}
    asked["sources"] = options["source"]
    if kind == EvaluationKind.FIND:
        asked |= _ask_functions(options)
    if "autoencoders" in KINDS[kind].asks and (options["autoencoders"] or "autoencoders" in KINDS[kind].needs):
        asked |= _ask_autoencoders(options)
    if "toolset" in KINDS[kind].asks:
        asked["toolset"] = choices.toolset_of(options["model"] or compatibility.TOYBOX, options)
    asked |= _ask_latents(kind, options["latents"])
    backbone = _find_backbone(kind, options["backbone"])
    asked |= {"judge": _check_judge(kind, options["judge"]), "people": options["people"] and KINDS[kind].people_label}
    label = f"{kind.label}, {asked['latents']} latents" if asked.get("latents") else kind.label
    return Evaluation(
        kind=kind,
        name=", ".join(filter(None, [label, f"seed {options['seed']}", options["backbone_model"] or backbone])),
        backbone=backbone,
        backbone_model=options["backbone_model"],
        seed=options["seed"],
        options={name: value for name, value in asked.items() if value},
        cost_limit=options["cost"],
        seconds_limit=options["seconds"],
        unpriced=options["unpriced"],
    )


def _find_backbone(kind: EvaluationKind, named: str) -> str:
    """Return the backbone. Functions have a scripted baseline of their own; some kinds use none."""
    if not {"backbone", "source"} & KINDS[kind].asks:
        return ""
    return compatibility.SCRIPTED_FUNCTIONS if KINDS[kind].families and named == SCRIPTED else named


def _ask_functions(options: dict[str, Any]) -> dict[str, Any]:
    """Return which functions are asked about, and whether with hints too. Raises CommandError, RequestError."""
    from workers.jobs import plugin_keys

    families = [each.strip() for each in options["families"].split(",") if each.strip()] or options["layers"]
    known = KINDS[EvaluationKind.FIND].families
    if unknown := [each for each in families if each not in known]:
        raise CommandError(f"There is no family {unknown[0][:60]!r}. Choose of: {', '.join(known)}.")
    if options["published"] and options["model"]:
        raise CommandError("--published names a model by itself: leave --model out.")
    model = plugin_keys.model_key(f"find:{options['published']}") if options["published"] else options["model"]
    return {"layers": families, "model": model, "hints": options["hints"]}


def _ask_autoencoders(options: dict[str, Any]) -> dict[str, Any]:
    """Return which auto-encoders are compared with their layer. Raises CommandError."""
    names = options["autoencoders"]
    try:
        return compare_options([each if each.startswith("sae:") else f"sae:{each}" for each in names])
    except InvalidInput as error:
        raise CommandError(
            f"{error} They are named by --autoencoders; manage.py sae list says which there are."
        ) from error


def _ask_latents(kind: EvaluationKind, latents: int) -> dict[str, Any]:
    """Return how many latents replace the units. Raises CommandError."""
    if not latents:
        return {}
    if "latents" not in KINDS[kind].asks:
        raise CommandError(
            f"--latents {latents} is for spurious features alone: manage.py evaluate spurious --latents …"
        )
    if why := explain_latents(latents):
        raise CommandError(f"--latents: {why}")
    return {"latents": latents}


def _check_judge(kind: EvaluationKind, judge: str) -> str:
    """Return the judge of pairwise labels. Raises CommandError for an invalid one."""
    if not judge or "judge" not in KINDS[kind].asks:
        return ""
    key = judge.partition(":")[0]
    unable = {PERSON} if KINDS[kind].truth_in_words else {PERSON, SCRIPTED}
    able = [each for each in parts.list_backbones() if each not in unable]
    if key not in able:
        raise CommandError(f"{judge!r} cannot judge here. Choose one of: {', '.join(able)}, as openai:gpt-4o.")
    return judge


def _ask_people(evaluation: Evaluation) -> None:
    if not evaluation.row_of_kind.people_label:
        raise CommandError("People label units and synthetic neurons; this evaluation is of something else.")
    evaluation.options = {**evaluation.options, "people": True}
    evaluation.save(update_fields=["options"])


def _claim(evaluation: Evaluation) -> Job:
    """Claim the job of the evaluation for this process. Raises CommandError if a living worker has it."""
    from workers.jobs import held

    ended = (JobStatus.STOPPED, JobStatus.FAILED, JobStatus.DONE)
    if not held.claim(Job, evaluation.job_id or 0, *ended, stop_requested=False):
        raise CommandError(
            f"A worker is at evaluation {evaluation.pk}: its page says how far it is. Of one that was killed the "
            f"evaluation can be taken {held.SILENCE.seconds} seconds after it was last heard of."
        )
    return Job.objects.get(pk=evaluation.job_id or 0)


def _forecast_evaluation(evaluation: Evaluation) -> str:
    """Forecast time and cost from recorded runs and checks, before the wait begins."""
    expected = predict(evaluation)
    counts = f"{expected.runs} runs and {expected.checks} label checks at most"
    if expected.seconds is None:
        return f"{counts}. Nothing of the kind is recorded here, so what that takes is not known yet."
    per_run = f" (a run takes {expected.requests:.1f} requests on average)" if expected.requests else ""
    took = f"about {_minutes(expected.seconds.expected)}, up to {_minutes(expected.seconds.upper)} of work"
    cost = f", ${expected.cost.expected:.2f} to ${expected.cost.upper:.2f}" if expected.cost else ""
    rests = f"{expected.recorded} recorded runs and {expected.recorded_checks} checks"
    if expected.elsewhere:
        rests = "a machine with two cores, since no run is recorded here"
    before = f" {_minutes(expected.preparation)} of it come before the first item." if expected.preparation >= 1 else ""
    return f"{counts}{per_run}: {took}{cost}, judging by {rests}.{before}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _format_figure(figure: dict[str, Any]) -> str:
    value, low, high = (figure.get(name) for name in ("value", "low", "high"))
    if value is None:
        return f"{figure['label']:60} -  {figure.get('note', '')}"
    spread = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    bound = "at most " if figure.get("at_most") else ""
    goal = "" if figure.get("goal") is None else f"  goal {bound}{figure['goal']:g}"
    return f"{figure['label']:60} {value:.3f}{spread}  n={figure['n']}{goal}  {figure.get('note', '')}".rstrip()


def _nest(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures nested by their dotted keys.

    Shares are {"mono": {"right": …, "low": …, "high": …, "n": …}}, those of functions {"numeric": {"success": …,
    …}}.
    """
    found: dict[str, Any] = {"evaluation": evaluation.pk, "kind": evaluation.kind}
    for figure in map(encode, read_result(evaluation).figures):
        *path, last = figure["key"].split(".")
        place = found
        for name in path:
            place = place.setdefault(name, {})
        told = {name: figure.get(name) for name in ("low", "high", "n")}
        if last in ("right", "success") and path:
            place.update({last: figure["value"], **told})
        else:
            place[last] = {"value": figure["value"], **told}
    items = evaluation.items
    found["items"] = {
        "done": items.exclude(status=ItemStatus.PLANNED).count(),
        "of": items.count(),
        "failed": items.filter(status=ItemStatus.FAILED).count(),
    }
    return found
