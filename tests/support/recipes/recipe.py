"""The form of a recipe: files that are written, and lines that are added to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent


@dataclass(frozen=True)
class Recipe:
    lines: tuple[tuple[str, str, str], ...]
    """Path, text that stands in the file once, and what is written in front of it."""
    test: tuple[str, str]
    """Path and text of a test of what is new."""
    new: Mapping[str, str] = field(default_factory=dict)
    """Path -> text of a file that was not there."""
    made: tuple[str, ...] = ()
    """Files that a command of the recipe makes again."""
    accepted: tuple[str, ...] = ()
    """Tests of the product that know of what is new by themselves."""

    @property
    def touched(self) -> set[str]:
        """Every file but the test of what is new."""
        return {*self.new, *self.made, *(path for path, _, _ in self.lines)}

    def follow(self, root: Path) -> None:
        for path, text in [*self.new.items(), self.test]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(dedent(text).lstrip("\n"))
        for path, before, added in self.lines:
            text = (root / path).read_text()
            assert text.count(before) == 1, f"{before!r} stands {text.count(before)} times in {path}"
            (root / path).write_text(text.replace(before, added + before))
