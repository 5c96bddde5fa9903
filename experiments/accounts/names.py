"""Clean names of people, and find free user names."""

from __future__ import annotations

import unicodedata

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

NAME_CHARS = 150
USERNAME_CHARS = 60


def clean_name(name: str) -> str:
    """Return a person's name on one line, without invisible characters or ones that reverse the text."""
    joined = " ".join(unicodedata.normalize("NFC", name).split())
    return "".join(each for each in joined if each.isprintable())[:NAME_CHARS].strip()


def _is_taken(username: str) -> bool:
    """True if the name is taken, in any spelling."""
    return User.objects.filter(username__iexact=User.normalize_username(username)).exists()


def find_free_name(wanted: str) -> str:
    """Return the wanted user name if free, else with the first number that makes it free."""
    wanted = str(User.normalize_username(wanted))[:USERNAME_CHARS]
    if not _is_taken(wanted):
        return wanted
    pattern = User.objects.filter(username__istartswith=wanted).values_list("username", flat=True)
    used = {username.casefold() for username in pattern}
    number = next(number for number in range(2, len(used) + 3) if f"{wanted}{number}".casefold() not in used)
    return f"{wanted}{number}"


def require_free_name(username: str) -> None:
    """Raise ValidationError for a user name that is too long, or taken."""
    if len(username) > USERNAME_CHARS:
        raise ValidationError(f"At most {USERNAME_CHARS} characters, please.", code="long")
    if _is_taken(username):
        raise ValidationError("This user name is taken. Choose another.", code="taken")
