"""Requests of webhooks: the body in the webhook's shape, and headers to verify it.

Follows Standard Webhooks: HMAC-SHA256 over id, timestamp and body, joined by dots.
"""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

from experiments.core.notifications import shorten
from experiments.models import WebhookDelivery, WebhookEvent, WebhookShape

SLACK_CHARS = 2_000
USER_AGENT = "MAIA-Web-Webhooks/1"
_TITLES = {
    WebhookEvent.RUN_CONCLUDED: "Run {run} concluded",
    WebhookEvent.RUN_ENDED: "Run {run} ended: {status}",
    WebhookEvent.RUN_WAITING: "Run {run} waits for a person",
    WebhookEvent.REVIEW_WAITING: "{items} new in the review queue “{name}”",
    WebhookEvent.SWEEP_ENDED: "Sweep “{name}”: {status}",
    WebhookEvent.EVALUATION_ENDED: "Evaluation “{name}”: {status}",
    WebhookEvent.LABEL_CHECKED: "Label of run {run} tested",
}


def make_body(delivery: WebhookDelivery) -> bytes:
    """Return the body of a request, the same for each attempt."""
    shaped = {"text": _write_slack(delivery)} if delivery.webhook.shape == WebhookShape.SLACK else delivery.payload
    return json.dumps(shaped, ensure_ascii=False, separators=(",", ":")).encode()


def _write_slack(delivery: WebhookDelivery) -> str:
    """Return one line of text. Slack reads `<!channel>` as a call to everyone, so < and > are escaped."""
    data: dict[str, Any] = dict(delivery.payload.get("data", {}))
    # A test delivery has another kind, without a title
    title = next((words for kind, words in _TITLES.items() if kind == delivery.kind), "This is a test of a webhook")
    parts = [title.format_map(_Known(data))]
    if labels := data.get("labels"):
        parts.append(", ".join(f"“{each}”" for each in labels))
    if isinstance(r := data.get("r"), float):
        parts.append(f"r = {r:.2f}")
    # The URL is added after shortening, so that it is never cut
    return f"{_escape(shorten(' · '.join(parts), SLACK_CHARS))} {_escape(str(data.get('url', '')))}".strip()


class _Known(dict[str, Any]):
    """A dict that formats missing fields as "?"."""

    def __missing__(self, key: str) -> str:
        return "?"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sign(key: bytes, message: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`."""
    signed = b".".join((message.encode(), str(timestamp).encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def make_headers(delivery: WebhookDelivery, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of one attempt, made at `timestamp`."""
    return {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "User-Agent": USER_AGENT,
        "webhook-id": delivery.message,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(delivery.webhook.key, delivery.message, timestamp, body),
    }
