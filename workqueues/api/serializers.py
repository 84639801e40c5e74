"""What is shown of tasks, datasets and files: the names of the database, each field named here, none by default."""

from __future__ import annotations

from rest_framework import serializers

from workqueues.models import Dataset, File, Task, TaskChange

TASK_LIST = (
    "id", "task_name", "user_name", "vo", "working_group", "prod_source_label", "task_type", "processing_type", "campaign",
    "status", "status_since", "error_dialog", "next_look_at", "ended_at", "creation_date", "modification_time", "task_priority",
    "current_priority", "progress", "parent_tid", "attempt_nr", "nucleus", "resource_type", "work_queue",
)  # fmt: skip
TASK_MORE = (
    "old_status", "epoch", "command", "command_by", "command_comment", "command_time", "start_time", "frozen_time", "req_id",
    "request_type", "country_group", "ticket_id", "ticket_system_type", "gshare", "super_status", "failure_rate", "goal",
    "term_condition", "split_rule", "architecture", "trans_uses", "trans_home", "trans_path", "container_name", "core_count",
    "ram_count", "ram_unit", "base_ram_count", "walltime", "walltime_unit", "base_walltime", "cpu_time", "cpu_time_unit",
    "cpu_efficiency", "out_disk_count", "out_disk_unit", "work_disk_count", "work_disk_unit", "io_intensity", "io_intensity_unit",
    "disk_io", "disk_io_unit", "cloud", "site",
)  # fmt: skip


class DatasetShown(serializers.ModelSerializer[Dataset]):
    """A dataset of a task with its counters."""

    task_id = serializers.IntegerField(read_only=True)
    master_id = serializers.IntegerField(read_only=True, allow_null=True)
    provenance_id = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = Dataset
        fields = (
            "id", "task_id", "dataset_name", "container_name", "type", "status", "status_since", "state", "stream_name",
            "attributes", "master_id", "provenance_id", "storage_token", "destination", "excluded", "n_files", "n_files_wanted",
            "n_files_to_be_used", "n_files_used", "n_files_finished", "n_files_failed", "n_files_on_hold", "n_files_missing",
            "n_events", "n_events_used", "creation_time", "modification_time",
        )  # fmt: skip
        read_only_fields = fields


class TaskShown(serializers.ModelSerializer[Task]):
    """A task as lists show it."""

    class Meta:
        model = Task
        fields = TASK_LIST
        read_only_fields = fields


class TaskWhole(serializers.ModelSerializer[Task]):
    """A task with its datasets and the parameters it was submitted with."""

    datasets = DatasetShown(many=True, read_only=True)
    task_params = serializers.JSONField(source="params.task_params", read_only=True, help_text="as submitted")
    notes = serializers.SerializerMethodField(help_text="what the system does not do for this task yet")

    class Meta:
        model = Task
        fields = (*TASK_LIST, *TASK_MORE, "datasets", "task_params", "notes")
        read_only_fields = fields

    def get_notes(self, task: Task) -> list[str]:
        """What its owner should know."""
        return ["Scouts are not built yet (row J20): the task runs without."]


class FileShown(serializers.ModelSerializer[File]):
    """A file as a task uses or makes it."""

    task_id = serializers.IntegerField(read_only=True)
    dataset_id = serializers.IntegerField(read_only=True)

    class Meta:
        model = File
        fields = (
            "id", "task_id", "dataset_id", "lfn", "scope", "guid", "type", "status", "held", "fsize", "checksum", "n_events",
            "start_event", "end_event", "first_event", "attempt_nr", "max_attempt", "failed_attempt", "max_failure", "ram_count",
            "job_id", "out_job_id", "no_output", "lost_at", "creation_date", "last_attempt_time",
        )  # fmt: skip
        read_only_fields = fields


class TaskMove(serializers.ModelSerializer[TaskChange]):
    """One move of a task: when, from, to, by whom, why."""

    class Meta:
        model = TaskChange
        fields = ("at", "old", "new", "who", "why", "epoch")
        read_only_fields = fields


class FinishAsked(serializers.Serializer[None]):
    """The body of finish: soft lets running jobs end by themselves."""

    soft = serializers.BooleanField(default=True)
    comment = serializers.CharField(max_length=200, default="", allow_blank=True)


class CommandAsked(serializers.Serializer[None]):
    """The body of kill and retry."""

    comment = serializers.CharField(max_length=200, default="", allow_blank=True)
