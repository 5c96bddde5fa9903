"""The tools' reference as the run's first event holds it, in entries that can be searched and inserted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEAD = re.compile(r"^#{2,3} ", re.MULTILINE)
CALL = re.compile(r"([A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,3})\((.*)\)[^()]{0,200}$")
EXAMPLE = re.compile(r"\n*^```python\n(?P<code>.*?)\n```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One thing that a program may use. `call` is what a click on its name inserts; both may be empty."""

    name: str
    signature: str
    text: str
    example: str
    call: str

    @property
    def words(self) -> str:
        """What a search looks in."""
        return " ".join(f"{self.name} {self.signature} {self.text}".split()).lower()


def entries(reference: str) -> list[Entry]:
    """The entries in order; a text without headings is one entry without a name."""
    first, *others = HEAD.split(reference.strip())
    found = [entry("", first), *(entry(*part.partition("\n")[::2]) for part in others)]
    return [each for each in found if each.text or each.name]


def entry(head: str, body: str) -> Entry:
    """The entry under a heading, such as `tools.text2image(prompt_list: list[str]) -> list[Image]`."""
    example = EXAMPLE.search(body)
    text = body.replace(example.group(0), "", 1).strip() if example else body.strip()
    code = example["code"] if example else ""
    signature = CALL.match(head.strip())
    if signature is None:
        return Entry(head.strip(), "", text, code, "")
    name, parameters = signature[1], signature[2]
    return Entry(name, head.strip().removeprefix(name), text, code, f"{name}({', '.join(list_required(parameters))})")


def list_required(parameters: str) -> Iterator[str]:
    """Names of the parameters that must be given; they are parted at the commas that stand in no bracket."""
    depth, part = 0, ""
    for character in f"{parameters},":
        depth += (character in "[(") - (character in "])")
        if character == "," and depth <= 0:
            name, _, rest = part.strip().partition(":")
            if name and "=" not in rest and not name.startswith("*"):
                yield name.strip()
            part = ""
        else:
            part += character
