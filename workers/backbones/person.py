"""A person as backbone: return the reply that a person has written, or report that it is not there yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PIL.Image import Image

from workers.errors import AwaitsPerson, UnknownName
from workers.protocols import Emit, LabSettings, Message, Reply


class PersonBackbone:
    """See `protocols.Backbone`. Uses no thread: while there is no reply, the run waits."""

    # People look at images themselves; programs that ask for descriptions get them from the toolset
    sees = False
    price_known = True

    def __init__(self, label: str = "A person", text: str | None = None) -> None:
        """`text` is the reply of this round, None while it is not written; `label` its author."""
        self.label = label
        self._text = text

    def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
        """Return the reply as it was written. Raises AwaitsPerson."""
        del messages, load, seed
        if self._text is None:
            raise AwaitsPerson("The reply of this round is a person's to write.")
        emit(self._text)
        return Reply(self._text, by_person=True)


def load(settings: LabSettings, model: str) -> PersonBackbone:
    """Return a person who has not written yet. Raises UnknownName if a model is named."""
    del settings
    if model:
        raise UnknownName(f"A person is no language model: leave the backbone's model {model!r} out.")
    return PersonBackbone()
