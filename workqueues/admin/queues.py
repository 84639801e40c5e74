"""Work queues, locks of agents and keys of submissions, to read. Editing work queues comes with their rules (row J1)."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from broker_site.access.readonlyadmin import ReadOnlyAdmin
from workqueues.admin.shown import row
from workqueues.models import ProcessLock, Submission, WorkQueue


@admin.register(WorkQueue)
class WorkQueueAdmin(ReadOnlyAdmin):
    """Partitions of the workload."""

    list_display = ("queue_order", "queue_name", "queue_type", "vo", "queue_share", "is_partition", "criteria", "status")
    list_display_links = ("queue_name",)
    ordering = ("queue_order",)
    search_fields = ("queue_name",)


@admin.register(ProcessLock)
class ProcessLockAdmin(ReadOnlyAdmin):
    """Locks of agent runs on parts of the workload."""

    list_display = ("component", "vo", "prod_source_label", "work_queue_id", "resource_type", "locked_by", "locked_time")
    search_fields = ("=locked_by", "=component")


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    """Idempotency keys and the tasks they gave."""

    list_display = ("id", "user_name", "key", "task", "at")
    search_fields = ("=user_name", "=key")
    search_help_text = "User, key, or number of the submission."
    number_fields = ("id",)

    @admin.display(description="task", ordering="task_id")
    def task(self, submission: Submission) -> SafeString | str:
        """The task."""
        return row("workqueues_task", submission.task_id)
