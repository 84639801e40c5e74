"""The admin site: its login is ours, and what changes rights or configuration asks for the password again."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from broker_site.foundation.access.auditing import SAFE_METHODS
from broker_site.foundation.access.logins import PasswordLogin
from broker_site.foundation.access.password_again import FIELD, password_again

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class BrokerAdminSite(AdminSite):
    """Django's. A page of rows that need no password again has `asks_password = False`."""

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Django's page, answered by our view."""
        if request.method == "GET" and self.has_permission(request):
            return redirect(reverse("admin:index", current_app=self.name))
        context = {
            **self.each_context(request),
            "title": "Log in",
            "subtitle": None,
            "app_path": request.get_full_path(),
            "username": request.user.get_username(),
            **(extra_context or {}),
        }
        if REDIRECT_FIELD_NAME not in request.GET and REDIRECT_FIELD_NAME not in request.POST:
            context[REDIRECT_FIELD_NAME] = reverse("admin:index", current_app=self.name)
        request.current_app = self.name
        view = PasswordLogin.as_view(
            template_name="admin/login.html", authentication_form=AdminAuthenticationForm, extra_context=context
        )
        answer: HttpResponse = view(request)  # type: ignore[assignment]
        return answer

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Of each application what the visitor may change first, then what can only be looked at."""
        apps = super().get_app_list(request, app_label)
        for app in apps:
            app["models"].sort(key=lambda model: not (model["perms"]["add"] or model["perms"]["change"]))
        return apps

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Behind Django's guard, ours."""

        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method not in SAFE_METHODS and _asks_password(view):
                refused = self._ask_password(request)
                if refused is not None:
                    return refused
            return view(request, *args, **kwargs)

        return super().admin_view(update_wrapper(asking, view), cacheable)  # type: ignore[return-value]

    def _ask_password(self, request: HttpRequest) -> HttpResponseBase | None:
        """The page that asks, with all that was sent, so that nothing has to be typed twice; None when it need not ask."""
        asked = password_again(request)
        if asked.fresh:
            return None
        if asked.refused is not None:
            return asked.refused
        sent = [(name, value) for name, values in request.POST.lists() for value in values]
        context = {
            **self.each_context(request),
            "title": "Your password, please",
            "field": FIELD,
            "fault": asked.fault,
            "sent": [(name, value) for name, value in sent if name not in (FIELD, "csrfmiddlewaretoken")],
        }
        request.current_app = self.name
        return TemplateResponse(request, "admin/password_again.html", context, status=403)


def _asks_password(view: Callable[..., HttpResponseBase]) -> bool:
    owner = getattr(view, "__self__", None)
    if isinstance(owner, AdminSite):
        return getattr(view, "__name__", "") == "password_change"  # else the old password could be guessed there
    return bool(getattr(owner, "asks_password", True))
