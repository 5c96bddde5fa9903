"""The one tree of errors of actions and lists. The message is a sentence for the person: the value, the reason, what to
do instead. Pages show it beside what was typed, the API answers with the problem `kind` and the field.

What is not there is Django's Http404 (`Model.DoesNotExist`), who may not is its PermissionDenied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ActionRefused(Exception):
    """Something that was asked for and is not done; nothing was changed."""

    kind = "conflict"
    """The kind of problem as the API tells it, a key of `api.problems.KINDS`."""


class InvalidInput(ActionRefused, ValueError):
    """A value that makes no sense, and where it stands; `field` is "" where it is of the whole."""

    kind = "invalid"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidFields(InvalidInput):
    """Several values that make no sense: name of each field -> a sentence or several."""

    def __init__(self, message: str, fields: Mapping[str, str | Sequence[str]]) -> None:
        super().__init__(message)
        self.fields = {
            name: [messages] if isinstance(messages, str) else list(messages) for name, messages in fields.items()
        }


class InvalidFilters(InvalidFields):
    """A list that is asked for by filters which make no sense: name of each -> why."""

    def __init__(self, problems: Mapping[str, str | Sequence[str]]) -> None:
        super().__init__("The filters make no sense: see errors.", problems)


class StateConflict(ActionRefused):
    """The row is in a state that does not allow it: over, closed, taken by somebody else, not due."""


class OutOfDate(StateConflict):
    """It has changed since it was read: what was written is kept, and has to be compared."""

    kind = "changed"
