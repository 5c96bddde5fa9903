"""Run the agent in the foreground: same agent, same rows, no Redis and no worker."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Max

from experiments.core import compatibility, parts, transcript
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, InvalidFields
from experiments.display.label_checks import describe_reading
from experiments.management import options as choices
from experiments.management.prepared import FetchingCommand
from experiments.management.supervisor import welcome
from experiments.models import LabelCheck, Run
from experiments.runs import actions, drafts
from experiments.runs.drafts import draft_run
from experiments.runs.forks import lineage
from experiments.runs.forks.form import ForkForm
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.events import Graded
from workers.record.grades import summarise_grade
from workers.record.limits import DEFAULT_LIMITS, MAX_REFLECTIONS
from workers.record.statuses import Status


class Command(FetchingCommand):
    help = "Ask a question about one unit and watch the agent answer it in the terminal."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        choices.add_system(parser)
        again = "how often a label that fails its check goes back to the agent; default: 0"
        parser.add_argument(
            "--reflections", type=int, choices=range(MAX_REFLECTIONS + 1), metavar="N", default=0, help=again
        )
        ablation = "let the agent's programs ablate the unit in its model, by system.ablate"
        parser.add_argument("--ablation", action="store_true", help=ablation)
        usual = f"default: {tasks.DEFAULT_TASK}; of a function: {tasks.FUNCTION}"
        parser.add_argument("--task", choices=tasks.TASKS, help=usual)
        usual = f"default: {compatibility.SCRIPTED}; for a function: {compatibility.SCRIPTED_FUNCTIONS}"
        parser.add_argument("--backbone", choices=choices.OfferedKeys(parts.list_backbones), help=usual)
        parser.add_argument("--backbone-model", default="", metavar="NAME", help="the provider's name, as gpt-4o")
        parser.add_argument("--question", help="default: the one that the New run page suggests")
        unpriced = "run though no price of the model is known: the limit of the cost is then left out"
        parser.add_argument("--unpriced", action="store_true", help=unpriced)
        for name, most in DEFAULT_LIMITS.items():
            kind = partial(choices.limit, int if name in {"rounds", "tokens"} else float)
            parser.add_argument(f"--max-{name}", type=kind, default=most, metavar="N", help=f"default: {most}; or none")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of the transcript")
        resume = "resume a run that is paused, waits, failed or was stopped"
        parser.add_argument("--resume", type=int, metavar="RUN", help=resume)
        fork = "continue from a round of this run in a new one, with question, backbone, limits and seed from here"
        parser.add_argument("--fork", type=int, metavar="RUN", help=fork)
        last = "the last round that a fork copies; default: the last"
        parser.add_argument("--round", type=int, metavar="N", help=last)
        parser.add_argument("--note", default="", metavar="WORDS", help="a message to the agent of a fork")

    def handle(self, **options: Any) -> None:
        from workers.jobs import foreground
        from workers.jobs.console import Console

        # With --json, standard output has the object alone.
        console = Console(sys.stderr if options["json"] else sys.stdout)
        try:
            run = self.find_run(options)
            ended = foreground.investigate(run, console)
            check = foreground.check_conclusion(ended, lambda what, *_: console.line(what))
        except KeyboardInterrupt:
            console.line("")
            # 128 + SIGINT, as shells report it.
            raise CommandError(f"Paused. Resume: manage.py investigate --resume {run.pk}", returncode=130) from None
        console.line("")
        if check is not None:
            self.stderr.write(_describe_check(check))
        if options["json"]:
            self.stdout.write(json.dumps(_summary(ended, check), ensure_ascii=False))
        again = f"manage.py investigate --resume {ended.pk}"
        # 75 is EX_TEMPFAIL of sysexits.h: the same command may succeed later.
        if ended.status == Status.PAUSED:
            raise CommandError(f"Paused. Resume: {again}", returncode=75)
        if ended.status == Status.WAITING and transcript.awaits_reply(ended):
            console.line("")
            self.stderr.write(f"Run {ended.pk} is made. Round {ended.rounds + 1} is yours to write, on its page.")
        elif ended.status == Status.WAITING:
            words = f"The run waits: {ended.reason}\nPut this right, then resume with: {again}"
            raise CommandError(words, returncode=75)

    def find_run(self, options: dict[str, Any]) -> Run:
        """Return the run that the options name, or a new one."""
        if options["resume"] is not None:
            return _get_run(options["resume"])
        if options["fork"] is not None:
            # A fork, with the options that differ from the command's defaults. Raises CommandError, and saves nothing.
            from workers.jobs import foreground

            source = _get_run(options["fork"])
            # Units of the model must be known before the form can check them.
            foreground.look_at(source)
            defaults = {"backbone": None, "backbone_model": "", "question": None, "seed": 0, "unpriced": False}
            given = {name: options[name] for name, value in defaults.items() if options[name] != value}
            given |= {
                name: options[f"max_{name}"]
                for name, value in DEFAULT_LIMITS.items()
                if options[f"max_{name}"] != value
            }
            number = lineage.find_last_complete_round(source) if options["round"] is None else options["round"]
            try:
                form = ForkForm(source, lineage.find_fork_point(source, number), given | {"note": options["note"]})
                return actions.ask(Actor(welcome.owner()[0]), form, enqueue=False)
            except InvalidFields as error:
                raise CommandError(" ".join(each for messages in error.fields.values() for each in messages)) from error
            except ActionRefused as refused:
                raise CommandError(str(refused)) from refused
        run = make_run(options)
        if advice := compatibility.advise(run.model, run.toolset):
            self.stderr.write(advice)
        return run


def make_run(options: dict[str, Any]) -> Run:
    """Build a new run from the options. Raises RequestError, and saves nothing, if it is not possible."""
    from workers.jobs import foreground
    from workers.jobs.laboratory import laboratory
    from workers.jobs.run_round import get_first_event

    spec = choices.system_of(options)
    is_function = spec.kind == tasks.FUNCTION
    # Defaults depend on the system, so the parser cannot give them.
    options["task"] = options["task"] or (tasks.FUNCTION if is_function else tasks.DEFAULT_TASK)
    scripted = compatibility.SCRIPTED_FUNCTIONS if is_function else compatibility.SCRIPTED
    options["backbone"] = options["backbone"] or scripted
    if problem := compatibility.explain_incompatibility(options["backbone"], options["toolset"], spec.model):
        raise CommandError(problem)
    # No limit of the cost if the price is unknown
    limits = {name: options[f"max_{name}"] for name in DEFAULT_LIMITS}
    if options["unpriced"] and not laboratory().backbone(options["backbone"], options["backbone_model"]).price_known:
        limits["cost"] = None
    asked = {name: options[name] for name in ("reflections", "ablation") if options[name]}
    run = draft_run(
        spec,
        question=suggest_question(spec, options["task"]) if options["question"] is None else options["question"],
        limits=limits,
        options=asked,
        **{name: options[name] for name in ("task", "toolset", "backbone", "backbone_model", "seed")},
    )
    get_first_event(run)  # raises RequestError if what the run asks for is not possible
    foreground.look_at(run)
    return actions.add_run(Actor(welcome.owner()[0]), run, enqueue=False)


def suggest_question(spec: Any, task: str) -> str:
    """Return the question that the New run page suggests for a `SystemSpec`. Raises UnknownName."""
    from workers.jobs.plugin_keys import layer_of, name_of

    if spec.kind == CIRCUIT:
        return drafts.suggest_question(spec, task)
    return tasks.questions(layer_of(spec).kind, spec.model, spec.layer, spec.unit, name_of(spec))[task]


def _get_run(run_id: int) -> Run:
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise CommandError(f"There is no run {run_id}.")
    return run


_CHECKED = ("status", "reason", "pearson", "pearson_low", "pearson_high", "auprc", "base_rate", "generated_auc")


def _describe_check(check: LabelCheck) -> str:
    """Describe the result of the conclusion's check, in a sentence."""
    if check.pearson is None or check.auprc is None:
        return f"The label was not tested: {check.reason}" if check.reason else "The label is still to be tested."
    reading, low, high = describe_reading(check), check.pearson_low, check.pearson_high
    within = "(too few images show it for an interval)" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"
    # A check without a reading has no first sentence.
    return f"{reading} " * bool(reading) + (
        f"On images that the agent never saw the label predicts the unit with r = {check.pearson:.2f} "
        f"{within} and AUPRC {check.auprc:.2f} (chance {check.base_rate:.3g}); "
        f"AUC of 7 + 7 generated images {check.generated_auc or 0:.2f}."
    )


def _summary(run: Run, check: LabelCheck | None) -> dict[str, Any]:
    """Return the run as `--json` prints it, with the agent's latest hypotheses and the check of its label."""
    # The agent repeats its list in each round: only the last one counts.
    newest = run.hypotheses.aggregate(newest=Max("round"))["newest"]
    hypotheses = run.hypotheses.filter(round=newest).order_by("number")
    grades = [event.content for event in run.events.filter(kind="graded").order_by("seq")]
    plain = ("status", "reason", "rounds", "question", "task", "labels", "exemplar_mean", "best_activation")
    return {
        "run": run.pk,
        **{name: getattr(run, name) for name in (*plain, "prompt_tokens", "completion_tokens")},
        **{name: run.conclusion.get(name, "") for name in ("description", "bias", "reasoning", "domain", "code")},
        "biases": run.biases,
        "experiments": run.experiment_count,
        "observations": run.observation_count,
        "hypotheses": list(hypotheses.values("number", "text", "status", "reason")),
        "cost": run.known_cost,
        "check": None
        if check is None
        else {name: getattr(check, name) for name in _CHECKED} | {"reading": check.reading},
        "grades": [summarise_grade(each) for each in grades if isinstance(each, Graded)],
        "seconds": round(run.seconds, 3),
    }
