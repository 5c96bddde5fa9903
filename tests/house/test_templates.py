"""Templates keep to the policy of the site, and ask for nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import get_template

from tests import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
FORBIDDEN = {
    "a style in place": r"\sstyle=",
    "a handler in place": r"\son\w+=\"",
    "a script in place": r"<script(?![^>]*\ssrc=)",
    "a style sheet in place": r"<style",
    "text taken for HTML": r"\|\s*safe\b|autoescape off",
    "an address outside": r"(?:src|href|action)=\"https?:",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT / "templates"))


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_compiles_and_keeps_to_the_policy(path: Path) -> None:
    get_template(name_of(path))
    text = path.read_text()
    assert [what for what, pattern in FORBIDDEN.items() if re.search(pattern, text)] == []


def test_no_line_of_a_template_has_over_140_characters() -> None:
    lines = [(name_of(path), line) for path in TEMPLATES for line in path.read_text().splitlines()]
    assert [(name, line.strip()) for name, line in lines if len(line) > 140] == []


OLD_CLASSES = {
    "acts": "actions",
    "bar-of-filters": "filter-bar",
    "beside": "cell-note",
    "broad": "wide-page",
    "came-with": "imported-notes",
    "deeds": "column-actions",
    "far": "progress-row",
    "few": "secondary",
    "how": "status-line",
    "how-far": "progress-cell",
    "kept": "draft-status",
    "made": "new-secret",
    "not-yet": "check-note",
    "quiet": "muted",
    "said": "log-text",
    "said-so": "comment-body",
    "say": "comment-form",
    "seek": "search-form",
    "sure": "confirmation",
    "talk": "comment-button",
    "talks": "discussion",
    "to-judge": "judging-list",
    "told": "details",
    "told-line": "notification",
    "under-way": "current-draft",
    "what": "part-title",
    "whats": "export-contents",
    "when": "dates",
    "where": "location",
    "which": "form-section",
    "who": "author",
    "words": "text-block",
}
"""Class that was renamed -> a name that says what the element is."""


def test_classes_are_named_by_what_the_element_is() -> None:
    tag, value = r"\{%.*?%\}|\{\{.*?\}\}", r"(?<![\w-])class=\"([^\"]*)\""
    named = [(path, re.findall(value, re.sub(tag, " ", path.read_text(), flags=re.DOTALL))) for path in TEMPLATES]
    styles = (ROOT / "static/css").rglob("*.css")
    named += [(path, re.findall(r"\.[a-z][\w-]*(?=[^{}]*\{)", path.read_text())) for path in styles]
    found = {
        f"{path.relative_to(ROOT)}: {name}, say {OLD_CLASSES[name]}"
        for path, values in named
        for name in re.findall(r"[\w-]+", " ".join(values))
        if name in OLD_CLASSES
    }
    assert sorted(found) == []


def test_pages_and_messages_say_dataset_and_toolset_in_one_word() -> None:
    """But for what the database calls its rows: those words stand in migrations."""
    named = re.compile(r"help_text=|verbose_name|= \"dataset\", ")
    said = re.compile(r"\b([Dd]ata|[Tt]ool) sets?\b")
    kept = {"migrations", "rendering.py"}
    sources = [path for folder in ("experiments", "workers") for path in (ROOT / folder).rglob("*.*")]
    texts = [path for path in sources if path.suffix in {".py", ".md"} and not kept & set(path.parts)]
    found = [
        f"{path.name}: {line.strip()}"
        for path in [*TEMPLATES, *texts]
        for line in path.read_text().splitlines()
        if said.search(line) and not named.search(line)
    ]
    assert found == []


def test_every_static_file_that_a_page_asks_for_exists() -> None:
    asked = {name for path in TEMPLATES for name in re.findall(r"\{% static '([^']+)' %\}", path.read_text())}
    assert "js/display/theme.js" in asked
    assert [name for name in asked if not finders.find(name)] == []


def test_every_script_imports_what_exists() -> None:
    for script in (ROOT / "static/js").rglob("*.js"):
        for name in re.findall(r"^import .*?\"(\.[^\"]+)\"", script.read_text(), flags=re.MULTILINE):
            assert (script.parent / name).exists(), f"{script.name} imports {name}"


def test_every_icon_that_a_template_asks_for_is_drawn() -> None:
    drawn = set(re.findall(r"name == \"(\w+)\"", (ROOT / "templates/display/icon.html").read_text()))
    asked = {name for path in TEMPLATES for name in re.findall(r"\{% icon \"(\w+)\" %\}", path.read_text())}
    assert asked
    assert asked <= drawn
