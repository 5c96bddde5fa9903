"""A desk: one row whose items people judge one after the other, without seeing other answers.

A pairwise trial has pairs of labels, a label check has images. Their own rooms implement the differences. Pages,
API, actions and files of both use this protocol alone.
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
    """What one judge sees. It contains nothing that could bias them."""

    @property
    def pk(self) -> int: ...
    @property
    def labels(self) -> Sequence[str]:
        """Return the labels in the order in which the page shows them."""

    @property
    def truth(self) -> str:
        """Return what a synthetic neuron was built to respond to; "" if images show it instead."""

    @property
    def images(self) -> Sequence[str]:
        """Return URLs for scripts; exemplars are masked."""

    @property
    def whole_images(self) -> Sequence[str]:
        """Return URLs of the same exemplars without masks."""


class Desk(Protocol):
    """One row and what is specific to its kind."""

    NOUN: ClassVar[str]
    """Name of the row in sentences."""
    ITEM: ClassVar[str]
    """Name of its items in sentences."""
    ANSWERS: ClassVar[Mapping[str, str]]
    """Each valid answer and its meaning."""
    AHEAD: ClassVar[int]
    """Items that a page holds: the current one, and those loaded in advance."""
    PAGE: ClassVar[str]
    ITEMS: ClassVar[str]
    """Templates of the page and of its items alone."""
    GIVEN: ClassVar[Verb]
    UNDONE: ClassVar[Verb]
    """Verbs of the audit log for an answer and for an undone answer."""
    CLOSES: ClassVar[Role]
    """Lowest role that may close it."""
    COLUMNS: ClassVar[Sequence[str]]
    """Columns of its CSV file."""

    @classmethod
    def find(cls, pk: int) -> Self | None:
        """Return the desk of a visible row, or None."""

    @classmethod
    def lock_open(cls, pk: int) -> Self:
        """Return the desk with its row locked, so that it stays open meanwhile. Raises StateConflict if judging is
        closed."""

    @property
    def row(self) -> PairwiseTrial | LabelCheck: ...
    @property
    def is_open(self) -> bool:
        """True while people are asked to judge."""

    def list_next(self, user: User, count: int, held: Collection[int] = ()) -> Sequence[Item]:
        """Return the next items for this person, without those that their page holds (`held`). Empty once judging is
        closed."""

    def count_progress(self, user: User) -> tuple[int, int]:
        """Return how many items are done for this person, and how many they were or are offered."""

    def describe(self, user: User) -> Mapping[str, Any]:
        """Return further context for the page."""

    def find_item(self, pk: int) -> Model | None: ...

    def keep(self, user: User, item: Any, said: str, seconds: float | None) -> tuple[bool, bool]:
        """Store an answer. Returns whether it is what this person says of the item, and whether it is new."""

    def find_last(self, user: User) -> tuple[Model, Model] | None:
        """Return this person's last answer and its item."""

    def follow(self, item: Any | None) -> None:
        """React to a new answer to `item`, or with None to an undone answer."""

    def close(self, actor: Actor) -> None:
        """Close judging. Raises StateConflict if too few items are judged."""

    def explain_hidden(self) -> str:
        """Return why the answers cannot be read yet; "" if they can."""

    def list_rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of the CSV file: every answer, and every item without one."""


DESKS: Mapping[str, type[Desk]] = {"trials": TrialDesk, "checks": CheckDesk}
"""Kind, as URLs name it -> class of desk."""


def find_desk(kind: str, pk: int) -> Desk | None:
    """Return the desk of a row; None if there is no such row or kind."""
    return DESKS[kind].find(pk) if kind in DESKS else None
