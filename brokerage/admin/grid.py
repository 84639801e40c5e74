"""The grid, to edit: sites, storage endpoints, computing queues. The next import of a document or feed has the last word.

What shall stay is an override (`grid_overrides`): such attributes are marked here and changed there.
"""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from broker_site.foundation.adminfields import NamedFields, NamedRows
from brokerage.admin.grid_edits import EditsGrid
from brokerage.models import ComputingQueue, LocalOverride, QueueStorage, Site, StorageEndpoint
from brokerage.rules.grid.attributes import (
    FURTHER,
    QUEUE,
    ROLE,
    SITE,
    STORAGE,
    BadGrid,
    Table,
    in_a_line,
    name_fault,
)


class GridForm(ModelForm):
    """A form that holds each attribute to the rule that grid documents obey."""

    table: Table
    further: Table = {}
    kind: str

    def clean_attributes(self) -> Any:
        """An object in which the attributes that we know have their types, and overridden ones stay."""
        attributes = self.cleaned_data["attributes"] or {}
        if not isinstance(attributes, dict):
            raise forms.ValidationError("An object of attributes.", code="type")
        faults = []
        for name, attribute in self.further.items():
            try:
                attribute.read(attributes.get(name))
            except BadGrid as bad:
                faults += [forms.ValidationError(f"{name}: {in_a_line(p)}", code=p.rule) for p in bad.problems]
        kept = [name for name in overridden(self.kind, str(self.instance.name or "")) if name in self.further]
        faults += [
            forms.ValidationError(f"{name}: is overridden; change the override", code="overridden")
            for name in kept
            if attributes.get(name) != self.instance.attributes.get(name)
        ]
        if faults:
            raise forms.ValidationError(faults)
        return attributes

    def clean_name(self) -> str:
        """A name without what stands between a queue and its resource type."""
        name = str(self.cleaned_data["name"])
        if fault := name_fault(name):
            raise forms.ValidationError(fault, code="name")
        return name

    def clean(self) -> dict[str, Any] | None:
        """Each value by its table."""
        data = super().clean()
        for name, attribute in self.table.items():
            if name not in self.cleaned_data or name in self.errors:
                continue
            try:
                attribute.read(self.cleaned_data[name])
            except BadGrid as bad:
                for p in bad.problems:
                    self.add_error(name, forms.ValidationError(in_a_line(p), code=p.rule))
        return data


class SiteForm(GridForm):
    table = SITE
    kind = "site"

    class Meta:
        model = Site
        fields = ("name", *SITE, "attributes")


class StorageForm(GridForm):
    table = {name: p for name, p in STORAGE.items() if name != "site"}
    kind = "storage"

    class Meta:
        model = StorageEndpoint
        fields = ("name", *STORAGE, "attributes")

    def clean_path(self) -> str:
        """An absolute directory, or none."""
        path = str(self.cleaned_data["path"])
        if path and (not path.startswith("/") or ".." in path.split("/")):
            raise forms.ValidationError("An absolute directory without '..', or nothing.", code="format")
        return path


class QueueForm(GridForm):
    table = QUEUE
    further = FURTHER
    kind = "queue"

    class Meta:
        model = ComputingQueue
        fields = ("name", "site", *QUEUE, "attributes")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, attribute in QUEUE.items():
            if attribute.choices and name in self.fields:
                self.fields[name] = forms.ChoiceField(choices=[(c, c) for c in attribute.choices], help_text=attribute.doc)


class LinkForm(ModelForm):
    class Meta:
        model = QueueStorage
        fields = ("queue", "storage", "access", "position")

    def clean_access(self) -> str:
        """A role that is used."""
        access = str(self.cleaned_data["access"])
        if not re.fullmatch(ROLE, access):
            raise forms.ValidationError("read_lan or write_lan, with _analysis for that scope.", code="choice")
        return access

    def clean_position(self) -> int:
        position = int(self.cleaned_data["position"])
        if position < 1:
            raise forms.ValidationError("1 is the default, then 2, 3, ...", code="range")
        return position


def overridden(kind: str, name: str) -> list[str]:
    """The attributes of a row that operators overrode."""
    return list(LocalOverride.objects.filter(kind=kind, name=name).values_list("attribute", flat=True))


FROM = ("overrides", "source", "good_at", "fault", "fault_since", "gone_at")
"""What is shown of where a row comes from."""


ROOT = ("mark", "root_state", "root_fault", "root_since", "root_gb")
"""What is known of the root of a storage endpoint."""


class GridAdmin(EditsGrid):
    """A table of the grid: the name of a row is given once, overridden attributes are changed as overrides."""

    list_per_page = 100
    show_full_result_count = False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The name first, whether it may be typed or not; where the row comes from last."""
        edited = self.form.Meta.fields  # type: ignore[attr-defined]
        return [*edited, *(FROM if obj is not None else ())]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The name, once the row is there: credentials, jobs and other rows refer to it. And what is overridden."""
        if obj is None:
            return ()
        kind = self.form.kind  # type: ignore[attr-defined]
        return ("name", *(name for name in overridden(kind, obj.name) if name in self.form.Meta.fields), *FROM)  # type: ignore[attr-defined]

    @admin.display(description="overrides")
    def overrides(self, obj: Any) -> str:
        """Each override of the row with what it hides, who set it and why."""
        rows = LocalOverride.objects.filter(kind=self.form.kind, name=obj.name)  # type: ignore[attr-defined]
        lines = [
            (
                f"/admin/brokerage/localoverride/{o.pk}/change/",
                f"{o.attribute} = {o.value}",
                f"the document says {o.beneath!r}; {o.who or 'somebody'}, {o.since:%Y-%m-%d}: {o.reason}"
                + (f"; until {o.until:%Y-%m-%d %H:%M}" if o.until else ""),
            )
            for o in rows
        ]
        items = format_html_join("", '<li><a href="{}">{}</a> ({})</li>', lines)
        return format_html("<ul>{}</ul>", items) if lines else "none"


@admin.register(Site)
class SiteAdmin(GridAdmin):
    form = SiteForm
    list_display = ("name", "state", "nucleus")
    list_filter = ("state", "nucleus")
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(StorageEndpoint)
class StorageEndpointAdmin(GridAdmin):
    form = StorageForm
    list_display = ("name", "site", "type", "state", "root_state", "is_tape", "free_gb", "expired_gb", "path")
    list_filter = ("state", "root_state", "type", "is_tape")
    list_select_related = ("site",)
    search_fields = ("name", "site__name")
    ordering = ("name",)
    autocomplete_fields = ("site",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """How the root is, besides; it is marked where it lies: `manage.py storage mark`."""
        return [*super().get_fields(request, obj), *(ROOT if obj is not None else ())]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *ROOT)


class LinkInline(NamedFields, admin.TabularInline):
    """The storage endpoints of a queue on its page."""

    model = QueueStorage
    form = LinkForm
    formset = NamedRows
    extra = 0
    autocomplete_fields = ("storage",)


@admin.register(ComputingQueue)
class ComputingQueueAdmin(GridAdmin):
    form = QueueForm
    inlines = (LinkInline,)
    list_display = ("name", "site", "status", "type", "corecount", "corepower", "maxrss", "maxtime", "maxwdir", "last_start")
    list_filter = ("status", "type")
    list_select_related = ("site",)
    search_fields = ("name", "site__name")
    ordering = ("name",)
    autocomplete_fields = ("site",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.modified_at = Now()
        if "status" in form.changed_data:
            obj.status_since = Now()
        super().save_model(request, obj, form, change)


@admin.register(QueueStorage)
class QueueStorageAdmin(EditsGrid):
    form = LinkForm
    list_display = ("queue", "access", "position", "storage")
    list_filter = ("access",)
    list_select_related = ("queue", "storage")
    search_fields = ("queue__name", "storage__name")
    autocomplete_fields = ("queue", "storage")
    show_full_result_count = False
