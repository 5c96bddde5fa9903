"""Make requests safe to repeat: the answer to an Idempotency-Key is kept for a day."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Schema

from experiments.api.problems import Refusal
from experiments.core.errors import InvalidInput
from experiments.models import IdempotencyKey
from experiments.models.api_token import KEPT

HEADER = "Idempotency-Key"
MAX_KEY_CHARS = 200


@transaction.atomic
def answer_once(
    request: HttpRequest, response: HttpResponse, user: User, make: Callable[[], tuple[Schema, str]]
) -> dict[str, Any]:
    """Return the answer of `make`, with the address of what it created; the same answer for the same key and
    request."""
    # The key; "" if there is none
    key = request.headers.get(HEADER, "").strip()
    if len(key) > MAX_KEY_CHARS or not key.isprintable():
        raise InvalidInput(f"An Idempotency-Key has at most {MAX_KEY_CHARS} printable characters.", HEADER)
    row, fresh = IdempotencyKey(), True
    if key:
        IdempotencyKey.objects.filter(created__lt=timezone.now() - KEPT).delete()
        head = f"{request.method} {request.get_full_path()}\n".encode("utf-8", "replace")
        sent = hashlib.sha256(head + request.body).hexdigest()
        # In one transaction: of two such requests one waits here for the other, and a refused one leaves no key behind
        row, fresh = IdempotencyKey.objects.get_or_create(user=user, key=key, defaults={"request": sent})
        if row.request != sent:
            raise Refusal("key-reused", f"The key {key!r} came with another request before. Take a new one.")
    if fresh:
        shown, row.location = make()
        row.answer = shown.model_dump(mode="json")
    else:
        response["Idempotency-Replayed"] = "true"
    if fresh and key:
        row.save(update_fields=["answer", "location"])
    response["Location"] = row.location
    return row.answer
