"""Django's admin: people and their roles; rows that the program writes are for looking at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User

from experiments.models import Backbone, DataSet, Job, Label, Layer, Member, Model, Run, ToolSet


class MemberInline(admin.StackedInline):  # type: ignore[type-arg]
    model = Member


class PeopleAdmin(UserAdmin):  # type: ignore[type-arg]
    inlines = [MemberInline]


class LookOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Events are append-only and the rest follows from them, so nothing is changed by hand."""

    def has_add_permission(self, *_: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any) -> bool:
        return False


@admin.register(Run)
class RunAdmin(LookOnly):
    list_display = ["pk", "question", "system", "status", "owner", "created"]
    list_filter = ["status", "task", "model"]
    search_fields = ["question"]


admin.site.unregister(User)
admin.site.register(User, PeopleAdmin)
admin.site.register([Model, Layer, DataSet, Backbone, ToolSet, Job, Label], LookOnly)
