"""Who is meant by @name: members alone. A stranger, or nobody, stays plain text, and the writer is told."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.display import prose

MOST = 20
"""People that one comment mentions; names after those stay plain text."""


@dataclass(frozen=True)
class Mentions:
    """Who a text mentions, and the names in it that are no member's."""

    members: list[User]
    unknown: list[str]

    @property
    def notice(self) -> str:
        """What its writer should know; "" where everybody mentioned is told."""
        if not self.unknown:
            return ""
        names = ", ".join(f"@{name[:40]}" for name in self.unknown[:5])
        return f"{names} {'is' if len(self.unknown) == 1 else 'are'} not on this team: nobody was told."


def find_mentions(text: str) -> Mentions:
    """The members that a text mentions, each once, in the order of the text. One query."""
    plain = prose.LINK.sub(" ", prose.CODE.sub(" ", text))
    names = list(dict.fromkeys(match["name"] for match in prose.MENTION.finditer(plain)))[: MOST * 2]
    wanted = {way for name in names for way in prose.spellings(name)}
    found = {user.get_username(): user for user in members().filter(username__in=wanted)} if wanted else {}
    meant = {name: next((found[way] for way in prose.spellings(name) if way in found), None) for name in names}
    people = dict.fromkeys(user for user in meant.values() if user is not None)
    return Mentions(list(people)[:MOST], [prose.spellings(name)[-1] for name, user in meant.items() if user is None])


def members() -> QuerySet[User]:
    """Everybody who can be mentioned."""
    return User.objects.filter(member__isnull=False, is_active=True).order_by("username")
