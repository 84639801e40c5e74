"""What the admin pages of overrides and of changes share: how texts are cut and how something is confirmed with its reason."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from broker_site.gdpconfig.forms import ReasonForm

SHOWN = 80
NO_OVERRIDE = "no override"


def author(request: HttpRequest) -> str:
    """Who the history names."""
    return request.user.get_username()


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
