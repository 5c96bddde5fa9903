"""Forms for joining the team, inviting, and one's own account and tokens."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User

from experiments.accounts import names
from experiments.models import Role
from experiments.models.api_token import DAYS, MAX_DAYS, TokenScope
from experiments.models.invitation import NOTE_CHARS

ASSIGNABLE = [(role.value, role.label) for role in Role]


class NameForm(forms.Form):
    """A display name; without one the user name is used."""

    name = forms.CharField(max_length=names.NAME_CHARS, required=False)

    def clean_name(self) -> str:
        return names.clean_name(self.cleaned_data["name"])


class JoinForm(UserCreationForm):  # type: ignore[type-arg]
    """A new account for an invited person."""

    name = forms.CharField(max_length=names.NAME_CHARS, required=False)

    class Meta(UserCreationForm.Meta):
        model = User
        fields = ("username",)

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        names.must_be_free(username)
        return username

    def clean_name(self) -> str:
        self.instance.first_name = names.clean_name(self.cleaned_data["name"])
        return self.instance.first_name


class InviteForm(forms.Form):
    """A new invitation."""

    role = forms.TypedChoiceField(choices=ASSIGNABLE, coerce=lambda value: Role(int(value)), initial=Role.RESEARCHER)
    note = forms.CharField(max_length=NOTE_CHARS, required=False)

    def clean_note(self) -> str:
        return names.clean_name(self.cleaned_data["note"])


class RoleForm(forms.Form):
    """Another role for a person; `was` is the one that the page showed."""

    role = forms.TypedChoiceField(choices=ASSIGNABLE, coerce=lambda value: Role(int(value)))
    was = forms.CharField(max_length=1, required=False)


class TokenForm(forms.Form):
    """A new token."""

    name = forms.CharField(
        max_length=100,
        error_messages={
            "required": "Give it a name, such as the script that will use it.",
            "max_length": "This name has %(show_value)d characters; at most %(limit_value)d are taken.",
        },
    )
    scope = forms.TypedChoiceField(
        choices=TokenScope.choices, coerce=lambda value: TokenScope(int(value)), initial=TokenScope.READ
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        initial=DAYS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), f"Give a number of days from 1 to {MAX_DAYS}."
        ),
    )
