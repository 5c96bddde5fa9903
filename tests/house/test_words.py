"""Pages, scripts and the API speak the field's words: phrases that were given up do not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from experiments.api.interface import api
from tests import ROOT

RETIRED = {
    r"New query|Ask something|Ask about it": "New run, Start a run",
    r"Asked by|Asked since|Asked until": "Created by, Created since",
    r"Concluded lately": "Recent conclusions",
    r"Nothing waits\.": "All caught up.",
    r"[Nn]ot here yet": "Not installed",
    r"Look again": "Refresh",
    r"Read it whole": "Full conclusion",
    r"[Bb]est of its own": "Best generated",
    r"[Ee]xemplar mean": "Exemplar threshold",
    r"Strongest images of its own": "Top generated images",
    r"Exemplars against the labels": "Exemplars vs. label",
    r"\bexcites?\b": "activates, top activating images",
    r"What bears on each": "Evidence by hypothesis",
    r"last word on each": "final status",
    r"[Nn]ot on the list": "not listed",
    r"The same as a table": "Show as table",
    r"Press a dot": "Click a dot",
    r"Told the agent": "System message",
    r"\bRemark\b": "Message to agent",
    r"Whole reply": "Full response",
    r"tokens read": "input tokens",
    r"How (the run|it) is made": "Configuration",
    r"Instructions as the agent got it": "System prompt",
    r"Have a run go on": "Resume",
    r">Try again<": "Retry",
    r"Ask the same again": "Duplicate run",
    r"Make the (file|link|token|trial|contest|queue)": "Export, Create link, Create token, …",
    r"Days it is good|Good until": "Expires",
    r"What the pages call you": "Display name",
    r"by link alone": "No password",
    r"Never seen": "Last active: never",
    r"Single keys act": "Enable single-key shortcuts",
    r"Said, done and seen": "In transcripts",
    r"Nothing was heard of": "No heartbeat for",
    r"\b[Cc]ontests?\b|[Tt]wo-way choice": "Pairwise trials",
    r"Agent, whichever": "Any agent",
    r"\bby lot\b": "random order",
    r"[Ww]aiting for a person": "Needs attention",
    r"\b[Pp]uts? .{0,30}up for review|\bup for review\b|[Pp]ut it up": "Add to review",
    r"(?<![\w.=\"/-])[Oo]pinions?(?![\w./=\"-])": "Reviews",
    r"Shown twice, %|Known answers?\b": "Repeat pairs, Attention checks",
    r"Line of the rubric": "Criterion",
    r"Kept as you type": "Saved automatically",
    r"Close it for good": "Close trial",
    r"Runs, whole": "Full runs",
    r"[Pp]ublished transcripts?": "MAIA transcript",
    r"What is known of it": "Details",
    r"Everywhere it is used": "All uses",
    r"Masked for a unit": "Activation masks",
    r"Never asked": "Not studied",
    r"spurious reliance": "spurious features",
    r"Read who you are|List what you were told of": "Get current user, List notifications",
    r"\bstands? (here|below)\b": "appears here",
    r"Run again with changes|Asks again what": "Duplicate run",
    r"What (is|was) (kept|recorded) ": "The stored result, everything recorded",
    r"[Nn]ever active|\bkin\b": "dead unit, similar units",
}
"""What is not said any more -> what is."""


def texts() -> Iterator[tuple[str, str]]:
    """Where something is said to people, and what: templates without their comments, scripts, and of the API summaries,
    descriptions, fields and addresses."""
    for path in (ROOT / "templates").rglob("*.html"):
        yield path.name, re.sub(r"{% comment %}.*?{% endcomment %}|{#.*?#}", "", path.read_text(), flags=re.DOTALL)
    for path in (ROOT / "static/js").rglob("*.js"):
        yield path.name, "\n".join(re.findall(r"\"[^\"\n]*\"|`[^`]*`", path.read_text()))
    document = api.get_openapi_schema()
    for address, operations in document["paths"].items():
        for operation in operations.values():
            yield (
                "API",
                f"{address.rpartition('/')[2]} {operation.get('summary', '')} {operation.get('description', '')}",
            )
    for name, schema in document["components"]["schemas"].items():
        yield "API", f"{name} {schema.get('description', '')} {' '.join(schema.get('properties', ()))}"


def test_phrases_that_were_given_up_do_not_come_back() -> None:
    every = list(texts())
    assert len(every) > 200
    found = [
        f"{where}: “{match[0]}”; say {standard}"
        for where, text in every
        for pattern, standard in RETIRED.items()
        for match in re.finditer(pattern, text)
    ]
    assert found == []


DIALECT = re.compile(r"\b(nobody|somebody|whoever|but for)\b", re.IGNORECASE)


def test_code_docs_and_pages_name_who_acts() -> None:
    """The worker, the page, a reviewer: whoever reads should not have to guess."""
    folders = [ROOT / name for name in ("docker", "experiments", "maia_web", "static", "templates", "workers")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".md", ".html", ".js"}]
    files += [*ROOT.glob("*.md")]
    said = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if "migrations" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if DIALECT.search(line)
    ]
    assert said == []
