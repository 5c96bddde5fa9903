"""Which labels mean something near to what somebody typed: the worker's half of the search for units by meaning."""

from __future__ import annotations

import numpy as np
from django.conf import settings

from experiments.models import Label
from experiments.units import label_nearness
from experiments.units.label_nearness import LabelAnswer
from workers.errors import MissingPart
from workers.sentences import load_sentences

MAX_NEAREST, MAX_COMPARED = 200, 100_000
"""Labels of an answer, and labels that are compared, the newest."""


def answer(asked: int) -> None:
    """Keep the answer to the question of this number, where the web finds it; nothing if it is forgotten."""
    text = label_nearness.read_question(asked)
    if text:
        label_nearness.keep_answer(text, _compare(text))


def _compare(text: str) -> LabelAnswer:
    newest = Label.objects.order_by("-pk").values_list("text", flat=True)[:MAX_COMPARED]
    labels = list(dict.fromkeys(newest))
    if not labels:
        return LabelAnswer()
    try:
        near = load_sentences(settings.LAB_SENTENCES).compare(text, labels)
    except MissingPart as missing:
        return LabelAnswer(problem=str(missing))
    first = np.argsort(-near, kind="stable")[:MAX_NEAREST]
    return LabelAnswer([(labels[place], round(float(near[place]), 4)) for place in first])
