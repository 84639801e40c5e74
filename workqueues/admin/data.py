"""Datasets, files, event ranges and output templates of tasks, and the histories of tasks and of these, to read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from broker_site.foundation.adminpages import ReadOnlyAdmin, VoFilter, row, row_link
from workqueues.models import (
    Dataset,
    DatasetChange,
    DatasetWriter,
    EventRange,
    File,
    FileChange,
    InputWriter,
    OutputTemplate,
    PlannedOutput,
    TaskChange,
    TaskNote,
)
from workqueues.states import TYPES


class TypeFilter(admin.SimpleListFilter):
    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(t, t) for t in TYPES]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(type=self.value()) if self.value() else queryset


@admin.register(Dataset)
class DatasetAdmin(ReadOnlyAdmin):
    list_display = (
        "id", "dataset_name", "type", "status", "task_link", "n_files", "n_files_used", "n_files_finished", "n_files_failed",
        "n_files_missing",
    )  # fmt: skip
    list_display_links = ("id", "dataset_name")
    list_filter = ("status", TypeFilter, VoFilter)
    search_fields = ("=dataset_name",)
    search_help_text = "Number of dataset or task, or the whole name."
    number_fields = ("id", "task_id")
    related = (
        ("files", "workqueues_file", "dataset_id"),
        ("history", "workqueues_datasetchange", "dataset_id"),
        ("templates", "workqueues_outputtemplate", "dataset_id"),
    )
    task_link = row_link("task", "workqueues_task", "task_id")


@admin.register(File)
class FileAdmin(ReadOnlyAdmin):
    """Files as tasks use and make them."""

    list_display = ("id", "lfn", "type", "status", "held", "attempt_nr", "failed_attempt", "job", "task_link")
    list_display_links = ("id", "lfn")
    list_filter = ("status", TypeFilter)
    search_fields = ("=lfn",)
    search_help_text = "Number of file or task, or the whole name."
    number_fields = ("id", "task_id")
    task_link = row_link("task", "workqueues_task", "task_id")

    @admin.display(description="job")
    def job(self, file: File) -> SafeString | str:
        """The job that makes it, or that used it last."""
        return row("brokerage_job", file.out_job_id or file.job_id)


@admin.register(EventRange)
class EventRangeAdmin(ReadOnlyAdmin):
    list_display = ("id", "status", "job_id", "def_min_event_id", "def_max_event_id", "attempt_nr")
    list_filter = ("status",)
    number_fields = ("id", "job_id")
    search_fields = ("=id",)
    search_help_text = "Number of range or job."


@admin.register(OutputTemplate)
class OutputTemplateAdmin(ReadOnlyAdmin):
    list_display = ("id", "filename_template", "stream_name", "out_type", "serial_nr", "dataset")
    list_select_related = ("dataset",)
    number_fields = ("id", "task_id")
    search_fields = ("=filename_template",)
    search_help_text = "Number of template or task."


@admin.register(PlannedOutput)
class PlannedOutputAdmin(ReadOnlyAdmin):
    """What tasks write, known from their submission on."""

    list_display = ("id", "writer", "task_link")
    list_select_related = ("writer",)
    search_fields = ("=writer__dataset_name",)
    search_help_text = "Number of the task or of the writer, or the whole name of the dataset."
    number_fields = ("task_id", "writer_id")
    task_link = row_link("task", "workqueues_task", "task_id")


@admin.register(DatasetWriter)
class DatasetWriterAdmin(ReadOnlyAdmin):
    """Who may write to a dataset; its tasks are those of its planned outputs."""

    list_display = ("id", "dataset_name", "vo", "user_name", "shared")
    search_fields = ("=dataset_name",)
    search_help_text = "Number, or the whole name of the dataset."
    number_fields = ("id",)
    related = (("tasks", "workqueues_plannedoutput", "writer_id"),)


@admin.register(InputWriter)
class InputWriterAdmin(ReadOnlyAdmin):
    """Parents that were inferred: who writes the input of whom."""

    list_display = ("id", "task_link", "dataset_name", "writer_link")
    search_fields = ("=id",)
    search_help_text = "Number of the task or of its parent."
    number_fields = ("task_id", "writer_id")
    task_link = row_link("task", "workqueues_task", "task_id")
    writer_link = row_link("parent", "workqueues_task", "writer_id")


@admin.register(TaskChange)
class TaskChangeAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "task", "old", "new", "epoch", "who", "why")
    number_fields = ("task_id",)
    search_fields = ("=who",)
    search_help_text = "Number of the task, or who."
    task = row_link("task", "workqueues_task", "task_id")


@admin.register(TaskNote)
class TaskNoteAdmin(ReadOnlyAdmin):
    """Steps that the system took with a task without another state."""

    list_display = ("id", "at", "task", "rule", "who", "why")
    number_fields = ("task_id",)
    search_fields = ("=rule",)
    search_help_text = "Number of the task, or the rule."
    task = row_link("task", "workqueues_task", "task_id")


@admin.register(DatasetChange)
class DatasetChangeAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "dataset", "old", "new", "epoch", "who", "why")
    number_fields = ("dataset_id", "task_id")
    search_fields = ("=who",)
    search_help_text = "Number of dataset or task, or who."
    dataset = row_link("dataset", "workqueues_dataset", "dataset_id")


@admin.register(FileChange)
class FileChangeAdmin(ReadOnlyAdmin):
    """Every move of a file that no job caused."""

    list_display = ("id", "at", "file", "old", "new", "who", "why")
    number_fields = ("file_id", "task_id")
    search_fields = ("=who",)
    search_help_text = "Number of file or task, or who."
    file = row_link("file", "workqueues_file", "file_id")
