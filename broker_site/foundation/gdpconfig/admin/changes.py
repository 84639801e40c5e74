"""The history of the configuration: read-only, with the page that reverts; what this page and that of overrides share."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from broker_site.foundation.adminfields import NamedValues
from broker_site.foundation.adminpages import ReadingAdmin, cut
from broker_site.foundation.gdpconfig.changesets import CONFIG, in_words
from broker_site.foundation.gdpconfig.forms import ReasonForm
from broker_site.foundation.gdpconfig.keys import APP, BadConfig
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Override
from broker_site.foundation.gdpconfig.store import revert

NO_OVERRIDE = "no override"


@admin.register(Change)
class ChangeAdmin(ReadingAdmin):
    """The history, newest first: nobody edits it; a change can be reverted, which is a change of its own."""

    list_display = ("revision", "key_name", "change", "made_by", "why_shown")
    list_filter = ("component", "change_set__who", "change_set__source", ("vo", NamedValues))
    search_fields = ("name", "change_set__who", "change_set__why", "change_set__ticket", "before", "after")
    list_select_related = ("change_set",)
    show_full_result_count = False
    actions = ("revert_selected",)
    change_form_template = "gdpconfig/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        """The page that reverts, before the stock ones."""
        view = self.admin_site.admin_view(self.revert_view)
        return [path("revert/", view, name="gdpconfig_change_revert"), *super().get_urls()]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Links to the history of one key filter by its name."""
        return lookup == "name" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def has_revert_permission(self, request: HttpRequest) -> bool:
        """Whether the user may change overrides at all."""
        return all(request.user.has_perm(f"gdpconfig.{right}_override") for right in ("add", "change", "delete"))

    @admin.display(description="revision", ordering="change_set_id")
    def revision(self, obj: Change) -> int:
        return obj.change_set_id

    @admin.display(description="key", ordering="name")
    def key_name(self, obj: Change) -> str:
        return f"{place(obj)} for {obj.vo}" if obj.vo else place(obj)

    @admin.display(description="by", ordering="change_set__at")
    def made_by(self, obj: Change) -> str:
        return f"{obj.who}, {at(obj.at)}"

    @admin.display(description="change")
    def change(self, obj: Change) -> str:
        if obj.kind != CONFIG:
            return cut(in_words(obj.kind, obj.before, obj.after))
        before, after = ("-" if text is None else cut(text) for text in (obj.before, obj.after))
        return f"{before} \N{RIGHTWARDS ARROW} {after}"

    @admin.display(description="reason")
    def why_shown(self, obj: Change) -> str:
        made = obj.change_set
        return f"reverts {made.reverts_id}: {cut(made.why)}" if made.reverts_id else cut(made.why)

    @admin.action(description="Revert the sets of the selected changes", permissions=["revert"])
    def revert_selected(self, request: HttpRequest, queryset: QuerySet[Change]) -> HttpResponse:
        """To the page that shows what reverting would do and asks the reason."""
        numbers = queryset.order_by("-change_set_id").values_list("change_set_id", flat=True).distinct()
        query = urlencode({"revision": list(numbers)}, doseq=True)
        return redirect(f"{reverse('admin:gdpconfig_change_revert')}?{query}")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One change, with the way to revert it."""
        change = self.get_object(request, object_id)
        context = {
            **(extra_context or {}),
            "may_revert": change is not None and self.has_revert_permission(request),
            "revision": change.change_set_id if change else 0,
        }
        return super().change_view(request, object_id, form_url, context)

    def revert_view(self, request: HttpRequest) -> HttpResponse:
        """Bring back what the sets of `?revision=` found, newest first, all or none, with a reason."""
        if not self.has_revert_permission(request):
            raise PermissionDenied
        numbers = [int(text) for text in request.GET.getlist("revision") if text.isascii() and text.isdigit() and len(text) < 19]
        sets = list(ChangeSet.objects.filter(revision__in=numbers).order_by("-revision"))
        if not sets:
            self.message_user(request, "No change was chosen.", messages.WARNING)
            return redirect("admin:gdpconfig_change_changelist")
        form = ReasonForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                with transaction.atomic():
                    author, why = request.user.get_username(), form.cleaned_data["why"]
                    reverts = [revert(chosen, who=author, why=why, source="admin") for chosen in sets]
            except BadConfig as bad:
                form.add_error(None, str(bad))
            else:
                done = len([made for made in reverts if made is not None])
                summary = f"{done} of {len(sets)} change sets reverted." + (
                    " Where nothing differed, nothing was written." * (done < len(sets))
                )
                self.message_user(request, summary, messages.SUCCESS)
                return redirect("admin:gdpconfig_change_changelist")
        rows = [
            (f"{change} ({change.vo or 'all VOs'})", _now(change), NO_OVERRIDE if change.before is None else change.before)
            for change in Change.objects.filter(change_set__in=sets).order_by("-change_set_id", "id")
        ]
        return confirm(self, request, form, "Revert changes", "Revert", rows)


def _now(change: Change) -> str:
    override = Override.objects.filter(app=change.app, component=change.component, name=change.name, vo=change.vo).first()
    return override.value if override else NO_OVERRIDE


def at(time: datetime) -> str:
    """A time as short as lists need it, UTC."""
    return f"{time:%Y-%m-%d %H:%M}"


def place(row: Override | Change) -> str:
    """The key of a row, as the forms of keys name it."""
    return f"{row.component}.{row.name}" if row.app == APP else f"{row.app}:{row.component}.{row.name}"


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
