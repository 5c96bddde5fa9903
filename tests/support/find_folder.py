"""A small folder in the layout of FIND's published benchmark, with code of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

_HEAD = """import numpy as np
import scipy.signal
import sys
from scipy.special import gamma, factorial, erf

"""
_TAIL = """
if __name__ == '__main__':
    print([function(float(each)) for each in sys.argv[1:]])
"""
CLEAN = "def function(x):\n    return 2.0 * x + 3.0\n"
ABSOLUTE = "def function(x):\n    return 1.5 * np.abs(x)\n"
CORRUPTED = """def function(x):
    if type(x) == int or type(x) == float:
        x = np.array(x)
    return np.where(x > -50, 2.0 * x + 3.0, np.random.normal(loc=7.5, scale=0.1, size=x.shape))
"""
NOISED = "def function(x):\n    return 2.0 * x + 3.0 + np.random.uniform(low=-1, high=1)\n"
ROOT = "def function(x):\n    return x ** 0.5\n"
NETWORK = """import os
import torch


def function(x):
    state = torch.load(os.path.join(os.path.dirname(__file__), 'mlp_approx_model.pt'))
    return state
"""
NUMERIC = (
    ("linear((2.0, 3.0))", [2.0, 3.0], "function_code.py", CLEAN),
    ("linear((2.0, 3.0))", [2.0, 3.0], "corrupted_function_code.py", CORRUPTED),
    ("linear((2.0, 3.0))", [2.0, 3.0], "noised_function_code.py", NOISED),
    ("linear((2.0, 3.0))", [2.0, 3.0], "load_mlp.py", NETWORK),
    ("absolute((1.5, -8.0))", [1.5, -8.0], "function_code.py", ABSOLUTE),
    ("root((1.0, 0.0, 2.0))", [1.0, 0.0, 2.0], "function_code.py", ROOT),
)
STRINGS = (
    ("Reverses the text.", "def function(string):\n    return string[::-1]\n", lambda text: text[::-1]),
    ("Writes capitals.", "def function(string):\n    return string.upper()\n", str.upper),
    (
        "Draws a letter.",
        "import random\n\ndef function(string):\n    return random.choice(string)\n",
        lambda text: text[0],
    ),
)
CONCEPTS: tuple[tuple[str, str | None], ...] = (("sea", None), ("music", "law"))
RELATIONS = (("a country", "the capital of that country", None), ("a city", "its river", "the input is in Asia"))
WORDS = ["wave", "violin", "judge", "oven", "tide", "melody", "lawyer", "chef", "coral", "drummer"]
ASKS_MODEL = (
    "import openai\n\nopenai.api_base = {{API_BASE}}\n{names}\n\ndef function(input, sys_prompt):\n    return 0\n"
)
CATEGORIES = ("numeric", "strings", "neurons_entities", "neurons_relations")


def write_find_folder(root: Path) -> Path:
    """A few functions of each category, in all variants; the lists name more than are here."""
    _write_numeric(root / "numeric")
    _write_strings(root / "strings")
    _write_words(root / "neurons_entities", "neurons_entities")
    _write_words(root / "neurons_relations", "neurons_relations")
    return root


def write_code(root: Path, place: str, code: str) -> Path:
    """The code of a function, such as "numeric/f00000"."""
    path = root / place / "function_code.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    return path


def change_json(root: Path, place: str, change: Any) -> None:
    """Let `change` alter what a JSON file holds, in place."""
    content = json.loads((root / place).read_text())
    change(content)
    (root / place).write_text(json.dumps(content))


def _write_numeric(folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    for number, (name, params, _, code) in enumerate(NUMERIC):
        rows.append(_make_numeric_row(number, name, params))
        write_code(folder, f"f{number:05d}", code if "torch" in code else f"{_HEAD}{code}{_TAIL}")
    torch.save(_make_weights(), folder / "f00003" / "mlp_approx_model.pt")
    torch.save(_make_weights(), folder / "f00000" / "mlp_approx_model.pt")
    rows.append(_make_numeric_row(len(NUMERIC), "floor(None)", None))
    shipped = {f"f{number:05d}": file for number, (_, _, file, _) in enumerate(NUMERIC)} | {
        "f00006": "function_code.py"
    }
    _write(folder / "data.json", rows)
    _write(folder / "func_name_dict.json", shipped)


def _make_numeric_row(number: int, name: str, params: Any) -> dict[str, Any]:
    return {
        "type": "simple",
        "params": params,
        "name": name,
        "dir": f"f{number:05d}",
        "approx_mse_error": 0.25,
        "corruption_type": "interval_smaller",
        "corruption_params": {"std": 7.5, "boundary": [-50]},
        "domain": [-100, 100],
        "noise_type": "uniform",
        "noise_params": 1,
        "GPT_description": "",
        "error_code_generated": 0.0,
        "a field of later": {"kept": [1, None]},
    }


def _make_weights() -> dict[str, torch.Tensor]:
    """A network that gives |x|."""
    hidden = torch.zeros(64, 1)
    hidden[0, 0], hidden[1, 0] = 1.0, -1.0
    outputs = torch.zeros(1, 64)
    outputs[0, :2] = 1.0
    return {
        "layers.0.weight": hidden,
        "layers.0.bias": torch.zeros(64),
        "layers.2.weight": outputs,
        "layers.2.bias": torch.zeros(1),
    }


def _write_strings(folder: Path) -> None:
    tests: list[Any] = []
    for number, (_, code, compute) in enumerate(STRINGS):
        write_code(folder, f"f{number:05d}", f"import numpy as np\nimport sys\n\n{code}{_TAIL}")
        vectors = []
        for place in range(10):
            given = [f"word{place} {mark}" for mark in "abc"]
            vectors.append([given, [compute(text) if at == place % 3 else "other" for at, text in enumerate(given)]])
        right = [place % 3 + 1 for place in range(10)]
        tests.append({"name": f"f{number:05d}", "test_vec": vectors, "correct_inx": right})
    described = [
        {"name": f"f{number:05d}", "description": f": {words}\n\n", "test_inputs": ': "hello"'}
        for number, (words, _, _) in enumerate(STRINGS)
    ]
    _write(folder / "test_data.json", described)
    _write(folder / "unit_test_data.json", tests)


def _write_words(folder: Path, category: str) -> None:
    rows: list[Any] = []
    tests: list[Any] = []
    is_relation = category == "neurons_relations"
    for number, each in enumerate(RELATIONS if is_relation else CONCEPTS):
        own = f"f{number:05d}"
        path = f"/home/authors/{category}//{own}" if is_relation else own
        row = {"dir": path, "concept1": each[0], "concept2": each[1], "initial": WORDS}
        rows.append(row | ({"exeption": each[2]} if len(each) > 2 else {}))
        names = "\n".join(f"concept{place} = {name!r}" for place, name in enumerate(each[:2]) if name)
        write_code(folder, own, ASKS_MODEL.format(names=names))
        _write(folder / own / "initial.json", WORDS)
        options = ["reef", "trumpet", "jury"]
        vector = [options, ["Paris", " undefined", "Rome"]] if is_relation else options
        tests.append({"name": own, "test_vec": [vector] * 10, "correct_inx": [number + 1] * 10})
    _write(folder / "data.json", rows)
    _write(folder / "unit_test_data.json", tests)


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
