"""Histories of tasks, datasets and files, to read."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from broker_site.foundation.adminpages import ReadOnlyAdmin, row
from workqueues.models import DatasetChange, FileChange, TaskChange


@admin.register(TaskChange)
class TaskChangeAdmin(ReadOnlyAdmin):
    """Every move of every task."""

    list_display = ("id", "at", "task", "old", "new", "epoch", "who", "why")
    number_fields = ("task_id",)
    search_fields = ("=who",)
    search_help_text = "Number of the task, or who."

    @admin.display(description="task", ordering="task_id")
    def task(self, change: TaskChange) -> SafeString | str:
        """The task."""
        return row("workqueues_task", change.task_id)


@admin.register(DatasetChange)
class DatasetChangeAdmin(ReadOnlyAdmin):
    """Every move of every dataset."""

    list_display = ("id", "at", "dataset", "old", "new", "epoch", "who", "why")
    number_fields = ("dataset_id", "task_id")
    search_fields = ("=who",)
    search_help_text = "Number of dataset or task, or who."

    @admin.display(description="dataset", ordering="dataset_id")
    def dataset(self, change: DatasetChange) -> SafeString | str:
        """The dataset."""
        return row("workqueues_dataset", change.dataset_id)


@admin.register(FileChange)
class FileChangeAdmin(ReadOnlyAdmin):
    """Every move of a file that no job caused."""

    list_display = ("id", "at", "file", "old", "new", "who", "why")
    number_fields = ("file_id", "task_id")
    search_fields = ("=who",)
    search_help_text = "Number of file or task, or who."

    @admin.display(description="file", ordering="file_id")
    def file(self, change: FileChange) -> SafeString | str:
        """The file."""
        return row("workqueues_file", change.file_id)
