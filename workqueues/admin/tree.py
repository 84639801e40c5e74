"""The tree of brokers and its elements, to read. Children are let in, drained and revoked on the page of the tree."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin, VoFilter, row_link
from workqueues.models import (
    ChildBroker,
    Element,
    ElementChange,
    ElementGroup,
    ElementInbox,
    ElementInput,
    Installation,
    ParentBroker,
    PulledElement,
)

_task = row_link("task", "workqueues_task", "task_id")
_element = row_link("element", "workqueues_element", "element_id")


@admin.register(ChildBroker)
class ChildBrokerAdmin(ReadOnlyAdmin):
    list_display = ("name", "vo", "team", "version", "last_contact", "last_pull_at", "drain_since", "drain_until", "last_error")
    list_filter = (("drain_since", admin.EmptyFieldListFilter),)
    search_fields = ("=name",)
    search_help_text = "The whole name."


@admin.register(ParentBroker)
class ParentBrokerAdmin(ReadOnlyAdmin):
    list_display = ("url", "version", "last_contact", "last_error", "last_error_at")
    search_fields = ("=url",)


@admin.register(Installation)
class InstallationAdmin(ReadOnlyAdmin):
    list_display = ("instance", "incarnation", "mark", "changed_at", "why")
    number_fields = ("id",)
    search_fields = ("=why",)


@admin.register(ElementGroup)
class ElementGroupAdmin(ReadOnlyAdmin):
    list_display = ("id", "vo", "team", "sites", "used_at")
    list_filter = (VoFilter,)
    search_fields = ("=digest",)
    search_help_text = "Number or digest of the group."
    number_fields = ("id",)


@admin.register(Element)
class ElementAdmin(ReadOnlyAdmin):
    list_display = (
        "id", "status", "task_link", "priority", "jobs", "n_files", "n_files_finished", "n_files_failed", "child", "site",
    )  # fmt: skip
    list_filter = ("status",)
    list_select_related = ("child",)
    search_help_text = "Number of element or task."
    number_fields = ("id", "task_id")
    related = (
        ("history", "workqueues_elementchange", "element_id"),
        ("files", "workqueues_elementinput", "element_id"),
    )
    task_link = _task


@admin.register(ElementInput)
class ElementInputAdmin(ReadOnlyAdmin):
    """Files of elements, try by try."""

    list_display = ("id", "element_link", "try_nr", "file_id", "status")
    search_help_text = "Number of element or file."
    number_fields = ("element_id", "file_id")
    element_link = _element


@admin.register(ElementInbox)
class ElementInboxAdmin(ReadOnlyAdmin):
    """How the elements of each task stand together."""

    list_display = ("task_link", "status", "status_since", "counts", "percent_complete", "percent_success")
    list_display_links = ("status",)
    search_help_text = "Number of the task."
    number_fields = ("task_id",)
    task_link = _task


@admin.register(ElementChange)
class ElementChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "element_link", "task_id", "epoch", "old", "new", "who", "why")
    search_help_text = "Number of the element."
    number_fields = ("element_id",)
    element_link = _element


@admin.register(PulledElement)
class PulledElementAdmin(ReadOnlyAdmin):
    """What this broker pulled from its parent, and the tasks made of it."""

    list_display = (
        "element_id", "try_nr", "status", "task_link", "site", "vo", "pulled_at", "lease_until", "told_at", "refused",
        "given_back",
    )  # fmt: skip
    list_filter = ("status", VoFilter)
    search_help_text = "Number of the element at the parent, or of the task here."
    number_fields = ("element_id", "task_id")
    task_link = _task
