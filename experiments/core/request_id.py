"""Give each request an id, for log lines and the response: the proxy's, or a new one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from experiments.core.logs import log_of_request

HEADER = "X-Request-ID"
_PLAIN = re.compile(r"[A-Za-z0-9._-]{8,64}")


@receiver(request_finished)
def forget_request(**_: Any) -> None:
    log_of_request("")


class RequestId:
    """Middleware. A client's id is accepted if it is safe in a log."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        name = given if _PLAIN.fullmatch(given) else uuid4().hex
        log_of_request(name)  # until the request is finished: Django logs the outcome after all middleware
        response = self._get_response(request)
        response.headers[HEADER] = name
        return response
