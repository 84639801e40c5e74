"""Admin of counts of jobs over time: how far they are, and the errors that were met."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminfields import NamedValues
from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import ErrorFingerprint, ErrorTask, TallyBucket, TallyGroup, TallyLevel, TallyMark, TaskLevel


@admin.register(TallyMark)
class TallyMarkAdmin(ReadOnlyAdmin):
    """How far the history of jobs is counted, and by how much the counts were ever off."""

    list_display = ("counted_at", "compared_at", "off", "moved", "off_in_all", "off_at", "off_said")
    ordering = ("id",)
    search_fields = ("=off_said",)
    search_help_text = "Where the counts were off."


@admin.register(ErrorFingerprint)
class ErrorFingerprintAdmin(ReadOnlyAdmin):
    """Errors that differ in numbers and names only, the latest first."""

    list_display = ("id", "first_seen", "component", "code", "exit_code", "message", "sample_job_id")
    list_filter = ("component",)
    ordering = ("-first_seen",)
    search_fields = ("=code",)
    search_help_text = "Error code."


@admin.register(ErrorTask)
class ErrorTaskAdmin(ReadOnlyAdmin):
    """Tasks of which jobs ended with an error of late."""

    list_display = ("id", "task_id", "group_id", "first_at", "last_at")
    ordering = ("-id",)
    search_fields = ("=task_id",)
    search_help_text = "Number of a task."


@admin.register(TallyGroup)
class TallyGroupAdmin(ReadOnlyAdmin):
    """Jobs that are counted together."""

    list_display = ("id", "family", "vo", "queue", "share", "kind", "user_name", "fingerprint")
    list_filter = ("family", ("vo", NamedValues))
    ordering = ("id",)
    search_fields = ("=queue", "=share", "=user_name")
    search_help_text = "Whole name of a queue, share or user."


@admin.register(TallyLevel)
class TallyLevelAdmin(ReadOnlyAdmin):
    """How many jobs of a group are in a state, by what is counted."""

    list_display = ("id", "group", "what", "n")
    list_filter = ("what",)
    ordering = ("id",)
    search_fields = ("=what",)
    search_help_text = "State."


@admin.register(TaskLevel)
class TaskLevelAdmin(ReadOnlyAdmin):
    """How many tasks of a VO are in a state, as they were last counted."""

    list_display = ("id", "vo", "state", "n")
    list_filter = (("vo", NamedValues), "state")
    ordering = ("id",)
    search_fields = ("=state",)
    search_help_text = "State."


@admin.register(TallyBucket)
class TallyBucketAdmin(ReadOnlyAdmin):
    """What happened to jobs of a group in some time."""

    list_display = ("id", "at", "step_s", "group_id", "what", "n")
    list_filter = ("step_s",)
    ordering = ("-id",)
    search_fields = ("=what",)
    search_help_text = "What jobs did, or a state."
