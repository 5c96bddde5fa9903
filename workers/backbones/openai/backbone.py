"""A vision-language model on any server with OpenAI's chat completions: OpenAI, Gemini, Claude, vLLM, Ollama, ….

The reply is streamed. Errors on the way are corrected if possible (see `request`), and never become a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from PIL.Image import Image

from workers.backbones.openai import pricing
from workers.backbones.openai.encoding import EncodedImage, encode_image
from workers.backbones.openai.messages import image_keys
from workers.backbones.openai.request import Learnt, ReplyRequest
from workers.backbones.openai.retry import RetryPolicy
from workers.errors import MissingPart, UnknownName
from workers.protocols import Emit, LabSettings, Message, Price, Provider, Reply


class OpenAIChat:
    """See `protocols.Backbone`. May be used from several threads; each reply has its own connection."""

    sees = True

    def __init__(self, provider: Provider, model: str, policy: RetryPolicy | None = None) -> None:
        self.label = model
        self._provider = provider
        self._policy = policy or RetryPolicy(silence=provider.silence)
        self._learnt = Learnt()

    @property
    def price_known(self) -> bool:
        return pricing.price_of(self._provider, self.label) is not None

    def __repr__(self) -> str:
        return f"OpenAIChat({self.label!r})"

    def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
        """Answer the conversation, with as many of its images as fit.

        Raises BackboneRefused, ContentRefused, BackboneUnavailable, and what `emit` and `load` raise.
        """
        # Each image once, however often it occurs.
        pictures: dict[str, EncodedImage] = {}
        for key in image_keys(messages):
            pictures[key] = encode_image(load(key))
            # Encoding takes long for many images, and a person may stop the run meanwhile.
            emit("")
        asking = ReplyRequest(self._provider, self.label, self._policy, self._learnt, messages, pictures)
        return asking.answer(emit, seed)


def missing(settings: LabSettings, model: str = "") -> str:
    """Say what keeps the backbone from being used and the remedy; "" if nothing does. Makes no request."""
    del model
    provider = settings.provider
    if not provider.key and not provider.base_url:
        return (
            "There is no key for a vision-language model. Set OPENAI_API_KEY, "
            "or OPENAI_BASE_URL to the address of a server of your own, and start again."
        )
    # Such a key would break the request's header.
    if not (provider.key.isascii() and provider.key.isprintable() and " " not in provider.key):
        return "OPENAI_API_KEY holds a space, a line break or another character that no key has. Copy it again."
    if provider.base_url and not _is_address(provider.base_url):
        return (
            f"OPENAI_BASE_URL={provider.base_url!r} is not an address. "
            "Write it out, as in https://api.openai.com/v1 or http://127.0.0.1:11434/v1."
        )
    return ""


def models(settings: LabSettings) -> tuple[str, ...]:
    """List the provider's names of the offered models, the default first."""
    return settings.provider.models


def prices(settings: LabSettings) -> dict[str, Price]:
    """Return the prices of the offered models, where known."""
    found = {model: pricing.price_of(settings.provider, model) for model in settings.provider.models}
    return {model: price for model, price in found.items() if price is not None}


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port, half an IPv6 address
        return False


def load(settings: LabSettings, model: str) -> OpenAIChat:
    """Return the backbone for a model of the provider; "" for the first of the settings.

    Raises MissingPart without a key or a base URL, UnknownName if no model is named at all.
    """
    if lacking := missing(settings, model):
        raise MissingPart(lacking)
    if not model and not settings.provider.models:
        raise UnknownName("No model is named. Name one in MAIA_OPENAI_MODELS, or with --backbone-model.")
    return OpenAIChat(settings.provider, model or settings.provider.models[0])
