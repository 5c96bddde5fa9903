"""`manage.py experiment`: one program from a file, in the real sandbox, on the real laboratory."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from experiments.management.commands.experiment import FAILED

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("on_toybox")]
UNIT = ("--model", "toybox", "--layer", "layer4", "--unit", "12")
PROGRAM = """
def run_experiment(system, tools):
    activations, masked = tools.dataset_exemplars(system)
    tools.log_experiment(activations[:2], masked[:2], ["first", "second"], "the best two")
    print("largest", max(activations) == activations[0])
"""


def experiment(folder: Path, program: str, *options: str) -> str:
    path, out = folder / "program.py", StringIO()
    path.write_text(program)
    try:
        call_command("experiment", str(path), *UNIT, *options, stdout=out)
    except CommandError as error:
        if error.returncode != FAILED or "The program failed" not in str(error):
            raise
    return out.getvalue()


def test_it_tells_what_came_of_a_program_as_json(tmp_path: Path) -> None:
    told = json.loads(experiment(tmp_path, PROGRAM, "--json"))
    assert set(told) == {
        *("status", "output", "output_truncated", "error", "seconds", "observations", "texts", "calls")
    }
    assert told["texts"] == ["the best two"]
    assert (told["status"], told["output"], told["error"]) == ("ok", "largest True\n", "")
    assert [each["title"] for each in told["observations"]] == ["first", "second"]
    assert told["observations"][0]["activation"] >= told["observations"][1]["activation"]
    assert [call["tool"] for call in told["calls"]] == ["tools.dataset_exemplars", "tools.log_experiment"]
    assert all(call["seconds"] >= 0 for call in told["calls"])


PIXELS = """
_, masked = tools.dataset_exemplars()[0]
image = Image.open(io.BytesIO(base64.b64decode(masked)))
print(sum(image.convert("L").tobytes()))
"""


def test_masked_images_look_as_they_are_asked_for(tmp_path: Path, settings) -> None:
    program = f"import base64, io\n{PIXELS}"
    looks = [("--surroundings", "dark"), (), ("--surroundings", "dim")]
    dark, installed, dim = (int(json.loads(experiment(tmp_path, program, "--json", *look))["output"]) for look in looks)
    assert dark < 0.9 * dim
    assert installed == {"dim": dim, "dark": dark}[settings.LAB_SURROUNDINGS]


def test_it_tells_a_person_the_same(tmp_path: Path) -> None:
    lines = experiment(tmp_path, PROGRAM).splitlines()
    assert lines[0].startswith("ok, ")
    assert lines[-1] == "largest True"
    assert "the best two" in lines
    assert any(line.endswith("tools.log_experiment") for line in lines)
    assert any(line.endswith("second") for line in lines)


HOSTILE = "\x1b]0;ours\x07\x1b[2J\x9b2J\r\x7f\u202etxt\u2066"


def test_what_a_program_writes_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    program = f"""
def run_experiment(system, tools):
    activations, masked = tools.dataset_exemplars(system)
    tools.log_experiment(activations[:1], masked[:1], [{HOSTILE!r}], {HOSTILE!r})
    print({HOSTILE!r} + "\\tand more")
    raise ValueError({HOSTILE!r})
"""
    told = experiment(tmp_path, program)
    assert told.count("\\u001b[2J\\u009b2J") == 4
    assert "\tand more\n" in told
    assert all(each.isprintable() or each in "\n\t" for each in told)
    as_json = experiment(tmp_path, program, "--json")
    assert as_json.rstrip("\n").isprintable()
    assert json.loads(as_json)["texts"] == [HOSTILE]


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("1 / 0", "program_error", "ZeroDivisionError"),
        ("system.neuron('bird')", "tool_error", "bird"),
        ("while True: pass", "timeout", "0.5 s of its own time"),
        ("open('/etc/shadow')", "program_error", "PermissionError"),
        ("import os; os._exit(1)", "killed", "exit code 1"),
    ],
)
def test_a_failure_of_the_program_is_a_result(tmp_path: Path, program: str, status: str, words: str) -> None:
    told = json.loads(experiment(tmp_path, program, "--json", "--seconds", "0.5"))
    assert told["status"] == status
    assert words in told["error"]


def test_remarks_of_the_tools_are_told_too(tmp_path: Path) -> None:
    told = json.loads(experiment(tmp_path, "tools.text2image(['a red ball and a wobbly quokka'])", "--json"))
    assert "quokka" in " ".join([*told["texts"], told["error"]])


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "soon"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, seconds: str) -> None:
    with pytest.raises(CommandError, match=f"'{seconds}' is no number above 0"):
        experiment(tmp_path, "pass", f"--seconds={seconds}")


def test_the_same_seed_draws_the_same_images(tmp_path: Path) -> None:
    program = "print([sum(image.tobytes()) for image in tools.text2image(['a red ball'] * 2)])"
    first, again, other = (experiment(tmp_path, program, "--seed", seed, "--json") for seed in ("1", "1", "2"))
    assert json.loads(first)["output"] == json.loads(again)["output"] != json.loads(other)["output"]


def test_a_unit_that_does_not_exist_is_named_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no layer 'layer9'"):
        experiment(tmp_path, "pass", "--layer", "layer9")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.py cannot be read"):
        call_command("experiment", str(tmp_path / "nowhere.py"), *UNIT)
