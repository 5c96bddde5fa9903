"""Forms for signing in, joining the team, inviting, and one's own account and tokens."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm, UserCreationForm
from django.contrib.auth.models import User
from django.utils.html import format_html

from experiments.accounts import names
from experiments.models import Role
from experiments.models.api_token import DAYS, MAX_DAYS, TokenScope
from experiments.models.invitation import NOTE_CHARS

ASSIGNABLE = [(role.value, role.label) for role in Role]


_EXPLAINED = {
    TokenScope.READ: "Runs, events, experiments, images, units, labels: to look at.",
    TokenScope.RUN: "And to start, stop and retry runs.",
    TokenScope.WRITE: "And to write labels, and to ask workers for models, datasets and indexes.",
}
_SCOPES = [
    (scope.value, format_html('<b>{}</b> <span class="muted">{}</span>', scope.label, _EXPLAINED[scope]))
    for scope in TokenScope
]
_LENGTH_HELP = "At least 10 characters. A few words make a good one."


class SignInForm(AuthenticationForm):
    """User name and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "User name"


class NameForm(forms.Form):
    """A display name; without one the user name is used."""

    name = forms.CharField(
        label="Display name",
        help_text="Empty: your user name.",
        max_length=names.NAME_CHARS,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def clean_name(self) -> str:
        return names.clean_name(self.cleaned_data["name"])


class JoinForm(UserCreationForm):  # type: ignore[type-arg]
    """A new account for an invited person."""

    name = forms.CharField(
        help_text="Display name. Leave it empty to be called by your user name.",
        max_length=names.NAME_CHARS,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order = ("username", "name")

    class Meta(UserCreationForm.Meta):
        model = User
        fields = ("username",)
        labels = {"username": "User name"}
        help_texts = {"username": "What you sign in with, and what others mention you by."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _describe_passwords(self, "password", "Password")

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        names.require_free_name(username)
        return username

    def clean_name(self) -> str:
        self.instance.first_name = names.clean_name(self.cleaned_data["name"])
        return self.instance.first_name


class FirstPasswordForm(SetPasswordForm):  # type: ignore[type-arg]
    """A password of a user who has none, or who came by a one-time link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _describe_passwords(self, "new_password", "New password")


class NewPasswordForm(PasswordChangeForm, FirstPasswordForm):
    """Another password, by the current one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        current = self.fields["old_password"]
        current.label = "Current password"
        current.widget.attrs.pop("autofocus", None)


def _describe_passwords(form: forms.BaseForm, name: str, label: str) -> None:
    first, second = form.fields[f"{name}1"], form.fields[f"{name}2"]
    first.label, first.help_text = label, _LENGTH_HELP
    second.label, second.help_text = f"{label} again", ""


class InviteForm(forms.Form):
    """A new invitation."""

    note = forms.CharField(
        label="For whom",
        help_text="e-mail or note, optional",
        max_length=NOTE_CHARS,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.TypedChoiceField(choices=ASSIGNABLE, coerce=lambda value: Role(int(value)), initial=Role.RESEARCHER)

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
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "nightly report"}),
        error_messages={
            "required": "Give it a name, such as the script that will use it.",
            "max_length": "This name has %(show_value)d characters; at most %(limit_value)d are taken.",
        },
    )
    scope = forms.TypedChoiceField(
        choices=_SCOPES,
        coerce=lambda value: TokenScope(int(value)),
        initial=TokenScope.READ,
        widget=forms.RadioSelect,
    )
    days = forms.IntegerField(
        label="Expires in (days)",
        min_value=1,
        max_value=MAX_DAYS,
        initial=DAYS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), f"Give a number of days from 1 to {MAX_DAYS}."
        ),
    )
