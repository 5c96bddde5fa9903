"""Django's admin, read-only: the application writes all rows, and users are managed under Settings, People."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from experiments.core import access
from experiments.models import Backbone, Dataset, Job, Label, Layer, Member, Role, Run, Toolset, VisionModelRow


class Site(admin.AdminSite):
    """For admins of the team who are also staff. It uses the site's own sign-in page and throttling."""

    site_header = site_title = "Rows of MAIA Web"

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and access.role_of(request.user) == Role.ADMIN

    @method_decorator(login_not_required)
    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # noqa: ARG002
        """Redirect to the sign-in page, or refuse a user who is not allowed."""
        if not request.user.is_authenticated:
            return redirect_to_login(request.GET.get("next", ""))
        access.require(request, Role.ADMIN)
        if not self.has_permission(request):
            raise PermissionDenied("This is for who set the installation up.")
        return redirect("admin:index")

    def password_change(self, *_: Any, **__: Any) -> HttpResponse:  # type: ignore[override]
        return redirect("settings-you")


class LookOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows cannot be changed by hand: events are append-only, and other rows are derived from them."""

    def has_add_permission(self, *_: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any) -> bool:
        return False


class RunAdmin(LookOnly):
    list_display = ["pk", "question", "system", "status", "owner", "created"]
    list_filter = ["status", "task", "model"]
    search_fields = ["question"]


class PeopleAdmin(LookOnly):
    list_display = ["username", "first_name", "email", "is_active", "last_login"]
    exclude = ["password", "groups", "user_permissions"]
    search_fields = ["username", "first_name", "email"]


site = Site()
site.register(Run, RunAdmin)
site.register(User, PeopleAdmin)
site.register([Member, VisionModelRow, Layer, Dataset, Backbone, Toolset, Job, Label], LookOnly)
