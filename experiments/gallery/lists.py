"""Choose experiments and observations by one form, for the page, the API and exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from django import forms
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms.boundfield import BoundField

from experiments.api.fields import Finite, RowNumber, UnitNumber, Words
from experiments.core import tagging
from experiments.core.params import MAX_COUNT
from experiments.core.search_index import words
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.form_fields import LiveForm, NumberText
from experiments.display.narrowing import Filter, index_filters
from experiments.models import Layer, Observation, Run, Tag, VisionModelRow
from experiments.models.tag import TAG_CHARS
from experiments.runs.filters import FILTERS as RUN_FILTERS
from workers.record.engine_parameters import ENGINE_PARAMETERS
from workers.record.origins import Origin

OWN = frozenset({"q", "origin", "low", "high", "tag", "differs", "parameter", "parameter_low", "parameter_high"})
"""Filters on what was logged; the others are on its run."""
OF_FILES = OWN | frozenset(RUN_FILTERS)
"""Parameters of an address that choose experiments and images for a file."""

SORTS = {
    "recent": "Newest first",
    "strongest": "Strongest first",
    "weakest": "Weakest first",
    "rise": "Largest rise by an edit",
    "drop": "Largest drop by an edit",
}
_PARAMETERS = [("", "Any image"), *((name, each.label) for name, each in ENGINE_PARAMETERS.items())]
LIST_SORTS = ("recent", "strongest")
MORE = (
    *("model", "layer", "unit", "run", "low", "high", "owner", "tag"),
    *("parameter", "parameter_low", "parameter_high", "differs"),
)
"""Fields that the page shows on request."""


def _decimal() -> NumberText:
    return NumberText({"inputmode": "decimal"})


class Filters(LiveForm):
    """Every field may be empty. Errors are in `problems`, and the input stays in its field. `FILTERS` gives the fields
    to the API and exports."""

    def __init__(self, data: Mapping[str, Any], names: SystemNameMasker) -> None:
        """Read the filters; `names` are those of the viewer: hidden systems are not found by name."""
        super().__init__(data)
        self.names = names

    q = forms.CharField(label="Words", required=False, max_length=10_000, help_text="words of title or prompt")
    origin = forms.TypedChoiceField(
        label="Origin", required=False, choices=[("", "Any origin"), *Origin.choices()], coerce=Origin
    )
    low = forms.FloatField(label="Activation from", required=False, help_text="lowest activation", widget=_decimal())
    high = forms.FloatField(label="Activation to", required=False, help_text="highest activation", widget=_decimal())
    model = forms.CharField(
        label="Model", required=False, max_length=200, widget=forms.Select({"data-clears": "layer"})
    )
    layer = forms.CharField(label="Layer", required=False, max_length=200, widget=forms.Select)
    unit = forms.IntegerField(label="Unit", required=False, min_value=0, max_value=MAX_COUNT, widget=NumberText)
    run = forms.IntegerField(label="Run", required=False, min_value=1, max_value=MAX_COUNT, widget=NumberText)
    owner = forms.CharField(label="Created by", required=False, max_length=150, widget=forms.Select)
    tag = forms.CharField(label="Tag", required=False, max_length=TAG_CHARS, widget=forms.Select)
    differs = forms.BooleanField(
        label="Claims", required=False, help_text="true: only those whose claim is another number"
    )
    parameter = forms.ChoiceField(
        label="Game engine",
        required=False,
        choices=_PARAMETERS,
        help_text="only images of the game engine with a value of this parameter",
    )
    parameter_low = forms.FloatField(
        label="Parameter from", required=False, help_text="its lowest value", widget=_decimal()
    )
    parameter_high = forms.FloatField(
        label="Parameter to", required=False, help_text="its highest value", widget=_decimal()
    )
    sort = forms.ChoiceField(label="Order", required=False, choices=list(SORTS.items()))

    def clean_q(self) -> str:
        typed = str(self.cleaned_data["q"])
        asked = words.parse_words(typed)
        if typed.strip() and asked.problem:
            raise forms.ValidationError(asked.problem)
        return typed

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = self.cleaned_data
        low, high = given.get("low"), given.get("high")
        if low is not None and high is not None and low > high:
            self.add_error("low", f"No activation is at least {low:g} and at most {high:g}: swap the two.")
        low, high = given.get("parameter_low"), given.get("parameter_high")
        if low is not None and high is not None and low > high:
            self.add_error("parameter_low", f"No value is at least {low:g} and at most {high:g}: swap the two.")
        # An invalid parameter is missing too, but has its own message already.
        elif (low, high) != (None, None) and not given.get("parameter") and "parameter" not in self.errors:
            self.add_error("parameter", "Choose the parameter of the game engine that the values are of.")
        return given

    def get(self, name: str) -> Any:
        """Return the value of a field; None or "" if it is empty."""
        return self.cleaned_data.get(name)

    @property
    def sorted_by(self) -> str:
        return self.get("sort") or "recent"

    @property
    def any(self) -> bool:
        """True if any filter is set."""
        return any(self.data.get(name, "").strip() for name in self.fields if name != "sort")

    @property
    def on_observations(self) -> bool:
        """True if a filter on more than the run selects observations."""
        given = any(self.get(name) not in (None, "") for name in ("q", "origin", "low", "high", "tag", "parameter"))
        given = given or bool(self.get("differs"))
        return given or self.sorted_by in {"rise", "drop"}

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(words.parse_words(self.get("q")).terms) if self.get("q") else ()

    def params(self) -> dict[str, str]:
        """Return the parameters of the address, without the page."""
        return {name: self.data[name] for name in ("view", *self.fields) if self.data.get(name)}

    def runs(self) -> QuerySet[Run] | None:
        """Return the runs that the filters on runs select; None for all."""
        columns = {"model": "model", "layer": "layer", "unit": "unit", "run": "pk", "owner": "owner__username"}
        given = {column: self.get(name) for name, column in columns.items() if self.get(name) not in (None, "")}
        found = visible_to(Run.objects.filter(**given)).order_by()
        # A search by place would reveal which hidden system a run is on.
        if given.keys() & {"model", "layer", "unit"}:
            found = found.exclude(self.names.are_hidden())
        return found if given else None

    def on_experiments(self, titled: Any = None) -> Q:
        """Return the filters on experiments themselves.

        By the highest activation and by tag; by origin, a claim that differs, a parameter of the game engine and
        words, those that logged such an image. `titled`: keys of the images with the words, None for no words.
        """
        asked = self.in_range("best_activation")
        if tag := self.get("tag"):
            asked &= tagging.programs(tag)
        if self.get("origin") or self.get("differs") or self.get("parameter") or titled is not None:
            logged = self._logged() if titled is None else self._logged() & Q(pk__in=titled)
            asked &= Q(pk__in=Observation.objects.filter(logged).order_by().values("experiment"))
        return asked

    def on_images(self) -> Q:
        """Return the filters on observations themselves, except words and tag."""
        return self.in_range("activation") & self._logged()

    def in_range(self, column: str) -> Q:
        bounds = {f"{column}__gte": self.get("low"), f"{column}__lte": self.get("high")}
        return Q(**{name: value for name, value in bounds.items() if value is not None})

    def _logged(self) -> Q:
        """Return a filter for observations of this origin, and whose claim is another number. Originals of edits
        keep their origin, generated or external."""
        origin = self.get("origin")
        # "Original" is a role of an image, the others are stored origins.
        asked = Q(is_original=True) if origin == Origin.ORIGINAL else Q(origin=origin) if origin else Q()
        asked &= Q(differs=True) if self.get("differs") else Q()
        return asked & self._with_parameter() if self.get("parameter") else asked

    def _with_parameter(self) -> Q:
        """Return a filter for images of the game engine whose parameter lies in the requested range."""
        column = f"parameters__{self.get('parameter')}"
        # The key comes from the form's choices, so it cannot name another column.
        asked = Q(parameters__isnull=False, **{f"{column}__isnull": False})
        for end, compare in (("parameter_low", "gte"), ("parameter_high", "lte")):
            if self.get(end) is not None:
                asked &= Q(**{f"{column}__{compare}": self.get(end)})
        return asked

    def offer(self, sorts: Iterable[str]) -> None:
        """Fill the lists of the page's form. Its labels need no help."""
        model = self.data.get("model", "")
        in_use = Tag.objects.filter(_is_used(Tag.experiments) | _is_used(Tag.observations))
        members = User.objects.filter(member__isnull=False).order_by("username")
        offered = {
            "model": VisionModelRow.objects.values_list("name", flat=True),
            "layer": Layer.objects.filter(model__name=model).values_list("name", flat=True) if model else (),
            "owner": members.values_list("username", flat=True),
            "tag": in_use.values_list("name", flat=True),
        }
        for name, values in offered.items():
            listed = _with_current(values, self.data.get(name, ""))
            choices = [("", "Anybody" if name == "owner" else "Any"), *((each, each) for each in listed)]
            cast("forms.Select", self.fields[name].widget).choices = choices
        # Only the widget's: the field still accepts every order, for the other view and old addresses.
        cast("forms.ChoiceField", self.fields["sort"]).widget.choices = [(name, SORTS[name]) for name in sorts]
        if not model:
            self.fields["layer"].widget.attrs["title"] = "Choose a model first"
        for field in self:
            field.help_text = ""
        self["differs"].label = "Claimed another number than was measured"

    @property
    def more(self) -> list[BoundField]:
        """The fields that the page shows on request; that of tags only if there are any."""
        tags = cast("forms.Select", self.fields["tag"].widget).choices
        return [self[name] for name in MORE if name != "tag" or len(list(tags)) > 1]


def _read_field(name: str, row: forms.Field) -> Filter:
    """Return the filter of a field of the form, which combines the conditions."""
    choices = [(key, label) for key, label in getattr(row, "choices", ()) if key] or None
    accepts: Any = Words
    if isinstance(row, forms.TypedChoiceField):
        accepts = row.coerce
    elif choices:
        accepts = Literal[tuple(key for key, _ in choices)]
    elif isinstance(row, forms.BooleanField):
        accepts, choices = bool, [("on", "Other than measured")]
    elif isinstance(row, forms.IntegerField):  # FloatField is one too
        accepts = Finite if isinstance(row, forms.FloatField) else RowNumber if row.min_value else UnitNumber
    return Filter(name, str(row.label), None, accepts, str(row.help_text), choices)


FILTERS = index_filters(*(_read_field(name, row) for name, row in Filters.base_fields.items() if name != "sort"))
"""The form's fields except the order, for the API and exports."""


def _is_used(links: Any) -> Exists:
    """True if a tag is on anything of this kind."""
    return Exists(links.through.objects.filter(tag=OuterRef("pk")))


def _with_current(names: Any, current: str) -> list[str]:
    """Return the names, with the requested one even if it is no longer listed."""
    listed = list(names)
    return listed if not current or current in listed else [*listed, current]
