"""What several admin pages show in the same way: JSON, lists that belong to a row, VOs to choose from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.access.models import Role

Link = tuple[str, str, dict[str, Any]]
"""Words, model as app_model, query of its list."""


def cut(text: str, most: int = 60) -> str:
    """The beginning of a long text."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def pretty(value: Any) -> SafeString:
    """JSON as indented text."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False))


def lists(links: Sequence[Link]) -> SafeString:
    """Links to the lists of rows that belong to one."""
    return format_html_join(
        " · ", '<a href="{}?{}">{}</a>', ((reverse(f"admin:{m}_changelist"), urlencode(q), words) for words, m, q in links)
    )


def row(model: str, pk: Any, words: Any = None) -> SafeString | str:
    """A link to a row; a dash where there is none."""
    if pk in (None, 0, ""):
        return "-"
    return format_html('<a href="{}">{}</a>', reverse(f"admin:{model}_change", args=[pk]), pk if words is None else words)


class VoFilter(admin.SimpleListFilter):
    """The VOs in which somebody has a role: looking for those of a large table would read all of it."""

    title = "VO"
    parameter_name = "vo"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        """The VOs."""
        return [(vo, vo) for vo in Role.objects.order_by("vo").values_list("vo", flat=True).distinct()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of the chosen one."""
        return queryset.filter(vo=self.value()) if self.value() else queryset
