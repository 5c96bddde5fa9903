"""A task is a row and a prompt: everything that offers tasks reads the table."""

from __future__ import annotations

import json

import pytest

from experiments.api.interface import api
from experiments.runs.asking.form import QueryForm
from workers.record import tasks
from workers.record.replies import Conclusion

TAGS = {"DESCRIPTION", "LABEL", "REASONING", "BIAS", "DOMAIN", "CODE"}


@pytest.mark.parametrize("task", tasks.TASKS.values(), ids=lambda task: task.key)
def test_a_row_makes_sense(task: tasks.Task) -> None:
    assert set(task.answer) <= {*Conclusion.__dataclass_fields__}
    assert {tag for either in task.needs for tag in either} <= TAGS
    for kind in ("conv", "logit", "concept"):
        assert tasks.questions(kind, "m", "layer4", 7, "cat")[task.key].strip("?.").count("{") == 0


def test_form_and_api_offer_every_task() -> None:
    offered = {key for key, _ in QueryForm.base_fields["task"].choices}
    assert offered == set(tasks.TASKS)
    assert json.dumps(list(tasks.TASKS)) in json.dumps(api.get_openapi_schema())


def test_a_synthetic_neuron_is_asked_about_without_telling_what_it_is() -> None:
    asked = tasks.questions("concept", "synthetic:eyes", "mono", 1, "a bus").values()
    assert not any(word in text for text in asked for word in ("bus", "mono", "synthetic", " 1"))


def test_a_task_that_is_not_known_here_is_a_free_question() -> None:
    assert tasks.find_task("of another day").key == "free"
    assert tasks.label("of another day") == "of another day"
