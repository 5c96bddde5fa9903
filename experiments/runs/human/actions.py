"""Rounds that people write: save a draft, send it as the reply, stop its program, hand the run over.

Each draft belongs to one person; if two people send the same round, the first counts.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from experiments.core import audit, compatibility, parts, queue, transcript
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.compatibility import PERSON
from experiments.core.display_name import person
from experiments.core.errors import InvalidFields, InvalidInput, OutOfDate, StateConflict
from experiments.models import Backbone, HumanReply, ReplyPurpose, Run
from experiments.runs.human import drafts
from experiments.runs.human.drafts import Values
from workers.record.events import HandedOver, Note
from workers.record.grammar import written
from workers.record.statuses import ACTIVE, REOPENABLE, Status

NOTE_CHARS = 4_000
ANOTHER_LOOK = "It was not sent: some of it needs another look. All you wrote is kept."


def save_draft(actor: Actor, run_id: int, round_number: int, version: int, values: Values) -> HumanReply:
    """Save what a person has written. `version` is that of the copy they edited, 0 for a fresh one.

    Raises OutOfDate where another tab has saved since, StateConflict, InvalidFields; then nothing is changed.
    """
    if problems := drafts.find_too_long(values):
        raise InvalidFields(ANOTHER_LOOK, problems)
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)  # two tabs save one after the other
        draft = run.human_replies.filter(round=round_number, author=actor.person).first()
        if draft is None and round_number not in {run.rounds, run.rounds + 1}:  # a round just sent by another counts
            raise StateConflict(f"Round {round_number} is not the next one any more, and you have no draft of it.")
        draft = draft or HumanReply(run=run, round=round_number, author=actor.person)
        if draft.sent:
            raise StateConflict(f"You have sent round {round_number} already.")
        # The same text again is no conflict, whatever the version.
        if draft.pk and draft.values == values:
            return draft
        if draft.version != version:
            raise OutOfDate("This draft was changed elsewhere, in another tab or window of yours.")
        for name, value in values.items():
            setattr(draft, name, value)
        draft.version, draft.saved = version + 1, timezone.now()
        draft.save()
    return draft


@transaction.atomic
def send_reply(actor: Actor, draft: HumanReply) -> None:
    """Make a saved draft the reply of its round, for a worker to execute.

    Raises StateConflict, InvalidFields; the draft is then kept as it is.
    """
    # Locked: of two people who send at once, the first counts.
    run = Run.objects.select_for_update().get(pk=draft.run_id)
    first = run.human_replies.filter(round=draft.round, sent__isnull=False).select_related("author").first()
    if first is not None:
        raise StateConflict(f"{person(first.author)} has sent round {draft.round} already. Your draft is kept.")
    if draft.round != run.rounds + 1 or not transcript.awaits_reply(run):
        raise StateConflict(f"{_explain_not_due(run)} Your draft is kept.")
    problems = written.find_problems(draft.values, run.task)
    if not problems and draft.what == ReplyPurpose.EXPERIMENT and drafts.is_final_answer(run):
        problems = {"what": "A limit is reached: no program is run any more, so this is the last word: conclude."}
    if problems:
        raise InvalidFields(ANOTHER_LOOK, {name: [words] for name, words in problems.items()})
    draft.sent = timezone.now()
    draft.save(update_fields=["sent"])
    # The draft stays a row; a worker makes the event of it, as with any reply.
    transcript.resume(run.pk, person(draft.author), with_reply=True)
    audit.record(actor, Verb.REPLY_SENT, run, round=draft.round, what=draft.what)
    queue.enqueue(run.pk)


def _explain_not_due(run: Run) -> str:
    if run.has_ended:
        return f"The run has ended ({run.get_status_display().lower()})."
    if run.backbone != PERSON:
        return "An agent writes the next round: the run was handed over."
    return f"The run is {run.get_status_display().lower()}, and does not wait for this round."


@transaction.atomic
def stop_program(actor: Actor, run: Run) -> HumanReply:
    """End the program that a person sent; its run continues. Raises StateConflict if there is none."""
    reply = find_under_way(run)
    if reply is None:
        raise StateConflict("No program of a person is running.")
    # The first person who stops it is named.
    HumanReply.objects.filter(pk=reply.pk, stopped_by="").update(stopped_by=actor.name[:150])
    audit.record(actor, Verb.PROGRAM_STOPPED, run, round=reply.round)
    return reply


def find_under_way(run: Run) -> HumanReply | None:
    """Return the reply whose program waits for a worker or runs at this moment."""
    if run.has_ended or run.status not in ACTIVE:
        return None
    rows = run.human_replies.filter(
        what=ReplyPurpose.EXPERIMENT, sent__isnull=False, round__in=(run.rounds, run.rounds + 1)
    )
    reply = rows.select_related("author").order_by("-round").first()
    done = run.experiments.filter(round=run.rounds).exclude(status="running").exists()
    return None if reply is None or (reply.round == run.rounds and done) else reply


# --- who writes the next replies ------------------------------------------------------------------------


def _find_writer(run: Run, key: str, model: str) -> tuple[str, str]:
    """Return the provider's model and the name of a person, or of the backbone of this key, if fit for the run. Raises
    InvalidInput with the reason."""
    if key == PERSON:
        return "", parts.label_backbone(PERSON)
    backbones = {row.key: row for row in Backbone.objects.exclude(key=PERSON)}
    if key not in backbones:
        raise InvalidInput(f"There is no backbone “{key}” here. Choose one of: {', '.join(backbones)}.", "backbone")
    row = backbones[key]
    if not row.available:
        raise InvalidInput(f"{row.label} cannot be used yet. {row.remedy}", "backbone")
    if problem := compatibility.explain_incompatibility(key, run.toolset, run.model):
        raise InvalidInput(problem, "backbone")
    if model and model not in row.model_names:
        names = ", ".join(row.model_names) or "none"
        raise InvalidInput(f"{row.label} offers no model “{model}”. Choose one of: {names}.", "backbone_model")
    chosen = compatibility.model_of(key, model)
    if chosen in row.unpriced and run.limits.get("cost") is not None:
        words = f"No price is known for {chosen}, so the limit of the cost could not hold. Remove it first."
        raise InvalidInput(words, "backbone_model")
    return chosen, f"{row.label}, {chosen}" if chosen else row.label


@transaction.atomic
def hand_over(actor: Actor, run_id: int, backbone: str, model: str = "", note: str = "") -> None:
    """Let this backbone, or a person, write from the next reply on, after an optional `note`. The reply under way keeps
    its author, and an idle run continues. Raises InvalidInput, StateConflict."""
    if len(note) > NOTE_CHARS:
        words = f"The note has {len(note):,} characters; at most {NOTE_CHARS:,} are taken. Shorten it."
        raise InvalidInput(words, "note")
    # Locked: a worker may append to the run at the same moment.
    run = Run.objects.select_for_update().get(pk=run_id)
    model, label = _find_writer(run, backbone, model)
    # Whether another author may write the next reply: a run that concluded, or used up its limits, is over
    if run.has_ended and run.status not in REOPENABLE:
        raise StateConflict(f"The run is over ({run.get_status_display().lower()}): no one can write in it any more.")
    if (run.backbone, run.backbone_model) == (backbone, model):
        raise StateConflict(f"{label} writes the replies of this run already.")
    awaited = transcript.awaits_reply(run)
    reopened = run.has_ended and transcript.resume(run.pk, actor.name)
    transcript.append(run.pk, "handover", HandedOver(run.rounds, actor.name, backbone, model, label))
    if note.strip():
        transcript.append(run.pk, "note", Note(run.rounds, actor.name, note.strip()))
    stands = run.status in {*REOPENABLE, Status.WAITING}
    if reopened or (stands and transcript.resume(run.pk, actor.name, with_reply=awaited)):
        queue.enqueue(run.pk)
    audit.record(actor, Verb.RUN_HANDED_OVER, run, backbone=backbone, model=model, note=bool(note))
