"""Let a backbone judge a trial: a new conversation for each pair.

If it is stopped, fails or uses up its allowance, finished pairs are kept and the job can be resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from experiments.core.errors import StateConflict
from experiments.models import Answer, Job, Judge, Pair, Vote
from experiments.pairwise import actions, judging
from workers.errors import ContentRefused, RequestError
from workers.jobs.images import read_image
from workers.jobs.laboratory import laboratory
from workers.metrics import two_way
from workers.protocols import Backbone, Progress, Reply, usage_of
from workers.record.limits import Usage, explain_unpriced

ATTEMPTS = 2
"""Maximum number of replies about one pair until one can be read."""
BLIND = "{label} cannot look at pictures, so it cannot judge labels by them. Choose a vision-language model."


def judge(job: Job, progress: Progress) -> str:
    """Let the backbone judge every pair that it has not judged. Return a summary in words.

    Raises RequestError if it cannot see images or the trial is closed, Cancelled, and the errors of the backbone.
    """
    found = Judge.objects.select_related("trial").filter(job=job).first()
    if found is None:
        raise RequestError("This job was replaced by a newer one, see the page of its trial.")
    backbone = laboratory().backbone(found.backbone, found.backbone_model)
    if not backbone.price_known and not found.unpriced:
        raise RequestError(explain_unpriced(backbone.label, "its allowance", "Ask again with “Without a known price”"))
    total = found.trial.pairs.count()
    for _ in judge_pairs(found, backbone, progress):
        found.refresh_from_db(fields=["cost"])
        if found.cost >= found.cost_limit:
            raise RequestError(
                f"Its allowance of ${found.cost_limit:.2f} is used up: it has cost ${found.cost:.2f}. What it judged "
                "is kept. Start it again with a higher limit to continue."
            )
    return f"All {total} pairs are judged."


def judge_pairs(judge: Judge, backbone: Backbone, progress: Progress) -> Iterator[None]:
    """Let the backbone judge every remaining pair of the judge's trial. Yields before each.

    Raises RequestError if it must see images and cannot, Cancelled, and the errors of the backbone.
    """
    pairs = judge.trial.pairs
    if not backbone.sees and pairs.filter(truth="").exists():
        raise RequestError(BLIND.format(label=backbone.label))
    total = pairs.count()
    left = pairs.exclude(pk__in=Vote.objects.filter(judge=judge).values("pair")).order_by("position")
    while pair := left.first():
        yield
        _consider(judge, backbone, pair, partial(progress, "Judging", total - left.count(), total))
    progress("Judging", total, total)


def _consider(judge: Judge, backbone: Backbone, pair: Pair, tell: Callable[[], None]) -> None:
    """Ask about one pair, and save the answer and its cost."""
    tell()
    # The order of the two labels is drawn by the backbone's name and the pair
    # Another backbone gets another order, so that the position has no effect on average.
    swapped = judging.is_swapped(judge.trial, pair, f"backbone {judge.backbone} {judge.backbone_model}")
    began = time.monotonic()
    # In a random order, because judges favour the text that they read first.
    texts = (pair.text_b, pair.text_a) if swapped else (pair.text_a, pair.text_b)
    # A known truth is judged by words alone.
    shown = judging.exemplars_of([pair.profile_id] if pair.profile_id and not pair.truth else [])
    images = [(each.masked_id, each.image_id) for each in shown.get(pair.profile_id or 0, [])]
    if not images and not pair.truth:
        raise RequestError(
            f"The exemplars of {pair.unit_name} are missing. Let a worker find them again, then continue."
        )
    messages = two_way.build_question(*texts, images, pair.truth)
    for attempt in range(ATTEMPTS):
        try:
            # Another seed for each attempt, or the same unreadable reply may come back.
            reply = backbone.reply(messages, read_image, lambda _: tell(), judge.trial.seed + attempt)
        except ContentRefused as error:  # Counts as an unreadable answer
            reply = Reply(f"(refused) {error}", usage_of(error))
        said = two_way.parse_answer(reply.text)
        if said or attempt == ATTEMPTS - 1:
            answer = judging.answer_of(said, swapped) if said else Answer.UNREAD
            known = {"answer": answer, "swapped": swapped, "seconds": time.monotonic() - began, "reply": reply.text}
            # At once, so that a stop or a failure loses no answer that was paid for.
            save_vote(judge, pair, known, reply.usage)
            return
        # An unreadable reply was paid for too
        spend(judge, reply.usage)


@transaction.atomic
def save_vote(judge: Judge, pair: Pair, vote: dict[str, Any], usage: Usage) -> None:
    """Save the vote. Raises RequestError if the trial was closed meanwhile."""
    try:
        actions.lock_open_trial(judge.trial_id)
    except StateConflict as error:
        raise RequestError(str(error)) from None
    # Another worker may have judged the pair meanwhile
    Vote.objects.get_or_create(judge=judge, pair=pair, defaults=vote)
    spend(judge, usage)
    actions.publish(judge.trial_id)


def spend(judge: Judge, usage: Usage) -> None:
    Judge.objects.filter(pk=judge.pk).update(
        prompt_tokens=F("prompt_tokens") + usage.prompt_tokens,
        completion_tokens=F("completion_tokens") + usage.completion_tokens,
        cost=F("cost") + usage.cost,
    )
