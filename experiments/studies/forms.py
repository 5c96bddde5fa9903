"""The forms of studies. The actions check their values, for pages and API alike."""

from __future__ import annotations

from django import forms
from django.http import QueryDict
from django.utils.html import format_html

from experiments.display.form_fields import NumberText
from experiments.models import StudyItem
from experiments.studies.actions import MAX_TEXT


class EditStudy(forms.Form):
    """Title and text of a study."""

    title = forms.CharField(required=False, widget=forms.TextInput({"required": True}))
    text = forms.CharField(
        help_text=f"Markdown without HTML, links or images; at most {MAX_TEXT:,} characters",
        required=False,
        widget=forms.Textarea({"rows": 8}),
    )


class EditItem(forms.Form):
    """Place and caption of the item with a number, and whether it is removed; `sent` is a refused form."""

    position = forms.CharField(label="Place", required=False, widget=NumberText({"size": "3", "maxlength": "4"}))
    caption = forms.CharField(required=False, widget=forms.Textarea({"rows": 2}))
    remove = forms.BooleanField(required=False)

    def __init__(self, item: StudyItem, number: int, sent: QueryDict) -> None:
        # The page has a form for each item, so ids contain the item's key.
        super().__init__(auto_id=f"item-{item.pk}-%s")
        self.item = item
        self.fields["remove"].widget.attrs["value"] = item.pk
        for field in self:
            # Screen readers would else read the same label for every item.
            words = "item" if field.name == "remove" else "of item"
            field.label = format_html('{}<span class="sr-only"> {} {}</span>', field.label, words, number)
        # After a refusal, what was typed; else what is stored.
        self.initial = {
            "position": sent.get(self.add_prefix("position"), item.position),
            "caption": sent.get(self.add_prefix("caption"), item.caption),
            "remove": str(item.pk) in sent.getlist("remove"),
        }

    def add_prefix(self, field_name: str) -> str:
        # One list of keys for `remove`; the other fields have a name for each item.
        return field_name if field_name == "remove" else f"{field_name}-{self.item.pk}"


class DownloadStudy(forms.Form):
    """Whether the folder of a study names people."""

    names = forms.BooleanField(
        label="With names of people",
        help_text="who asked, steered and wrote",
        required=False,
        widget=forms.CheckboxInput({"value": "yes"}),
    )
