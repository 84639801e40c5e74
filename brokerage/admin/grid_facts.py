"""What is measured, declared and published of the grid, to edit where a document or feed does not say it.

Values obey the rules of the grid document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm

from brokerage.admin.grid_edits import EditsGrid
from brokerage.models import ComputingQueue, DeclaredSlots, Link, Measured, Software
from brokerage.rules.grid.attributes import BadGrid, Table, in_a_line
from brokerage.rules.grid.measurements import ALL, LINK, MEASURED, SLOT, software_problems


class FactForm(ModelForm):
    """A form whose numbers keep the ranges of the grid document."""

    table: Table = {}

    def clean(self) -> dict[str, Any] | None:
        """Each value by its table; throughput is a number from 0 on."""
        data = super().clean() or {}
        for name, value in list(data.items()):
            if name.startswith("mbps_") and value is not None and value < 0:
                self.add_error(name, forms.ValidationError("expected a number from 0 on", code="range"))
            elif name in self.table and isinstance(value, int | float):
                try:
                    self.table[name].read(value)
                except BadGrid as bad:
                    self.add_error(name, forms.ValidationError(in_a_line(bad.problems[0]), code=bad.problems[0].rule))
        return data


class LinkForm(FactForm):
    table = LINK


class SlotsForm(FactForm):
    table = SLOT


class MeasuredForm(FactForm):
    table = MEASURED


class SoftwareForm(ModelForm):
    def clean_queue(self) -> str:
        """A queue that is there, or ALL."""
        name = str(self.cleaned_data["queue"])
        if name != ALL and not ComputingQueue.objects.filter(name=name).exists():
            raise forms.ValidationError(f"there is no queue {name}; {ALL} is the dictionary of all tags", code="reference")
        return name

    def clean_document(self) -> Any:
        """What the broker reads has its type."""
        document = self.cleaned_data["document"]
        if not isinstance(document, Mapping):
            raise forms.ValidationError("An object of cmtconfigs, containers, cvmfs, tags, architectures.", code="type")
        if faults := [forms.ValidationError(in_a_line(p), code=p.rule) for p in software_problems(document)]:
            raise forms.ValidationError(faults)
        return document


@admin.register(Link)
class LinkAdmin(EditsGrid):
    form = LinkForm
    list_display = (
        *("source", "destination", "activity", "files_queued", "mbps_1h", "mbps_1d", "mbps_1w", "closeness", "measured_at"),
    )
    list_filter = ("activity",)
    list_select_related = ("source", "destination")
    search_fields = ("source__name", "destination__name")
    autocomplete_fields = ("source", "destination")
    ordering = ("source", "destination", "activity")
    show_full_result_count = False


@admin.register(Software)
class SoftwareAdmin(EditsGrid):
    form = SoftwareForm
    list_display = ("queue",)
    search_fields = ("queue",)
    ordering = ("queue",)


@admin.register(DeclaredSlots)
class DeclaredSlotsAdmin(EditsGrid):
    form = SlotsForm
    list_display = ("queue", "share", "resource_type", "n", "expires")
    list_select_related = ("queue",)
    search_fields = ("queue__name", "share")
    autocomplete_fields = ("queue",)
    ordering = ("queue__name", "share", "resource_type")


@admin.register(Measured)
class MeasuredAdmin(EditsGrid):
    form = MeasuredForm
    list_display = ("queue", "disk_io_per_core", "starts_per_hour")
    list_select_related = ("queue",)
    search_fields = ("queue__name",)
    autocomplete_fields = ("queue",)
    ordering = ("queue__name",)
