"""A desk: one row whose items people judge one after the other, each blind to what others say.

A pairwise trial has pairs of labels, a label check has images. What differs between them is said by their own rooms;
pages, API, actions and file of both stand here, and know a desk by this protocol alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from django.contrib.auth.models import User
from django.db.models import Model

from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.label_checks.desk import CheckDesk
from experiments.models import LabelCheck, PairwiseTrial, Role
from experiments.pairwise.desk import TrialDesk


class Item(Protocol):
    """What one judge is shown, and nothing that could lead them."""

    @property
    def pk(self) -> int: ...
    @property
    def labels(self) -> Sequence[str]:
        """In the order in which they stand on the page."""

    @property
    def truth(self) -> str:
        """What a synthetic neuron was built to respond to; "" where images show it."""

    @property
    def images(self) -> Sequence[str]:
        """Addresses for scripts; of exemplars, masked."""

    @property
    def whole_images(self) -> Sequence[str]:
        """Addresses of the same exemplars, not masked."""


class Desk(Protocol):
    """One row, and what is peculiar to its kind."""

    NOUN: ClassVar[str]
    """What the row is, as sentences call it."""
    ITEM: ClassVar[str]
    """What its items are."""
    ANSWERS: ClassVar[Mapping[str, str]]
    """Each answer that may be given, and what it means."""
    AHEAD: ClassVar[int]
    """Items that a page holds: the one that is judged, and those behind it, loaded already."""
    PAGE: ClassVar[str]
    ITEMS: ClassVar[str]
    """Templates of the page, and of its items alone."""
    GIVEN: ClassVar[Verb]
    UNDONE: ClassVar[Verb]
    """How the audit log calls an answer, and one taken back."""
    CLOSES: ClassVar[Role]
    """Who ends it, at least."""
    COLUMNS: ClassVar[Sequence[str]]
    """Of its file."""

    @classmethod
    def find(cls, pk: int) -> Self | None:
        """The desk of a row that everybody may see; None where there is none."""

    @classmethod
    def lock_open(cls, pk: int) -> Self:
        """The same, so that nobody closes it meanwhile. Raises StateConflict if nobody is asked any more."""

    @property
    def row(self) -> PairwiseTrial | LabelCheck: ...
    @property
    def is_open(self) -> bool:
        """Whether people are asked."""

    def list_next(self, user: User, count: int, held: Collection[int] = ()) -> Sequence[Item]:
        """The next items for this person, but for those that their page holds; none once nobody is asked."""

    def count_progress(self, user: User) -> tuple[int, int]:
        """Items that need nothing more of this person, and all that were or are offered to them."""

    def describe(self, user: User) -> Mapping[str, Any]:
        """What its page shows besides."""

    def find_item(self, pk: int) -> Model | None: ...

    def keep(self, user: User, item: Any, said: str, seconds: float | None) -> tuple[bool, bool]:
        """Keep an answer: whether it is what this person says of the item, and whether it is new."""

    def find_last(self, user: User) -> tuple[Model, Model] | None:
        """The last answer of this person, and the item that it is of."""

    def follow(self, item: Any | None) -> None:
        """What follows once an item is judged; with None, once an answer is taken back."""

    def close(self, actor: Actor) -> None:
        """Ask nobody any more. Raises StateConflict where that would leave nothing to go by."""

    def explain_hidden(self) -> str:
        """Why its answers cannot be read yet; "" where they can."""

    def list_rows(self) -> Iterator[Sequence[Any]]:
        """Rows of its file: every answer, and every item without one."""


DESKS: Mapping[str, type[Desk]] = {"trials": TrialDesk, "checks": CheckDesk}
"""By the word in addresses."""


def find_desk(kind: str, pk: int) -> Desk | None:
    """The desk of a row; None where there is no such row or kind."""
    return DESKS[kind].find(pk) if kind in DESKS else None
