"""Select the rows of an export by the query string of a page.

Pages ignore invalid filters and show a notice. An export has no place for a notice, so it raises ExchangeError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict

from experiments.core import blindness, tagging
from experiments.core.params import parse_number
from experiments.core.search_index import words
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import Narrowed, equal_choice, equal_number, narrow_down
from experiments.evaluations import lists as evaluation_lists
from experiments.exchange.safe_zip import ExchangeError
from experiments.gallery.lists import OF_FILES, OWN, Filters
from experiments.label_checks import lists as check_lists
from experiments.models import (
    Adjudication,
    EvaluationItem,
    Experiment,
    ExportSubject,
    Label,
    Observation,
    PairwiseTrial,
    Review,
    ReviewItem,
    ReviewQueue,
    Run,
    Study,
)
from experiments.pairwise import lists as trial_lists
from experiments.reviews import queue_lists
from experiments.reviews.agreement import lists as agreement_lists
from experiments.reviews.lists import ITEM_FILTERS, SHOWS
from experiments.runs import lists
from experiments.runs.filters import FILTERS
from experiments.search import finding
from experiments.sweeps import lists as sweep_lists
from experiments.units.lists import LABEL_FILTERS, labels_from
from workers.record.evaluation_kinds import EvaluationKind

OF_RUNS = frozenset(FILTERS)
OF_ITEMS = frozenset({"evaluation", *evaluation_lists.FILTERS, *evaluation_lists.ITEM_FILTERS}) - {"group"}
"""Without the group, which may be half the answer while people write labels."""
KNOWN: Mapping[ExportSubject, frozenset[str]] = {
    ExportSubject.BUNDLE: OF_RUNS,
    ExportSubject.RUNS: OF_RUNS,
    ExportSubject.EXPERIMENTS: OF_FILES,
    ExportSubject.OBSERVATIONS: OF_FILES,
    ExportSubject.LABELS: frozenset(LABEL_FILTERS),
    ExportSubject.CHECKS: frozenset(check_lists.FILTERS),
    ExportSubject.EVALUATIONS: OF_ITEMS,
    ExportSubject.REVIEWS: OF_RUNS | {"queue", *ITEM_FILTERS},
    ExportSubject.VERDICTS: OF_RUNS | {"queue"},
    ExportSubject.AGREEMENT: frozenset({"queue"}),
    ExportSubject.QUEUES: frozenset(queue_lists.FILTERS),
    ExportSubject.TRIALS: frozenset(trial_lists.FILTERS),
    ExportSubject.SWEEPS: frozenset(sweep_lists.FILTERS),
    ExportSubject.STUDY: frozenset({"study", "names"}),
}
"""Allowed filter fields of each export subject."""
NAMES = "yes"
NAMED = 10
"""Maximum number of runs that an error message lists."""
LOOKS = frozenset({"sort", "page", "view", "col", "cursor"})
"""Query fields that concern only the look of a page. Exports ignore them."""


def select_rows(what: ExportSubject, query: str, viewer: User | None = None) -> Any:
    """Return the rows, oldest first, limited to the reviews and hidden systems that `viewer` may see. Raises
    ExchangeError for an invalid filter."""
    given = _parse_query(what, query)
    rows: Any
    match what:
        case ExportSubject.BUNDLE:
            rows = require_named_systems(runs(given, viewer), viewer)
        case ExportSubject.RUNS:
            rows = runs(given, viewer)
        case ExportSubject.EXPERIMENTS | ExportSubject.OBSERVATIONS:
            rows = _select_logged(what, given, viewer)
        case ExportSubject.REVIEWS | ExportSubject.VERDICTS:
            asked = {name: text for name, text in given.items() if name not in {"queue", "show"}}
            opinions = reviews if what == ExportSubject.REVIEWS else verdicts
            rows = opinions(given, viewer)
            rows = rows.filter(item__run__in=runs(asked, viewer).order_by().values("pk")) if asked else rows
        case ExportSubject.AGREEMENT:
            return agreement(given, viewer)
        case ExportSubject.QUEUES | ExportSubject.TRIALS | ExportSubject.SWEEPS | ExportSubject.STUDY:
            rows = _select_listed(what, given, viewer)
        case ExportSubject.CHECKS:
            rows = _require_sense(check_lists.checks_from(given, SystemNameMasker(viewer)))
        case ExportSubject.EVALUATIONS:
            rows = visible_to(_select_items(given))
        case ExportSubject.LABELS:
            rows = _require_sense(labels_from(Label.objects.all(), given, SystemNameMasker(viewer)))
    return rows.order_by("pk")


def check_log(what: ExportSubject, rows: QuerySet[Any]) -> None:
    """Raise ExchangeError if the items belong to more than one evaluation: an Inspect log holds one."""
    if what == ExportSubject.EVALUATIONS and rows.order_by().values("evaluation").distinct().count() > 1:
        raise ExchangeError("An Inspect log holds one evaluation: choose it by its number.")


def _select_study(given: Mapping[str, str]) -> QuerySet[Study]:
    """Return the study named by the filter. Raises ExchangeError for an invalid filter."""
    if given.get("names", NAMES) != NAMES:
        raise ExchangeError(f"names: “{given['names'][:40]}” is not valid. Use {NAMES}, or leave it out.")
    return Study.objects.filter(pk=_number_in(given, "study", " of a study") if "study" in given else 0)


def shows_names(query: str) -> bool:
    """True if the query asks for names of people."""
    return QueryDict(query).get("names") == NAMES


def _select_listed(what: ExportSubject, given: Mapping[str, str], viewer: User | None) -> QuerySet[Any]:
    """Return queues, trials or sweeps as their lists show them, or one study. Raises ExchangeError with the message of
    the page."""
    if what == ExportSubject.STUDY:
        return _select_study(given)
    if what == ExportSubject.SWEEPS:
        return _require_sense(sweep_lists.sweeps_from(given))
    if viewer is None:  # pending and finished judgements belong to a user
        return ReviewQueue.objects.none() if what == ExportSubject.QUEUES else PairwiseTrial.objects.none()
    choose = queue_lists.queues_from if what == ExportSubject.QUEUES else trial_lists.trials_from
    return _require_sense(choose(given, viewer))


def _require_sense(found: Narrowed) -> QuerySet[Any]:
    for name, problem in found.problems.items():
        raise ExchangeError(f"{name}: {problem}")
    return found.rows


def _parse_query(what: ExportSubject, query: str) -> dict[str, str]:
    """Return the non-empty fields by name. Raises ExchangeError for an unknown field."""
    given: dict[str, str] = {}
    for name, values in QueryDict(query).lists():
        # A field may be repeated, as in run=1&run=2
        words = ",".join(value.strip() for value in values if value.strip())
        if words and name not in LOOKS:
            if name not in KNOWN[what]:
                known = ", ".join(sorted(KNOWN[what]))
                raise ExchangeError(f"{what.label} cannot be filtered by “{name[:40]}”. Choose from: {known}.")
            if "\x00" in words:  # A zero byte can be percent-encoded in an address; PostgreSQL refuses it
                raise ExchangeError(f"{name}: remove the zero byte.")
            given[name] = words
    return given


def runs(given: Mapping[str, str], viewer: User | None) -> QuerySet[Run]:
    """Return the runs that match. Hidden systems are matched as `viewer` may see them. Raises ExchangeError with the
    message of the Runs page."""
    found = lists.runs_from(given, names=SystemNameMasker(viewer))
    if found.problems:
        name, problem = next(iter(found.problems.items()))
        raise ExchangeError(f"{name}: {problem}")
    return found.runs


def require_named_systems(rows: QuerySet[Run], viewer: User | None) -> QuerySet[Run]:
    """Return the same runs for a bundle, which names their systems. Raises ExchangeError if this person still has to
    review one of them without knowing its system."""
    names = SystemNameMasker(viewer)
    hidden = rows.filter(names.are_hidden()).order_by("pk").values_list("pk", flat=True)[:NAMED] if viewer else ()
    if numbers := ", ".join(map(str, hidden)):
        raise ExchangeError(
            f"You are still to judge what runs {numbers} study, and a bundle names it: "
            "submit or decline your reviews first, or leave them out."
        )
    return rows


def _select_logged(what: ExportSubject, given: Mapping[str, str], viewer: User | None) -> QuerySet[Any]:
    """Return experiments or images, filtered by their runs and by origin, activation, tag, and words in title or
    prompt. Raises ExchangeError with the message of the page."""
    filters = Filters({name: text for name, text in given.items() if name in OWN}, SystemNameMasker(None))
    if not filters.is_valid():
        name, messages = next(iter(filters.errors.items()))
        raise ExchangeError(f"{name}: {messages[0]}")
    # None means no filter, which differs from a filter that finds nothing
    titles = None
    if "q" in given:
        found = words.parse_words(given["q"])
        if found.problem:
            raise ExchangeError(f"q: {found.problem}")
        titles = finding.images(found.terms)
    asked = {name: text for name, text in given.items() if name in OF_RUNS - {"q", "tag"}}
    of_runs = Q(run__in=runs(asked, viewer).order_by().values("pk")) if asked else Q()
    if what == ExportSubject.EXPERIMENTS:
        return visible_to(Experiment.objects.filter(of_runs & filters.on_experiments(titles)))
    images = visible_to(Observation.objects.filter(of_runs & filters.on_images()))
    if tag := filters.get("tag"):
        images = images.filter(tagging.images(tag))
    return images if titles is None else images.filter(pk__in=titles)


def _select_items(given: Mapping[str, str]) -> QuerySet[EvaluationItem]:
    more = {
        "kind": equal_choice("evaluation__kind", "kind", EvaluationKind.choices()),
        "evaluation": equal_number("evaluation", "evaluation"),
    }
    return _require_sense(narrow_down(EvaluationItem.objects.all(), given, evaluation_lists.ITEM_FILTERS, more))


def _number_in(given: Mapping[str, str], name: str, of: str = "") -> int:
    """Parse the field as a number. Raises ExchangeError if it is none."""
    text = given[name]
    if (number := parse_number(text)) is None:
        raise ExchangeError(f"{name}: “{text[:40]}” is not a number{of}.")
    return number


# --- reviews and verdicts: only what the pages show this person ---


def reviews(given: Mapping[str, str], viewer: User | None) -> QuerySet[Review]:
    """Return the submitted reviews that this person may read; without a person, none. Raises ExchangeError for an
    unknown queue or state."""
    rows = blindness.list_visible_reviews(viewer) if viewer else Review.objects.none()
    if show := given.get("show", ""):
        if show not in SHOWS:
            raise ExchangeError(f"show: “{show[:40]}” is not valid. Choose one of: {', '.join(SHOWS)}.")
        rows = rows.filter(item__complete=show == "complete")
    return rows.filter(item__queue=_number_in(given, "queue", " of a queue")) if "queue" in given else rows


def verdicts(given: Mapping[str, str], viewer: User | None) -> QuerySet[Adjudication]:
    """Return the final verdicts that this person may read, annotated with `stands`: true unless a later one replaced
    it. Verdicts of runs that this person still has to review blind are left out. Raises ExchangeError for an invalid
    queue."""
    if viewer is None:
        return Adjudication.objects.none()
    # Verdicts are never changed: a correction is a later row
    later = Adjudication.objects.filter(item=OuterRef("item"), pk__gt=OuterRef("pk")).order_by()
    hidden = Run.objects.filter(blindness.has_hidden_verdict(viewer)).order_by()
    rows = Adjudication.objects.exclude(item__run__in=hidden.values("pk")).annotate(stands=~Exists(later))
    return rows.filter(item__queue=_number_in(given, "queue", " of a queue")) if "queue" in given else rows


def record_disclosure(rows: Any, viewer: User | None) -> None:
    """Record that this person saw the reviews in these rows, before the first row is read. Rows without reviews need no
    record."""
    if viewer is None:
        return
    if isinstance(rows, Agreement):
        items = ReviewItem.objects.filter(queue__in=rows.queues).order_by().values_list("pk", flat=True)
    elif rows.model is Review:
        items = rows.order_by().values_list("item_id", flat=True)
    else:
        return
    blindness.record_disclosure(viewer, items)


@dataclass(frozen=True)
class Agreement:
    """Agreement measures of the queues that a person may see, computed while they are read. Has the methods of a
    queryset that exports use."""

    queues: tuple[ReviewQueue, ...]
    viewer: User

    # Imported here: pages without figures start without NumPy
    def count(self) -> int:
        from experiments.reviews.agreement.ratings import LINES

        # Each criterion has alpha and kappa of all reviewers of a queue, and a kappa for each pair of reviewers
        pairs = 0
        for queue in self.queues:
            people = agreement_lists.reviews(self.viewer, queue).order_by().values("reviewer").distinct().count()
            pairs += people * (people - 1) // 2
        return len(LINES) * (2 * len(self.queues) + pairs)

    def exists(self) -> bool:
        return bool(self.queues)

    def iterator(self, chunk_size: int = 0) -> Iterator[agreement_lists.AgreementRow]:
        del chunk_size  # Rows are computed per queue, whatever the chunk size
        for queue in self.queues:
            yield from agreement_lists.measures_of(queue, self.viewer)


def agreement(given: Mapping[str, str], viewer: User | None) -> Agreement | QuerySet[Review]:
    """Return the agreement of one queue, or of all queues whose agreement this person may see. Raises ExchangeError."""
    if viewer is None:
        return Review.objects.none()
    queues = ReviewQueue.objects.order_by("pk")
    if "queue" in given:
        queues = queues.filter(pk=_number_in(given, "queue", " of a queue"))
    return Agreement(tuple(queue for queue in queues if blindness.may_see_agreement(viewer, queue)), viewer)
