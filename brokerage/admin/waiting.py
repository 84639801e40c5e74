"""Admin of the tasks that wait for a place: what for."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import GridRevision, TaskWait, WaitGroup


@admin.register(WaitGroup)
class WaitGroupAdmin(ReadOnlyAdmin):
    """Groups of tasks that ask for the same, those first that were judged last."""

    list_display = ("id", "policy", "criteria", "judged_at", "grid_revision", "config_revision")
    list_filter = ("policy",)
    ordering = ("-judged_at",)
    exclude = ("own",)
    search_fields = ("=key",)
    search_help_text = "The whole key."


@admin.register(TaskWait)
class TaskWaitAdmin(ReadOnlyAdmin):
    """Tasks that found no place; a row means nothing any more once the task waits until another time."""

    list_display = ("task_id", "group", "until")
    list_select_related = ("group",)
    ordering = ("-until",)
    number_fields = ("task_id", "group_id")
    search_help_text = "Number of a task or of a group."


@admin.register(GridRevision)
class GridRevisionAdmin(ReadOnlyAdmin):
    """How often the grid was changed."""

    list_display = ("id", "number")
