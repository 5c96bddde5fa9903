"""Find labels close in meaning to a search text: the worker's part of the search for units by meaning."""

from __future__ import annotations

import numpy as np
from django.conf import settings

from experiments.models import Label
from experiments.units import label_nearness
from experiments.units.label_nearness import LabelAnswer
from workers.errors import MissingPart
from workers.sentences import load_sentences

MAX_NEAREST, MAX_COMPARED = 200, 100_000
"""Maximum number of labels in an answer, and of compared labels, the newest ones."""


def answer(asked: int) -> None:
    """Store the answer to the question with this number for the web process. Does nothing if the question has
    expired."""
    text = label_nearness.read_question(asked)
    if text:
        label_nearness.keep_answer(text, _compare(text))


def _compare(text: str) -> LabelAnswer:
    newest = Label.objects.order_by("-pk").values_list("text", flat=True)[:MAX_COMPARED]
    # Each text once: many units share a label.
    labels = list(dict.fromkeys(newest))
    if not labels:
        return LabelAnswer()
    try:
        near = load_sentences(settings.LAB_SENTENCES).compare(text, labels)
    except MissingPart as missing:
        return LabelAnswer(problem=str(missing))
    # Stable: of equal ones the newest comes first.
    first = np.argsort(-near, kind="stable")[:MAX_NEAREST]
    return LabelAnswer([(labels[place], round(float(near[place]), 4)) for place in first])
