"""Collect what the agent has answered so far and list the parts that its task still misses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.record import tasks
from workers.record.events import Replied, Started
from workers.record.replies import Conclusion

_TEXTS = ("description", "reasoning", "bias", "domain", "code")


@dataclass(frozen=True)
class FinalAnswer:
    conclusion: Conclusion | None = None
    tags: frozenset[str] = frozenset()
    """The parts that were given. LABEL is included where the agent said that there is none."""
    by_person: bool = False

    def lacks(self, start: Started) -> list[str]:
        """List the tags that are missing."""
        # A person's form showed all fields, so an empty one is meant.
        if self.conclusion and self.by_person:
            return []
        # Several tags may fill one need, such as labels or a verdict.
        return [tags[0] for tags in tasks.list_needs(start.task, start.system.layer) if not self.tags & set(tags)]


def complete_answer(before: Replied | None, reply: Replied) -> FinalAnswer:
    """Return the answer of a reply. `before` is the reply whose answer it continues, if any."""
    now = _read_answer(reply)
    if before is None:
        return now
    first = _read_answer(before)
    one, two = first.conclusion, now.conclusion
    # The second reply often repeats only what was missing, so the first one still counts.
    if one is None or two is None:
        # The reply that concludes counts, whichever of the two it is.
        return now if one is None else first
    # The latest text of each part counts; parts that are not repeated are kept.
    texts = {name: getattr(two, name) or getattr(one, name) for name in _TEXTS}
    both = Conclusion(labels=two.labels if "LABEL" in now.tags else one.labels, **texts)
    return FinalAnswer(both, first.tags | now.tags, now.by_person)


def format_tags(tags: Sequence[str]) -> str:
    """Format tags as the agent writes them: "[DESCRIPTION] and [LABEL]"."""
    return " and ".join(f"[{tag}]" for tag in tags)


def _read_answer(reply: Replied) -> FinalAnswer:
    return FinalAnswer(reply.conclusion, frozenset(reply.tags), reply.by_person)
