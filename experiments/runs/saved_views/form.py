"""The form of a saved view."""

from __future__ import annotations

from django import forms


class ViewForm(forms.Form):
    """A name, and whether the team sees it."""

    name = forms.CharField(max_length=60, error_messages={"required": "Give the view a name."})
    shared = forms.BooleanField(label="The team sees it", required=False)

    @property
    def problem(self) -> str:
        """Return the first error; "" for none."""
        return next((str(errors[0]) for errors in self.errors.values()), "")


def draw_view_form(name: str, shared: bool, may_share: bool, auto_id: str) -> ViewForm:
    """Return the form filled in. Only those who may share are asked whether the team sees the view."""
    form = ViewForm(initial={"name": name, "shared": shared}, auto_id=auto_id)
    if not may_share:
        del form.fields["shared"]
    return form
