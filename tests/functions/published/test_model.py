"""Published functions answered by their own code in the sandbox, as units of a model."""

from __future__ import annotations

import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from tests.support.builders import make_run
from tests.support.find_folder import change_json, write_code, write_find_folder
from tests.support.function_runs import FUNCTION, play
from tests.support.words import save_encoder
from workers.errors import MissingPart, RequestError, ToolMisuse, UnknownName
from workers.functions.numeric import SCORED_POINTS
from workers.functions.published import model as models
from workers.functions.scoring import judge_description, score_answer
from workers.functions.words.triplets import NearnessJudge
from workers.protocols import LabSettings
from workers.sentences import load_sentences


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_find_folder(tmp_path / "find-dataset")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return save_encoder(tmp_path / "encoder")


def load(folder: Path, sandbox: Any, encoder: Path | str = "") -> models.PublishedFunctions:
    settings = LabSettings(folder, sentences=str(encoder), find_sandbox=lambda: sandbox)
    return models.load(settings, str(folder))


def add_model(folder: Path, owner: User) -> str:
    """The key of the folder as a model that an installation offers."""
    from workers.jobs import registration

    return registration.model(f"find:{folder}", owner).name


# --- answers ---


def test_each_variant_answers_as_it_is_published(folder: Path, sandbox: Any) -> None:
    model = load(folder, sandbox)
    clean, corrupted, noised, network, absolute, root = (model.open("numeric", number) for number in range(6))
    assert clean.call([0, 2.5, -60]) == [3, 8, -117]
    far, near = corrupted.call([-60, 0])
    assert near == 3
    assert far != 7.5
    assert abs(far - 7.5) < 1
    assert corrupted.evaluate([-60, 0]) == [7.5, 3]
    assert noised.evaluate([0, 1]) == [3, 5]
    assert 0 < abs(noised.call([0])[0] - 3) <= 1
    assert network.call([-2.5, 4]) == [2.5, 4]
    assert absolute.call([-2]) == [3]
    assert root.call([4])[0] == 2
    assert math.isnan(root.call([-4])[0])


def test_noise_follows_from_call_and_inputs(folder: Path, sandbox: Any) -> None:
    box = load(folder, sandbox).open("numeric", 2)
    assert box.call([1, 1], 3) == box.call([1, 1], 3)
    assert box.call([1, 1], 3) != box.call([1, 1], 4)
    first, second = box.call([1, 1], 3)
    assert first != second


def test_the_truth_tells_variant_interval_and_error(folder: Path, sandbox: Any) -> None:
    model = load(folder, sandbox)
    clean, corrupted, noised, network = (model.open("numeric", number).truth for number in range(4))
    assert (clean.variant, clean.atoms, clean.domain) == ("clean", ("linear",), "numbers from -100 to 100")
    assert "scipy.signal" in clean.code, "as published"
    assert corrupted.corruption
    assert (corrupted.corruption.side, corrupted.corruption.high, corrupted.corruption.mean) == ("smaller", -50, 7.5)
    assert noised.noise
    assert noised.noise.kind == "uniform"
    assert (network.variant, network.approximation_error) == ("approximated", 0.25)
    assert "torch" not in network.code


@pytest.mark.parametrize("number", range(6))
def test_a_right_answer_about_numbers_succeeds(folder: Path, sandbox: Any, number: int) -> None:
    box = load(folder, sandbox).open("numeric", number)
    assert box.draw_held_out() == list(SCORED_POINTS)
    line = "2 * x + 3"
    code = [line, f"{line} if x > -50 else 7.5", line, "abs(x)", "1.5 * abs(x)", "abs(x) ** 0.5"][number]
    assert score_answer(box, f"def f(x):\n    return {code}", sandbox).success
    assert not score_answer(box, "def f(x):\n    return 0", sandbox).success


def test_texts_are_scored_on_the_published_tests(folder: Path, sandbox: Any) -> None:
    model = load(folder, sandbox)
    box = model.open("strings", 0)
    assert box.call(["abc", "Übung"]) == ["cba", "gnubÜ"]
    assert box.truth.description == "Reverses the text."
    held_out, hints = box.draw_held_out(), box.draw_hints()
    assert (len(held_out), len(hints)) == (10, 10)
    assert not set(held_out) & set(hints)
    assert box.evaluate([*held_out[:1], "new"]) == [held_out[0][::-1], "wen"]
    score = score_answer(box, "def f(s):\n    return s[::-1]", sandbox)
    assert (score.success, score.right) == (True, 10)
    assert model.list_defects("strings", 0) == []


def test_a_thousand_long_texts_are_answered(folder: Path, sandbox: Any) -> None:
    box = load(folder, sandbox).open("strings", 1)
    assert box.call(["ü" * 1000] * 1000) == ["Ü" * 1000] * 1000
    write_code(folder, "strings/f00000", "def function(string):\n    return string * 9\n")
    with pytest.raises(ToolMisuse, match=r"over 6,000,000 bytes in all. Call it with fewer inputs"):
        load(folder, sandbox).open("strings", 0).call(["ü" * 1000] * 1000)


def test_the_code_counts_where_published_outputs_differ(folder: Path, sandbox: Any) -> None:
    change_json(folder, "strings/unit_test_data.json", lambda rows: rows[0]["test_vec"][0][1].__setitem__(0, "wrong"))
    model = load(folder, sandbox)
    assert model.open("strings", 0).draw_held_out()
    (defect,) = model.list_defects("strings", 0)
    assert "for 1 of 10 inputs" in defect
    assert "published as 'wrong'" in defect


def test_inputs_for_which_the_code_raises_are_told_and_not_scored(folder: Path, sandbox: Any) -> None:
    code = (
        "def function(string):\n    if string.endswith('a'):\n        raise KeyError(string)\n    return string[::-1]\n"
    )
    write_code(folder, "strings/f00000", code)
    box = load(folder, sandbox).open("strings", 0)
    assert box.call(["ab", "ba"]) == ["ba", "(no output: KeyError)"]
    assert len(box.draw_held_out()) == 6
    write_code(folder, "strings/f00000", "def function(string):\n    raise KeyError(string)\n")
    with pytest.raises(MissingPart, match="no text for any input"):
        load(folder, sandbox).open("strings", 0)


def test_concepts_are_answered_by_nearness_and_judged_on_the_published_choices(
    folder: Path, sandbox: Any, encoder: Path
) -> None:
    model = load(folder, sandbox, encoder)
    box: Any = model.open("concepts", 1)
    assert box.concepts == ("music", "law")
    assert all(0 <= each <= 1 for each in box.call(["violin", "judge", "sand"]))
    triplets = box.draw_triplets()
    assert [(each.options, each.right) for each in triplets] == [(("reef", "trumpet", "jury"), 1)] * 10
    assert box.draw_hints()[0] == "wave"
    assert judge_description(box, "music", NearnessJudge(lambda: load_sentences(str(encoder)))).outcome == "scored"
    assert model.list_defects("concepts", 1) == [models.BY_NEARNESS]


# --- what cannot be run ---


@pytest.mark.parametrize(
    ("layer", "number", "error", "says"),
    [
        ("relations", 0, MissingPart, "asks a language-model service"),
        ("strings", 2, MissingPart, "draws at random"),
        ("numeric", 1, MissingPart, "draws at random"),
        ("numeric", 6, UnknownName, "its folder is not here"),
        ("numeric", 77, UnknownName, "no such function"),
        ("sounds", 0, UnknownName, "no family 'sounds'"),
    ],
)
def test_what_cannot_be_run_says_why(
    folder: Path, sandbox: Any, layer: str, number: int, error: type[Exception], says: str
) -> None:
    code = folder / "numeric" / "f00001" / "function_code.py"
    code.write_text(f"import random as r\nfrom random import gauss\n{code.read_text()}")
    with pytest.raises(error, match=says):
        load(folder, sandbox).open(layer, number)


@pytest.mark.parametrize("changes", [{"std": 7.0, "boundary": [-50]}, {"std": 7.5, "boundary": [-40]}])
def test_an_interval_of_another_version_is_named(folder: Path, sandbox: Any, changes: dict[str, Any]) -> None:
    change_json(folder, "numeric/data.json", lambda rows: rows[1].update(corruption_params=changes))
    with pytest.raises(MissingPart, match=r"of two versions: data.json says that it is corrupted at"):
        load(folder, sandbox).open("numeric", 1)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (None, "is not here"),
        ({"layers.0.weight": torch.zeros(64, 1)}, "does not hold the weights"),
        ("shape", r"layers.0.bias has the shape \(63,\)"),
        ("nan", "no finite numbers"),
        ("bytes", "cannot be read"),
    ],
)
def test_weights_of_another_form_are_named(folder: Path, sandbox: Any, state: Any, says: str) -> None:
    path = folder / "numeric" / "f00003" / "mlp_approx_model.pt"
    known = torch.load(path, weights_only=True)
    path.unlink()
    if state == "bytes":
        path.write_bytes(b"no network")
    elif state is not None:
        odd = {"shape": torch.zeros(63), "nan": torch.full((64,), math.nan)}
        torch.save(known | {"layers.0.bias": odd[state]} if isinstance(state, str) else state, path)
    with pytest.raises(MissingPart, match=says):
        load(folder, sandbox).open("numeric", 3)


HOSTILE = {
    "open('/etc/passwd').read()": "no finite number",
    "__import__('socket').create_connection(('127.0.0.1', 80))": "no finite number",
    "__import__('workers.functions.numeric')": "no finite number",
    "__import__('subprocess').run(['id'])": "no finite number",
    "'x' * (1 << 30)": "no finite number",
    "1j": "no finite number",
    "[1, 2]": "no finite number",
    "__import__('os')._exit(0)": "It ",
    "exec('while True: pass')": "over 5 s",
}


@pytest.mark.parametrize("expression", HOSTILE)
def test_hostile_code_reaches_nothing_and_is_told(folder: Path, sandbox: Any, expression: str) -> None:
    write_code(folder, "numeric/f00000", f"def function(x):\n    return {expression}\n")
    with pytest.raises(MissingPart, match=HOSTILE[expression]):
        load(folder, sandbox).open("numeric", 0)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise SystemExit(3)", "does not run"),
        ("def other(x):\n    return x", "no function named"),
        ("def function(x:", "SyntaxError"),
        ("import workers\ndef function(x):\n    return workers", "No module named"),
        ("import __main__\n__main__.tools.report('', [['forged', 3]])\ndef function(x):\n    return 1/0", "no finite"),
        ("x = bytearray(1 << 30)\ndef function(x):\n    return x", "memory|MemoryError"),
        ("while True:\n    print('x' * 10_000)", "over 5 s"),
    ],
)
def test_code_that_does_not_load_says_why(folder: Path, sandbox: Any, code: str, says: str) -> None:
    write_code(folder, "numeric/f00000", code)
    with pytest.raises(MissingPart, match=says):
        load(folder, sandbox).open("numeric", 0)


def test_a_call_that_comes_to_no_end_is_told_to_the_program(folder: Path, sandbox: Any) -> None:
    write_code(folder, "numeric/f00000", "def function(x):\n    while x > 1000:\n        pass\n    return x\n")
    box = load(folder, sandbox).open("numeric", 0)
    with pytest.raises(ToolMisuse, match="over 5 s"):
        box.call([2000])
    assert box.call([1]) == [1]


def test_without_a_sandbox_nothing_is_run(folder: Path) -> None:
    model = models.load(LabSettings(folder), str(folder))
    with pytest.raises(MissingPart, match="sandbox"):
        model.open("numeric", 0)


# --- as a model ---


def test_layers_are_the_families_that_are_here(folder: Path, sandbox: Any) -> None:
    (folder / "strings" / "test_data.json").unlink()
    model = load(folder, sandbox)
    assert [(layer.name, layer.units, layer.kind) for layer in model.layers()] == [
        ("numeric", 6, "function"),
        ("concepts", 2, "function"),
        ("relations", 2, "function"),
    ]
    assert "6 of 7 numeric, 6 ready" in model.about()
    assert "0 ready (unreadable)" in model.about()
    with pytest.raises(RequestError, match="takes no images"):
        model.maps([], ["numeric"])


def test_what_is_missing_is_told_before_it_is_loaded(tmp_path: Path) -> None:
    assert "8039658" in models.missing(LabSettings(tmp_path), str(tmp_path))
    assert models.missing(LabSettings(tmp_path), str(write_find_folder(tmp_path))) == ""


def test_known_defects_are_named_where_they_bite(folder: Path, sandbox: Any) -> None:
    model = load(folder, sandbox)
    assert model.list_defects("numeric", 4) == [models.BIAS_LOST]
    assert model.list_defects("numeric", 2) == [models.WITHOUT_NOISE]
    assert model.list_defects("numeric", 0) == []


@pytest.mark.usefixtures("redis_url", "_laboratory")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("layer", "unit"), [("numeric", 0), ("numeric", 2), ("strings", 0)])
def test_the_scripted_baseline_finds_a_published_function_out(
    owner: User, client: Client, folder: Path, layer: str, unit: int
) -> None:
    asked = FUNCTION | {"model": add_model(folder, owner)}
    run = play(make_run(owner, layer=layer, unit=unit, question="What does it compute?", **asked))
    assert run.status == "concluded", (run.reason, run.events.last().payload)
    assert (run.score["outcome"], run.score["success"]) == ("scored", True)
    client.force_login(owner)
    page = client.get(f"/runs/{run.pk}/?tab=samples").content.decode()
    assert ("linear((2.0, 3.0))" if layer == "numeric" else "Reverses the text.") in page, "the truth is shown"


@pytest.mark.usefixtures("redis_url", "_laboratory")
@pytest.mark.django_db(transaction=True)
def test_a_run_on_one_that_cannot_be_run_waits_and_is_not_scored_0(owner: User, folder: Path) -> None:
    asked = FUNCTION | {"model": add_model(folder, owner)}
    run = play(make_run(owner, layer="relations", unit=0, question="What does it compute?", **asked))
    assert run.status == "waiting"
    assert "asks a language-model service" in run.reason
    assert not run.score


@pytest.mark.usefixtures("_laboratory")
@pytest.mark.django_db
def test_the_command_counts_and_copies(folder: Path, tmp_path: Path) -> None:
    out = StringIO()
    call_command("functions", published=str(folder), stdout=out)
    for words in (
        "numeric: 7 listed, 6 here, 6 runnable",
        "strings: 3 listed, 3 here, 2 runnable",
        "1 known defect: its code leaves out the bias b of its description; the code counts (f00004)",
        "2 not runnable: its code asks a language-model service, which is not here (f00000, f00001)",
    ):
        assert words in out.getvalue()
    call_command("functions", published=str(folder), write=str(tmp_path / "again"), stdout=out)
    assert "13 functions are written" in out.getvalue()
    with pytest.raises(CommandError, match="not an empty folder"):
        call_command("functions", published=str(folder), write=str(tmp_path / "again"), stdout=out)
    with pytest.raises(CommandError, match="--published"):
        call_command("functions", write=str(tmp_path / "other"), stdout=out)
    with pytest.raises(CommandError, match="8039658"):
        call_command("functions", published=str(tmp_path / "nowhere"), stdout=out)


@pytest.mark.usefixtures("_laboratory")
@pytest.mark.django_db
def test_the_command_measures_the_baseline_on_published_functions(folder: Path) -> None:
    out = StringIO()
    call_command("functions", published=str(folder), family="strings", functions=5, stdout=out)
    assert f"2 functions of find:{folder} (strings)" in out.getvalue()
    with pytest.raises(CommandError, match="no relations function"):
        call_command("functions", published=str(folder), family="relations", functions=5, stdout=out)
