"""A backbone as the judge of a trial: a fresh conversation for each pair, its answer saved at once.

Called by `job_runner` for a job that somebody asked for on the page of a trial. Stopped, failed or at the end of its
allowance it keeps what it has, and goes on there when it is asked again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, QuerySet

from experiments.core.errors import StateConflict
from experiments.models import Job, Judge, Pair, PairwiseTrial, Vote
from experiments.models.pairwise import Answer
from experiments.pairwise import actions, judging
from workers.errors import ContentRefused, RequestError
from workers.jobs.images import read_image
from workers.jobs.laboratory import laboratory
from workers.metrics import two_way
from workers.protocols import Backbone, Emit, Message, Progress, Reply, StatusNote, usage_of
from workers.record.limits import Usage

ATTEMPTS = 2
"""Replies to one pair, the first included, until one can be read."""
BLIND = "{label} cannot look at pictures, so it cannot judge labels by them. Choose a vision-language model."

PRICELESS = (
    "No price is known for {label}, so its allowance cannot hold. Ask again with “Without a known price”, or have an "
    "admin add the price: Settings, Models says where."
)


@dataclass(frozen=True)
class Sitting:
    """A backbone and what it is to judge."""

    judge: Judge
    backbone: Backbone
    progress: Progress
    total: int

    @property
    def trial(self) -> PairwiseTrial:
        return self.judge.trial


def judge(job: Job, progress: Progress) -> str:
    """Have the backbone judge every pair that it has not judged. Returns what it did, in words.

    Raises RequestError if it cannot look or the trial is closed, Cancelled, and what the backbone raises.
    """
    found = Judge.objects.select_related("trial").filter(job=job).first()
    if found is None:
        raise RequestError("This work was asked for again elsewhere: the page of its trial has the newer one.")
    backbone = laboratory().backbone(found.backbone, found.backbone_model)
    if not backbone.sees:
        raise RequestError(BLIND.format(label=backbone.label))
    if not backbone.price_known and not found.unpriced:
        raise RequestError(PRICELESS.format(label=backbone.label))
    sitting = Sitting(found, backbone, progress, found.trial.pairs.count())
    while pair := pending(sitting).first():
        found.refresh_from_db(fields=["cost"])
        if found.cost >= found.cost_limit:
            raise RequestError(
                f"Its allowance of ${found.cost_limit:.2f} is used up: it has cost ${found.cost:.2f}. What it judged "
                "is kept. Ask again with a higher limit to go on."
            )
        consider(sitting, pair)
    progress("Judging", sitting.total, sitting.total)
    return f"All {sitting.total} pairs are judged."


def pending(sitting: Sitting) -> QuerySet[Pair]:
    done = Vote.objects.filter(judge=sitting.judge).values("pair")
    return sitting.trial.pairs.exclude(pk__in=done).order_by("position")


def consider(sitting: Sitting, pair: Pair) -> None:
    """Ask about one pair, and keep the answer with what it took."""
    done = sitting.total - pending(sitting).count()

    def emit(_: str | StatusNote | None) -> None:
        sitting.progress("Judging", done, sitting.total)

    emit("")
    # The order of a backbone's pairs is drawn by its name
    name = f"backbone {sitting.judge.backbone} {sitting.judge.backbone_model}"
    swapped = judging.is_swapped(sitting.trial, pair, name)
    began = time.monotonic()
    texts = (pair.text_b, pair.text_a) if swapped else (pair.text_a, pair.text_b)
    shown = judging.exemplars_of([pair.profile_id] if pair.profile_id and not pair.truth else [])
    images = [(each.masked_id, each.image_id) for each in shown.get(pair.profile_id or 0, [])]
    if not images and not pair.truth:
        raise RequestError(f"The exemplars of {pair.unit_name} are gone: have a worker find them again, then go on.")
    messages = two_way.build_question(*texts, images, pair.truth)
    for attempt in range(ATTEMPTS):
        reply = ask(sitting.backbone, messages, emit, sitting.trial.seed + attempt)
        said = two_way.parse_answer(reply.text)
        if said or attempt == ATTEMPTS - 1:
            answer = judging.answer_of(said, swapped) if said else Answer.UNREAD
            keep(sitting, pair, answer, swapped, time.monotonic() - began, reply)
            return
        spend(sitting.judge, reply.usage)


def ask(backbone: Backbone, messages: list[Message], emit: Emit, seed: int) -> Reply:
    """The reply; a content filter's refusal is one that cannot be read, and says so."""
    try:
        return backbone.reply(messages, read_image, emit, seed)
    except ContentRefused as error:
        return Reply(f"(refused) {error}", usage_of(error))


@transaction.atomic
def keep(sitting: Sitting, pair: Pair, answer: Answer, swapped: bool, seconds: float, reply: Reply) -> None:
    """The answer, unless the trial was closed meanwhile. Raises RequestError then."""
    try:
        actions.lock_open_trial(sitting.trial.pk)
    except StateConflict as error:
        raise RequestError(str(error)) from None
    known = {"answer": answer, "swapped": swapped, "seconds": seconds, "reply": reply.text}
    Vote.objects.get_or_create(judge=sitting.judge, pair=pair, defaults=known)
    spend(sitting.judge, reply.usage)
    actions.publish(sitting.trial.pk)


def spend(judge: Judge, usage: Usage) -> None:
    Judge.objects.filter(pk=judge.pk).update(
        prompt_tokens=F("prompt_tokens") + usage.prompt_tokens,
        completion_tokens=F("completion_tokens") + usage.completion_tokens,
        cost=F("cost") + usage.cost,
    )
