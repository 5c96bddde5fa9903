"""Fields of forms: label, help and errors belong to their field for screen readers too."""

from __future__ import annotations

import re

import pytest
from django import forms

from experiments.display.form_fields import LiveForm, NumberText

CHOICES = [("a", "First"), ("b", "Second")]


class Sample(forms.Form):
    words = forms.CharField(help_text="<b>a few</b>")
    count = forms.IntegerField(widget=NumberText)
    tick = forms.BooleanField(help_text="or not")
    several = forms.MultipleChoiceField(choices=CHOICES, widget=forms.CheckboxSelectMultiple)
    one = forms.ChoiceField(choices=CHOICES, widget=forms.RadioSelect)


class LiveSample(LiveForm, Sample):
    pass


def draw(form: forms.Form, name: str) -> str:
    return str(form[name].as_field_group())


@pytest.mark.parametrize("name", Sample.base_fields)
@pytest.mark.parametrize("form", [Sample(), Sample({"count": "many"}), LiveSample(), LiveSample({})])
def test_each_id_that_describes_a_field_is_there(form: forms.Form, name: str) -> None:
    page = draw(form, name)
    described = re.findall(r'aria-describedby="([^"]+)"', page)
    assert {each for ids in described for each in ids.split()} <= set(re.findall(r'\bid="([^"]+)"', page))
    assert bool(described) == bool(form[name].help_text or form.errors or isinstance(form, LiveForm))


@pytest.mark.parametrize("name", ["words", "count", "tick"])
def test_the_label_leads_to_the_field(name: str) -> None:
    assert f'<label for="id_{name}">{name.capitalize()}</label>' in draw(Sample(), name)


def test_a_wrong_value_stays_with_its_error_and_help_is_escaped() -> None:
    page = draw(Sample({"count": "many"}), "count")
    assert 'value="many"' in page
    assert 'aria-invalid="true"' in page
    assert '<p class="field-error" id="id_count_error">Enter a whole number.</p>' in page
    assert "&lt;b&gt;a few" in draw(Sample(), "words")


def test_several_choices_are_a_group_with_a_legend() -> None:
    page = draw(Sample({}), "several")
    assert page.startswith("<fieldset")
    assert "<legend>Several" in page
    assert page.count('type="checkbox"') == len(CHOICES)


def test_a_live_form_keeps_a_place_for_errors() -> None:
    assert '<p class="field-error" id="id_count_error"></p>' in draw(LiveSample(), "count")
    assert LiveSample({"count": "many"}).problems[1] == "Count: Enter a whole number."
