"""Members of the team, and their browsers."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Member, Role


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def member(name: str, role: str) -> User:
    user = User.objects.create_user(name, password="correct horse battery")
    Member.objects.create(user=user, role=Role[role])
    return user
