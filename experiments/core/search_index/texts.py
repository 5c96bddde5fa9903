"""Split events into passages, and write them with what the database's index needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from experiments.core.search_index import backend
from experiments.core.search_index.normalize import normalize
from experiments.core.search_index.words import MAX_QUERY_CHARS
from experiments.models import Event, Label, Run, RunSummary, SearchText, TextKind, Unit
from experiments.models.insertion import Prepared
from workers.record.events import Ended, ExperimentEnded, ExperimentStarted, Graded, Note, Payload, Replied
from workers.record.replies import Conclusion

if TYPE_CHECKING:
    from experiments.core.row_writers import RowWriter

Text = tuple[str, int | None, str]
"""Kind, anchor, text."""

PIECE = 2_000
"""Maximum characters of a passage; longer texts are split."""
AT_ONCE = 500
CONCLUDED = frozenset({TextKind.DESCRIPTION, TextKind.LABEL})


def index_event(run: Run, event: Event, rows: RowWriter) -> None:
    """Index a new event; called by `projections`."""
    texts = list(_texts_of(event.content))
    if isinstance(event.content, Replied):
        # Agents repeat their list in every round: index a hypothesis only where it was made.
        said, repeated = rows.read_hypothesis_texts(), texts
        texts = []
        for text in repeated:
            is_hypothesis = text[0] == TextKind.HYPOTHESIS
            if not (is_hypothesis and text[2] in said):
                texts.append(text)
            if is_hypothesis:
                said.add(text[2])
    if isinstance(event.content, ExperimentEnded):
        texts += rows.titles(event.content.number)
    rows.add_passages(split_texts(run, texts, seq=event.seq, time=event.time))
    if any(kind in CONCLUDED for kind, _, _ in texts):
        rows.set_summary(summary(run))


def keep_questions(runs: Iterable[Run]) -> None:
    """Write the questions of new runs, so that they are found before a worker starts."""
    asked = list(runs)
    write(map(question, asked))
    keep_summaries(asked)


def keep_summaries(runs: Iterable[Run]) -> None:
    """Write the summaries of new runs."""
    RunSummary.objects.bulk_create((RunSummary(run=run, normalized=summary(run)) for run in runs), batch_size=AT_ONCE)


def keep_label(label: Label, units: Iterable[Unit]) -> None:
    """Write a label without a run, once for each of its units, whose layers and models are loaded."""
    write(label_of(label, unit) for unit in units)


def question(run: Run) -> SearchText:
    return passage_of(run, (TextKind.QUESTION, None, run.question), time=run.created)


def summary(run: Run) -> str:
    """Return the summary with a line for each text, so that no phrase matches across two."""
    known = {
        name: run.conclusion[name]
        for name in ("description", "bias", "reasoning", "domain", "labels")
        if name in run.conclusion
    }
    said = [text for _, _, text in _conclusion_texts(Conclusion(**known))] if known else []
    return "\n".join(map(normalize, [run.question, f"{run.model} {run.layer}", *said]))


def label_of(label: Label, unit: Unit) -> SearchText:
    system = Run(model=unit.layer.model.name, layer=unit.layer.name, unit=unit.number)
    return passage_of(system, (TextKind.LABEL, label.pk, label.text))


def _texts_of(content: Payload) -> Iterator[Text]:
    """Return the searchable texts of an event, except the titles of its images."""
    match content:
        case Replied():
            yield TextKind.REPLY, content.round, content.prose
            yield from ((TextKind.HYPOTHESIS, content.round, each.text) for each in content.hypotheses)
        case ExperimentStarted():
            yield TextKind.CODE, content.number, content.code
        case ExperimentEnded():
            said = [content.output, content.error, *(entry.text for entry in content.entries)]
            yield from ((TextKind.OUTPUT, content.number, text) for text in said)
        case Graded():
            # A label that is part of a conclusion is indexed with the conclusion.
            if content.goes_back:
                yield TextKind.LABEL, None, content.label
            yield TextKind.OUTPUT, None, content.reason
        case Note():
            yield TextKind.NOTE, content.round, content.text
        case Ended():
            yield from _conclusion_texts(content.conclusion)


def _conclusion_texts(conclusion: Conclusion) -> Iterator[Text]:
    parts = (conclusion.description, conclusion.bias, conclusion.reasoning, conclusion.domain)
    yield from ((TextKind.DESCRIPTION, None, part) for part in parts)
    yield from ((TextKind.LABEL, None, label) for label in conclusion.labels)


def title_of(title: str, prompt: str) -> str:
    """Return the title of an image, with the prompt it was made from if that says more."""
    return title if normalize(prompt) in normalize(title) else f"{title}\n{prompt}"


def split_texts(run: Run, texts: Iterable[Text], **fields: Any) -> list[SearchText]:
    """Return unsaved passages, several for a long text."""
    return [
        passage_of(run, (kind, anchor, whole[start : start + PIECE]), **fields)
        for kind, anchor, whole in texts
        if whole.strip()
        # Each piece begins with the end of the one before, as long as the longest query: no phrase is split.
        for start in range(0, max(len(whole) - MAX_QUERY_CHARS, 1), PIECE - MAX_QUERY_CHARS)
    ]


def passage_of(run: Run, text: Text, **fields: Any) -> SearchText:
    """Return an unsaved passage about the run's system; the system is left out if it is unknown."""
    kind, anchor, words = text
    system = {"model": run.model, "layer": run.layer, "unit": run.unit}
    return SearchText(
        run_id=run.pk, kind=kind, anchor=anchor, text=words, normalized=normalize(words), **system, **fields
    )


def write_summary(run: Run, normalized: str) -> None:
    RunSummary.objects.update_or_create(run=run, defaults={"normalized": normalized})


def write(passages: Iterable[SearchText]) -> None:
    """Save passages and index them, in the transaction under way."""
    if not (rows := SearchText.objects.bulk_create(passages, batch_size=AT_ONCE)):
        return
    backend.get_backend().index([(row.pk, row.normalized) for row in rows])


class Ready:
    """Prepared passages of a run that need not be saved yet.

    Anchors are as in `Bulk`: the anchor of a title is the position of its image in the run.
    """

    def __init__(self, rows: Sequence[SearchText]) -> None:
        self.rows = Prepared(SearchText, rows, ["run_id", "anchor"])
        self.anchors = [(row.kind == TextKind.TITLE, row.anchor) for row in rows]
        self.texts = [row.normalized for row in rows]
        self.hints = backend.get_backend().hints(self.texts)

    def write(self, run: int, images: Sequence[int]) -> None:
        """Write the passages in the transaction under way; `images` are the keys of the run's images by position."""
        anchors = [images[anchor] if title and anchor is not None else anchor for title, anchor in self.anchors]
        self.rows.insert([run] * len(anchors), anchors)
        # The passages that were inserted just now have the highest keys of this run.
        newest = SearchText.objects.filter(run=run).order_by("-pk").values_list("pk", flat=True)[: len(anchors)]
        rows = list(zip(list(newest)[::-1], self.texts, strict=True))
        backend.get_backend().index(rows, worked_out=self.hints)
