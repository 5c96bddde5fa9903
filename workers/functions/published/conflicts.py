"""Explain why a published function cannot be run as it is: a part is missing, odd, or of another version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from workers.functions.black_box import Family, Variant
from workers.functions.published.layout import CODE, INITIAL, WEIGHTS, Category, FunctionFiles
from workers.functions.published.rows import ConceptRow, NumericRow, RelationRow, StringRow, read_corruption

SHIPPED: dict[str, Variant] = {
    "function_code.py": "clean",
    "corrupted_function_code.py": "corrupted",
    "noised_function_code.py": "noised",
    "load_mlp.py": "approximated",
}
"""Name in func_name_dict.json of the file that became function_code.py -> the variant."""
MAX_CODE = 100_000
TWO_VERSIONS = "of two versions"
ASKS_MODEL = "its code asks a language-model service, which is not here"
DRAWS_BY_LOT = "its code draws at random, so that no answer about it can be scored"
_NOISE = re.compile(r"\b(?:np|numpy)\s*\.\s*random\s*\.\s*(\w+)")
_RANDOM = re.compile(
    r"\b(?:random|secrets|uuid)\s*\.\s*\w+\s*\(|\bfrom\s+(?:random|secrets|uuid|numpy\.random)\s+import\b"
)


def explain_trouble(category: Category, number: int) -> str:
    """Say why a function cannot be run, found without running it; "" if nothing was found."""
    files = category.functions.get(number)
    is_listed = number in category.rows or number in category.odd
    # 1. Is it here, and readable?
    if files is None:
        return "it is listed, and its folder is not here" if is_listed else "there is no such function"
    if category.unreadable:
        return f"its lists cannot be read: {category.unreadable}"
    if files.trouble:
        return files.trouble
    # 2. Is its entry in the lists as published?
    if number in category.odd:
        return category.odd[number]
    if number not in category.rows:
        named = "unit_test_data.json names it, and " if number in category.tests else ""
        return f"{TWO_VERSIONS}: {named}the list of functions does not" if named else "the list does not name it"
    # 3. Do code and entry fit each other? Without running it
    return _explain_code(files) or _CHECKS[category.family](category, number)


def read_code(category: Category, number: int) -> str:
    """Return the code of a function that `explain_trouble` finds nothing wrong with, or whose code is text."""
    return category.functions[number].files[CODE].decode("utf-8")


def _explain_code(files: FunctionFiles) -> str:
    if CODE not in files.files and CODE not in files.too_large:
        return f"it has no {CODE}"
    if CODE in files.too_large or len(files.files[CODE]) > MAX_CODE:
        return f"its {CODE} has over {MAX_CODE:,} bytes"
    try:
        text = files.files[CODE].decode("utf-8")
    except UnicodeDecodeError as error:
        return f"its {CODE} is no UTF-8 (byte {error.start})"
    # Python refuses to compile it
    return f"its {CODE} holds a zero byte" if "\0" in text else ""


def _check_numeric(category: Category, number: int) -> str:
    code, row = read_code(category, number), category.rows[number]
    named = category.shipped.get(number, "")
    if not isinstance(row, NumericRow) or named not in SHIPPED:
        return f"func_name_dict.json calls its file {named!r}, so that its variant is unknown"
    # The call in the code shows a network; the name alone may be of another version
    variant, loads = SHIPPED[named], "torch.load" in code
    noise = set(_NOISE.findall(code))
    if (variant == "approximated") != loads:
        does = "loads a network" if loads else "loads none"
        return f"{TWO_VERSIONS}: func_name_dict.json says {named}, and its code {does}"
    if variant == "corrupted" and read_corruption(row) is None:
        return "its entry in data.json gives no interval as published"
    # A corrupted function draws from its interval's normal distribution, a noised one from its own
    wanted = {"corrupted": {"normal"}, "noised": {row.noise_type}}.get(variant, set())
    if noise != wanted:
        drawn = f"numpy.random's {', '.join(sorted(noise))}" if noise else "nothing of numpy.random"
        return f"{TWO_VERSIONS}: it is {variant} by func_name_dict.json and data.json, and its code uses {drawn}"
    # Noise of numpy is removed first: the sandbox replaces it by its mean
    if _RANDOM.search(_NOISE.sub("", code)):
        return DRAWS_BY_LOT
    if variant == "approximated" and WEIGHTS not in category.functions[number].files:
        return f"it is a network, and its {WEIGHTS} is not here"
    return ""


def _check_strings(category: Category, number: int) -> str:
    if not isinstance(category.rows[number], StringRow) or number not in category.tests:
        return f"{TWO_VERSIONS}: test_data.json names it, and unit_test_data.json does not"
    return DRAWS_BY_LOT if _RANDOM.search(read_code(category, number)) else ""


def _check_words(category: Category, number: int) -> str:
    """Code, initial words and tests must belong to the concepts of the list."""
    row = category.rows[number]
    if not isinstance(row, ConceptRow | RelationRow):
        return "its entry in data.json is of another family"
    code = read_code(category, number)
    absent = [each for each in row.concepts if not _names(code, each)]
    if absent:
        return f"{TWO_VERSIONS}: data.json says {absent[0][:80]!r}, and its {CODE} does not"
    if number not in category.tests:
        return f"{TWO_VERSIONS}: data.json names it, and unit_test_data.json does not"
    return _check_initial(category.functions[number], row)


def _check_initial(files: FunctionFiles, row: ConceptRow | RelationRow) -> str:
    if INITIAL not in files.files:
        return f"it has no {INITIAL}"
    try:
        words = json.loads(files.files[INITIAL])
    except (ValueError, RecursionError):
        return f"its {INITIAL} is no JSON"
    return "" if words == list(row.initial) else f"{TWO_VERSIONS}: its {INITIAL} differs from data.json"


def _names(code: str, words: str) -> bool:
    """True if the words are in the code, not as a part of others; apostrophes may be escaped there."""
    # Python source may escape either quotation mark
    forms = {words, words.replace("'", "\\'"), words.replace('"', '\\"')}
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", code) for form in forms)


def _check_relations(category: Category, number: int) -> str:
    return _check_words(category, number) or ASKS_MODEL


_CHECKS: dict[Family, Callable[[Category, int], str]] = {
    "numeric": _check_numeric,
    "strings": _check_strings,
    "concepts": _check_words,
    "relations": _check_relations,
}
