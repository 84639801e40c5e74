"""The keys and their overrides: the list of all keys, the form of one override, its removal."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from broker_site.foundation.adminfields import NamedValues
from broker_site.foundation.adminpages import cut
from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.admin.changes import at, confirm, place
from broker_site.foundation.gdpconfig.forms import OverrideForm, ReasonForm, form_for
from broker_site.foundation.gdpconfig.keys import BadConfig, Key
from broker_site.foundation.gdpconfig.listing import Effective, effective, fault_of
from broker_site.foundation.gdpconfig.models import Override
from broker_site.foundation.gdpconfig.store import remove_override, set_override


@admin.register(Override)
class OverrideAdmin(admin.ModelAdmin):
    """Overrides; "add" begins at the list of all keys with their documentation, defaults and what is set."""

    list_display = ("key_name", "vo_shown", "value_shown", "default_shown", "until_shown", "set_by", "why")
    list_filter = ("component", ("vo", NamedValues))
    search_fields = ("name", "component", "value")
    list_select_related = ("change__change_set",)
    show_full_result_count = False
    actions = None
    change_form_template = "gdpconfig/override_form.html"
    change_list_template = "gdpconfig/override_list.html"

    def get_urls(self) -> list[URLPattern]:
        """The list of keys and the page that removes an override, before the stock ones."""
        return [
            path("keys/", self.admin_site.admin_view(self.keys_view), name="gdpconfig_override_keys"),
            path("<int:pk>/remove/", self.admin_site.admin_view(self.remove_view), name="gdpconfig_override_remove"),
            *super().get_urls(),
        ]

    def has_delete_permission(self, request: HttpRequest, obj: Override | None = None) -> bool:
        """Never by the stock pages, which ask no reason: `remove_view` is the way."""
        return False

    def may_remove(self, request: HttpRequest) -> bool:
        return request.user.has_perm("gdpconfig.delete_override")

    # --- lists ---

    @admin.display(description="key", ordering="name")
    def key_name(self, obj: Override) -> str:
        return place(obj)

    @admin.display(description="VO", ordering="vo")
    def vo_shown(self, obj: Override) -> str:
        return obj.vo or "all"

    @admin.display(description="value")
    def value_shown(self, obj: Override) -> str:
        return cut(obj.value)

    @admin.display(description="default")
    def default_shown(self, obj: Override) -> str:
        key = _key_of(obj)
        return _default(key) if key else "-"

    @admin.display(description="until", ordering="until")
    def until_shown(self, obj: Override) -> str:
        return at(obj.until) if obj.until else "-"

    @admin.display(description="set by", ordering="change__change_set__at")
    def set_by(self, obj: Override) -> str:
        return f"{obj.change.who}, {at(obj.change.at)}"

    @admin.display(description="reason")
    def why(self, obj: Override) -> str:
        """Why it was set; or why it is not used, where the key has changed since."""
        fault = fault_of(obj)
        return f"NOT USED: {fault}" if fault else cut(obj.change.why)

    def keys_view(self, request: HttpRequest) -> HttpResponse:
        """Every declared key with documentation, type, range, default and overrides; `?q=` looks in names and documentation."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        groups: dict[str, list[Effective]] = {}
        for row in effective():
            if row.says(request.GET.get("q", "")):
                groups.setdefault(row.component if row.app == keys.APP else f"{row.app}: {row.component}", []).append(row)
        context = {
            **self.admin_site.each_context(request),
            "title": "Configuration keys",
            "opts": self.opts,
            "groups": groups,
            "q": request.GET.get("q", ""),
            "may_add": self.has_add_permission(request),
            "may_change": self.has_change_permission(request),
        }
        return TemplateResponse(request, "gdpconfig/keys.html", context)

    # --- one override ---

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The form for the key that the address names; without one, the list of keys to choose from."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        try:
            self._key(request, None)
        except BadConfig as bad:
            if request.GET:
                self.message_user(request, str(bad), messages.ERROR)
            return redirect("admin:gdpconfig_override_keys")
        return super().add_view(request, form_url, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form; of an override whose key is gone only the page that removes it."""
        override = self.get_object(request, object_id)
        if override is not None and _key_of(override) is None:
            self.message_user(
                request, f"The key of {override} is no longer declared; the override has no effect.", messages.WARNING
            )
            return redirect("admin:gdpconfig_override_remove", override.pk)
        context = {**(extra_context or {}), "may_remove": self.may_remove(request), "override": override}
        return super().change_view(request, object_id, form_url, context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        override = get_object_or_404(Override, pk=object_id)
        query = urlencode({"component": override.component, "name": override.name})
        return redirect(f"{reverse('admin:gdpconfig_change_changelist')}?{query}")

    def get_form(
        self, request: HttpRequest, obj: Override | None = None, change: bool = False, **kwargs: Any
    ) -> type[OverrideForm]:
        return form_for(self._key(request, obj), obj)

    def get_fieldsets(self, request: HttpRequest, obj: Override | None = None) -> Any:
        key = self._key(request, obj)
        shown = () if obj is None else ("key_name", "vo_shown")
        return [(None, {"description": _described(key), "fields": [*shown, *form_for(key, obj).base_fields]})]

    def get_readonly_fields(self, request: HttpRequest, obj: Override | None = None) -> tuple[str, ...]:
        """Which key and which VO, once the override is there."""
        return () if obj is None else ("key_name", "vo_shown")

    def save_model(self, request: HttpRequest, obj: Override, form: Any, change: bool) -> None:
        """Write through the store; the form has checked everything and holds the lock."""
        cleaned = form.cleaned_data
        set_override(
            obj.component,
            obj.name,
            form.text,
            who=request.user.get_username(),
            why=cleaned["why"],
            vo=obj.vo,
            app=obj.app,
            seen=cleaned["seen"],
            until=cleaned["end"],
            source="admin",
        )
        stored = Override.objects.get(app=obj.app, component=obj.component, name=obj.name, vo=obj.vo)
        obj.pk, obj.change = stored.pk, stored.change

    def remove_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        if not self.may_remove(request):
            raise PermissionDenied
        override = get_object_or_404(Override.objects.select_related("change__change_set"), pk=pk)
        key = _key_of(override)
        form = ReasonForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            who, why = request.user.get_username(), form.cleaned_data["why"]
            try:
                remove_override(
                    override.component, override.name, who=who, why=why, vo=override.vo, app=override.app, source="admin"
                )
            except BadConfig as bad:
                form.add_error(None, str(bad))
            else:
                self.message_user(request, f"The override of {override} was removed.", messages.SUCCESS)
                return redirect("admin:gdpconfig_override_changelist")
        rest = key.write(key.default) if key else "nothing: the key is not declared"
        general = Override.objects.filter(app=override.app, component=override.component, name=override.name, vo="").first()
        if override.vo and general:
            rest = f"{general.value} (the override for all VOs)"
        rows = [(str(override), override.value, rest)]
        return confirm(self, request, form, f"Remove the override of {override}", "Remove", rows)

    def _key(self, request: HttpRequest, obj: Override | None) -> Key:
        """The key of an override, or the one that the address of a new one names. BadConfig where nobody declared it."""
        if obj is not None and obj.name:
            return keys.KEYS.matching(obj.component, obj.name, obj.app)[0]
        query = request.GET
        return keys.KEYS.get(query.get("component", ""), query.get("name", ""), query.get("app", keys.APP))


def _key_of(override: Override) -> Key | None:
    try:
        return keys.KEYS.matching(override.component, override.name, override.app)[0]
    except BadConfig:
        return None


def _default(key: Key) -> str:
    text = cut(key.write(key.default))
    return text if key.default is None else f"{text} {key.unit}".strip()


def _described(key: Key) -> SafeString:
    """The head of the form: documentation, default, form of the value."""
    return format_html(
        "<strong>{}</strong> (app {}, {})<br>{}<br>Default: <code>{}</code>. Value: {}.",
        f"{key.component}.{key.name}",
        key.app,
        key.type,
        key.doc,
        _default(key),
        key.bounds,
    )
