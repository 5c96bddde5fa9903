"""Every error the laboratory raises, in one tree: the class decides who is notified.

    MaiaError
    ├── ToolError              reported to the agent, as a message about a tool
    │   ├── ToolMisuse             an argument is wrong
    │   └── ToolRefused            the provider behind a tool said no
    ├── RequestError           reported to the person who asked; nothing was started
    │   ├── UnknownName            no such model, layer, unit, dataset or backbone
    │   ├── MissingPart            weights, a folder or a key are not there; says how to get them
    │   └── BrokenImage            an image of a dataset cannot be read; it is reported and left out
    ├── MachineryError         reported to the operator; recorded, retried, then ends or suspends the run
    │   ├── SandboxBroke           the sandbox could not run a program at all
    │   ├── NotFinite              a network gave NaN or infinities
    │   ├── Outage                 database, disk or store are away or full; what was begun waits for its end
    │   ├── BackboneUnavailable    the backbone did not answer; asking again may help
    │   └── BackboneRefused        the backbone will not answer until a person acts (key, credit, model); the run waits
    │       └── ContentRefused         its content filter stopped this very question
    ├── TimeIsUp               a run's time is over while its provider is silent; the run comes to its end
    ├── AwaitsPerson           a person writes the reply, and has not yet; the run waits
    ├── Cancelled              a person stopped the run; unwinds what is under way
    └── LeaseLost              another worker holds the run; this one must record nothing more

Errors of an agent's program are not in this tree: they are part of its `ExperimentResult`.
"""


class MaiaError(Exception):
    """Base of all errors of the laboratory. The message names the value, the reason and the remedy."""

    spent: object = None
    """Usage of a language model before it was raised; set by the code that asked the model."""


class ToolError(MaiaError):
    """Raised when a tool cannot do what the program asked; the program may catch it."""


class ToolMisuse(ToolError):
    """Raised when an argument is of the wrong type, length or range."""


class ToolRefused(ToolError):
    """Raised when the provider behind a tool refuses, for example a content filter."""


class RequestError(MaiaError):
    """Raised when what a person asked for cannot be done; nothing was started."""


class UnknownName(RequestError):
    """Raised when a model, layer, unit, dataset, task or backbone does not exist."""


class MissingPart(RequestError):
    """Raised when weights, a folder or a key are missing or unusable; the message says how to get them."""


class BrokenImage(RequestError):
    """Raised when an image of a dataset cannot be read; it is reported and left out."""


class MachineryError(MaiaError):
    """Raised when our own machinery breaks. Never shown to the agent as output."""


class SandboxBroke(MachineryError):
    """Raised when the sandbox cannot run programs at all; what a child does ends its experiment alone."""


class NotFinite(MachineryError):
    """Raised when a network gives NaN or infinities."""


class Outage(MachineryError):
    """Raised when the database, a disk or the store of images is unavailable or full: work waits until it is back."""


class BackboneUnavailable(MachineryError):
    """Raised when the backbone gives no usable answer and asking again may help."""


class BackboneRefused(MachineryError):
    """Raised when the backbone will not answer until a person acts (key, credit, model name)."""


class ContentRefused(BackboneRefused):
    """Raised when a provider's content filter stops a question or its answer."""


class AwaitsPerson(MaiaError):
    """Raised when a person has to write the reply, and has not yet."""


class TimeIsUp(MaiaError):
    """Raised when a run reaches its time limit while no text of the reply comes."""


class Cancelled(MaiaError):
    """Raised inside work that a person stopped."""


class LeaseLost(MaiaError):
    """Raised when a step is recorded by a worker that no longer holds the run."""
