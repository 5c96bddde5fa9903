"""What the agent has answered so far, and what of an answer its task still misses. Pure, like `rules`, which calls it.

An answer that misses a part is asked for once more; the two replies then make one answer, so that neither is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.record import tasks
from workers.record.events import Event, ExperimentStarted, Reminder, Replied
from workers.record.replies import Conclusion

_TEXTS = ("description", "reasoning", "bias", "domain", "code")
_FOR_MORE = ("incomplete", "final_answer")
"""Notes after which a reply goes on with the answer of the reply before."""


@dataclass(frozen=True)
class Answer:
    conclusion: Conclusion | None = None
    tags: frozenset[str] = frozenset()
    """Of the parts that were given; LABEL too where it was said that there is none."""
    by_person: bool = False

    def lacks(self, task: str) -> list[str]:
        """Tags that are missing; none where a person wrote it, who was shown the fields and left them empty."""
        if self.conclusion and self.by_person:
            return []
        return [tags[0] for tags in tasks.find_task(task).needs if not self.tags & set(tags)]


def answer_of(events: Sequence[Event], latest: int) -> Answer:
    """The answer that the reply at place `latest` completes or gives."""
    now = _read_answer(events[latest])
    before = next((n for n in reversed(range(latest)) if isinstance(events[n].payload, Replied)), None)
    if before is None or not _went_on(events[before + 1 : latest]):
        return now
    first = _read_answer(events[before])
    one, two = first.conclusion, now.conclusion
    if one is None or two is None:
        return now if one is None else first
    # What was said last of each part; what was not said again stands
    texts = {name: getattr(two, name) or getattr(one, name) for name in _TEXTS}
    both = Conclusion(labels=two.labels if "LABEL" in now.tags else one.labels, **texts)
    return Answer(both, first.tags | now.tags, now.by_person)


def was_asked_for_more(events: Sequence[Event]) -> bool:
    """Whether the agent was asked once already for what an answer missed."""
    return any(isinstance(event.payload, Reminder) and event.payload.reason == "incomplete" for event in events)


def format_tags(tags: Sequence[str]) -> str:
    """Tags as the agent writes them: "[DESCRIPTION] and [LABEL]"."""
    return " and ".join(f"[{tag}]" for tag in tags)


def _read_answer(event: Event) -> Answer:
    reply = event.payload
    assert isinstance(reply, Replied)
    return Answer(reply.conclusion, frozenset(reply.tags), reply.by_person)


def _went_on(between: Sequence[Event]) -> bool:
    """Whether a reply was asked for more of the answer before it, and nothing was tried in between."""
    notes = [event.payload.reason for event in between if isinstance(event.payload, Reminder)]
    ran = any(isinstance(event.payload, ExperimentStarted) for event in between)
    return not ran and any(reason in _FOR_MORE for reason in notes)
