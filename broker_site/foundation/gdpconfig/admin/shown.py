"""What the admin pages of overrides and of changes share: how texts are cut and how something is confirmed with its reason."""

from __future__ import annotations

from datetime import datetime

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from broker_site.foundation.gdpconfig.forms import ReasonForm
from broker_site.foundation.gdpconfig.keys import APP
from broker_site.foundation.gdpconfig.models import Change, Override

SHOWN = 60
NO_OVERRIDE = "no override"


def author(request: HttpRequest) -> str:
    """Who the history names."""
    return request.user.get_username()


def at(time: datetime) -> str:
    """A time as short as lists need it, UTC."""
    return f"{time:%Y-%m-%d %H:%M}"


def place(row: Override | Change) -> str:
    """The key of a row, as the forms of keys name it."""
    return f"{row.component}.{row.name}" if row.app == APP else f"{row.app}:{row.component}.{row.name}"


def cut(text: str | None) -> str:
    """A value or reason for a list; a dash where there is none."""
    if text is None:
        return "-"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def confirm(
    page: admin.ModelAdmin, request: HttpRequest, form: ReasonForm, title: str, verb: str, rows: list[tuple[str, str, str]]
) -> HttpResponse:
    """The page that shows what would change (rows of what, now, then) and asks for the reason."""
    context = {
        **page.admin_site.each_context(request),
        "title": title,
        "opts": page.opts,
        "form": form,
        "verb": verb,
        "rows": rows,
    }
    return TemplateResponse(request, "gdpconfig/confirm.html", context)
