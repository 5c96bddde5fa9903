"""The errors that actions and lists raise.

The message is a sentence for the user: the value, the reason, the remedy. Pages show it beside the input; the API
answers with the problem `kind` and the field. Missing rows raise Django's Http404 (`Model.DoesNotExist`), missing
permission its PermissionDenied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ActionRefused(Exception):
    """An action was refused, and nothing was changed."""

    kind = "conflict"
    """The kind of problem in API responses, a key of `api.problems.KINDS`."""


class InvalidInput(ActionRefused, ValueError):
    """A value is invalid; `field` names where, or is "" for the whole input."""

    kind = "invalid"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidFields(InvalidInput):
    """Several values are invalid: name of each field -> one or several sentences."""

    def __init__(self, message: str, fields: Mapping[str, str | Sequence[str]]) -> None:
        super().__init__(message)
        self.fields = {
            name: [messages] if isinstance(messages, str) else list(messages) for name, messages in fields.items()
        }


class InvalidFilters(InvalidFields):
    """The filters of a list are invalid: name of each -> the reason."""

    def __init__(self, problems: Mapping[str, str | Sequence[str]]) -> None:
        super().__init__("The filters make no sense: see errors.", problems)


class StateConflict(ActionRefused):
    """The row's state does not allow the action: it is over, closed, claimed by another person, or not due."""


class OutOfDate(StateConflict):
    """The row has changed since it was read. The new text is kept, and the user must compare it."""

    kind = "changed"
