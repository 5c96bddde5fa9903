"""The reference the agent reads: complete, short, and its examples run."""

import inspect

from tests.support.exemplar_index import index_of
from tests.support.tiny_lab import TinyContext
from workers.lab.reference import build_reference
from workers.lab.tools import Tools


def test_the_reference_holds_every_docstring_and_signature_and_stays_short():
    text = build_reference()
    assert len(text) < 8_000
    names = [
        "dataset_exemplars",
        "text2image",
        "edit_images",
        "describe_images",
        "summarize_images",
        "test_label",
        "log_experiment",
        "display",
    ]
    for name in names:
        assert f"### tools.{name}(" in text
        assert (inspect.getdoc(getattr(Tools, name)) or "").splitlines()[0] in text
    assert "### system.neuron(image_list: list[Image]) -> tuple[list[float], list[str]]" in text
    assert "self" not in text
    assert "Sequence" not in text


def test_the_examples_of_the_reference_run(tmp_path):
    """In order, in one namespace: later ones use what earlier ones made."""
    context = TinyContext(index_of(tmp_path))
    reference = build_reference(lacks=frozenset({"test_label"}))  # the tiny laboratory has no judge
    code = "\n".join(part.partition("```")[0] for part in reference.split("```python\n")[1:])
    swaps = {"a red ball on grass": "red", "blue ball": "blue", "make the ball blue": "make it blue"}
    for ours, theirs in swaps.items():
        code = code.replace(ours, theirs)
    exec(code, {"system": context.system, "tools": context.tools})
    assert len(context.tools.entries) >= 4
