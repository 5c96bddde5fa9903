"""Anchors of threads: the run, an event, an experiment, an image, or a quote from an event.

A quote is found by its own text and a little of the text around it, as a browser selected them. White space is
ignored when we check if the quote is still there, because pages put white space between blocks that the text lacks.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

from django.utils.html import strip_tags

from experiments.core.errors import InvalidInput
from experiments.core.params import MAX_COUNT, clean_line, parse_number
from experiments.display import events as rendering
from experiments.models import Event, Observation, Run, Thread
from experiments.models.comment import NEARBY_CHARS, QUOTE_CHARS, On

PROGRAMS = frozenset({"experiment", "result"})
"""Kinds of events that pages draw as the card of an experiment."""


def form_fields(thread: Thread) -> dict[str, str | int]:
    """Return the form fields that describe the anchor of a thread; `read_anchor` parses them."""
    if thread.on == On.EXPERIMENT and thread.experiment:
        return {"on": thread.on, "experiment": thread.experiment.number}
    if thread.on == On.IMAGE and thread.experiment and thread.observation:
        return {"on": thread.on, "experiment": thread.experiment.number, "image": thread.observation.image_id}
    named: dict[str, str | int] = {"on": thread.on} | ({"seq": thread.seq} if thread.seq is not None else {})
    if thread.on == On.WORDS:
        named |= {name: getattr(thread, name) for name in ("quote", "before", "after", "place")}
    return named


def read_anchor(run: Run, params: Mapping[str, str]) -> Thread:
    """Parse a form or a query string into an unsaved thread. Raises InvalidInput."""
    on = params.get("on", "") or On.RUN
    if on == On.RUN:
        return Thread(run=run, on=on)
    if on in {On.EXPERIMENT, On.IMAGE}:
        number = _number_of(params.get("experiment", ""), "experiment")
        experiment = run.experiments.filter(number=number).first()
        if experiment is None:
            raise InvalidInput(f"Run {run.pk} has no experiment {number}.")
        if on == On.EXPERIMENT:
            return Thread(run=run, on=on, experiment=experiment)
        # The image as this experiment logged it; the original of an edit may have been logged by one before
        key = params.get("image", "")
        logged = Observation.objects.filter(run=run, image=key).select_related("experiment")
        found = list(logged.order_by("experiment__number", "position")[:100])
        if not found:
            raise InvalidInput(f"Run {run.pk} logged no image {key[:12]}.")
        observation = next((row for row in found if row.experiment_id == experiment.pk), found[0])
        return Thread(run=run, on=on, experiment=observation.experiment, observation=observation)
    if on in {On.EVENT, On.WORDS}:
        number = _number_of(params.get("seq", ""), "event")
        event = run.events.filter(seq=number).first()
        if event is None:
            raise InvalidInput(f"Run {run.pk} has no event {number}.")
        return Thread(run=run, on=on, seq=event.seq) if on == On.EVENT else _words_of(run, event, params)
    raise InvalidInput(f"A thread cannot be attached to “{on[:40]}”.")


def _number_of(text: str, noun: str) -> int:
    number = parse_number(text, digits=10) or 0
    if not 0 < number <= MAX_COUNT:
        raise InvalidInput(f"“{text[:40]}” is no number of an {noun}.")
    return number


def _words_of(run: Run, event: Event, params: Mapping[str, str]) -> Thread:
    quote = clean_line(params.get("quote", ""))
    if not quote:
        raise InvalidInput("No words are chosen: select some in the transcript.")
    if len(quote) > QUOTE_CHARS:
        raise InvalidInput(f"{len(quote)} characters are chosen, and a comment hangs on at most {QUOTE_CHARS}.")
    if not _stands_in(quote, _text_of(run, [event])[event.seq]):
        raise InvalidInput(f"The words chosen do not stand in event {event.seq}.")
    return Thread(
        run=run,
        on=On.WORDS,
        seq=event.seq,
        quote=quote,
        before=clean_line(params.get("before", ""))[-NEARBY_CHARS:],
        after=clean_line(params.get("after", ""))[:NEARBY_CHARS],
        place=min(parse_number(params.get("place"), digits=10) or 0, MAX_COUNT),
    )


def spot_of(thread: Thread, numbers: Mapping[int, int] = {}) -> tuple[str, int | None]:
    """Return the id of the transcript element that a thread belongs to, and the event that this element draws.

    `numbers` maps events that are drawn as the card of an experiment to the number of that experiment.
    """
    if thread.experiment is not None:
        return f"experiment-{thread.experiment.number}", thread.experiment.seq
    if thread.seq is None:
        return "", None
    return (f"experiment-{numbers[thread.seq]}" if thread.seq in numbers else f"e{thread.seq}"), thread.seq


# --- quotes ------------------------------------------------------------------------------------------


def find_orphans(run: Run, threads: Iterable[Thread]) -> set[int]:
    """Return the keys of threads whose quote is no longer in their event as it is drawn now. The number of queries
    is constant."""
    quoting = [thread for thread in threads if thread.on == On.WORDS]
    if not quoting:
        return set()
    texts = _text_of(run, list(run.events.filter(seq__in={thread.seq for thread in quoting})))
    return {thread.pk for thread in quoting if not _stands_in(thread.quote, texts.get(thread.seq or 0, ""))}


def _text_of(run: Run, events: list[Event]) -> dict[int, str]:
    """Return the text of each event as a page shows it; for the start of an experiment, the text of its card."""
    drawn = rendering.render_events(run, events, folded=False)
    return {event.seq: html.unescape(strip_tags(each)) for event, each in drawn}


def _stands_in(quote: str, text: str) -> bool:
    return "".join(quote.split()) in "".join(text.split())
