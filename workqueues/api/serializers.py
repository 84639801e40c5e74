"""What is shown of tasks, datasets and files, and what commands may say: each field named here, none by default (S20)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers

from broker_site.foundation.outside_data import MOST_HINTS, NOT_BLANK
from workqueues.models import Dataset, File, FileChange, Task, TaskChange
from workqueues.rules.refine import notes, read_task
from workqueues.rules.task.automatic_steps import of_task

TASK_LIST = (
    "id", "task_name", "user_name", "vo", "working_group", "prod_source_label", "task_type", "processing_type", "campaign",
    "status", "status_since", "error_dialog", "next_look_at", "ended_at", "creation_date", "modification_time", "start_time",
    "task_priority", "current_priority", "progress", "parent_tid", "attempt_nr", "nucleus", "resource_type", "work_queue",
    "quarantined_at",
)  # fmt: skip
TASK_MORE = (
    "submitted_by", "reads_vos", "old_status", "epoch", "super_status", "command", "command_by", "command_comment",
    "command_time", "frozen_time", "throttled_time", "num_throttled", "assessment_time", "n_measured", "rescue_time", "locked_by",
    "locked_time", "req_id",
    "request_type", "country_group", "ticket_id", "ticket_system_type", "gshare", "failure_rate", "goal", "term_condition",
    "split_rule", "architecture", "trans_uses", "trans_home", "trans_path", "container_name", "core_count", "ram_count",
    "ram_unit", "base_ram_count", "walltime", "walltime_unit", "base_walltime", "cpu_time", "cpu_time_unit", "cpu_efficiency",
    "out_disk_count", "out_disk_unit", "work_disk_count", "work_disk_unit", "io_intensity", "io_intensity_unit", "disk_io",
    "disk_io_unit", "merge_core_count", "merge_ram_count", "merge_ram_unit", "merge_walltime", "merge_walltime_unit", "cloud",
    "site", "work_to", "event_service", "use_jumbo", "ami_flag", "agent_faults", "faulty_agent",
)  # fmt: skip


class DatasetShown(serializers.ModelSerializer[Dataset]):
    """A dataset of a task with its counters."""

    task_id = serializers.IntegerField(read_only=True)
    master_id = serializers.IntegerField(read_only=True, allow_null=True)
    provenance_id = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = Dataset
        fields = (
            "id", "task_id", "vo", "data_vo", "dataset_name", "container_name", "type", "status", "status_since", "state",
            "state_check_time", "stream_name", "attributes", "master_id", "provenance_id", "template_id", "site", "storage_token",
            "collected_at", "also_at", "destination", "excluded", "n_files", "n_files_wanted", "n_files_to_be_used",
            "n_files_used", "n_files_finished", "n_files_failed", "n_files_on_hold", "n_files_missing", "n_files_waiting",
            "n_events", "n_events_to_be_used", "n_events_used", "creation_time", "modification_time",
        )  # fmt: skip
        read_only_fields = fields


class TaskShown(serializers.ModelSerializer[Task]):
    """A task as lists show it."""

    class Meta:
        model = Task
        fields = TASK_LIST
        read_only_fields = fields


class TaskCommanded(TaskShown):
    """A task after a command, and what the command does. `told` is in the context."""

    detail = serializers.SerializerMethodField(help_text="what happens now")

    class Meta:
        model = Task
        fields = (*TASK_LIST, "detail")
        read_only_fields = fields

    def get_detail(self, task: Task) -> str:
        return str(self.context["told"])


class TaskWhole(serializers.ModelSerializer[Task]):
    """A task with its datasets and the parameters it was submitted with."""

    datasets = DatasetShown(many=True, read_only=True)
    task_params = serializers.JSONField(
        source="params.task_params", read_only=True, help_text="as submitted, with what was changed since"
    )
    parents = serializers.SerializerMethodField(
        help_text="the tasks that it waits for: its parent, and those that write its inputs"
    )
    notes = serializers.SerializerMethodField(help_text="what follows from the parameters, or has no effect yet")

    class Meta:
        model = Task
        fields = (*TASK_LIST, *TASK_MORE, "datasets", "task_params", "parents", "notes")
        read_only_fields = fields

    def get_parents(self, task: Task) -> list[int]:
        named = {task.parent_tid or task.id} - {task.id}
        return sorted(named | {writer.writer_id for writer in task.input_writers.all()})

    def get_notes(self, task: Task) -> list[str]:
        document = read_task(task.params.task_params)
        how = "does not wait for its end" if document.parameters.noWaitParent else "waits for its end"
        waits = [
            f"task {writer.writer_id} writes the input {writer.dataset_name} and so is a parent: this task {how}"
            for writer in task.input_writers.all()[:MOST_HINTS]
        ]
        accepted = notes(document)
        return waits + [f"{p.field}: {p.message}" if p.field else p.message for p in accepted]


class TaskSubmitted(TaskWhole):
    """A task that somebody submitted, and what becomes of one that is run again for that."""

    detail = serializers.CharField(required=False, help_text="what happens now; only where a task is run again, or its jobs are")

    class Meta:
        model = Task
        fields = (*TaskWhole.Meta.fields, "detail")
        read_only_fields = fields


class FileShown(serializers.ModelSerializer[File]):
    """A file as a task uses or makes it."""

    task_id = serializers.IntegerField(read_only=True)
    dataset_id = serializers.IntegerField(read_only=True)

    class Meta:
        model = File
        fields = (
            "id", "task_id", "dataset_id", "lfn", "scope", "guid", "type", "status", "held", "fsize", "checksum", "n_events",
            "first_event", "boundary_id", "lumi_block_nr", "attempt_nr", "max_attempt",
            "failed_attempt", "max_failure", "ram_count", "job_id", "out_job_id", "no_output", "lost_at", "creation_date",
            "last_attempt_time",
        )  # fmt: skip
        read_only_fields = fields


class FileMove(serializers.ModelSerializer[FileChange]):
    """One move of a file that no job caused."""

    class Meta:
        model = FileChange
        fields = ("at", "old", "new", "who", "why")
        read_only_fields = fields


class FileWhole(FileShown):
    """A file with the name of its dataset and the moves that no job caused; those of jobs are in the jobs' histories."""

    dataset_name = serializers.CharField(source="dataset.dataset_name", read_only=True)
    changes = FileMove(many=True, read_only=True)

    class Meta:
        model = File
        fields = (*FileShown.Meta.fields, "dataset_name", "changes")
        read_only_fields = fields


class TaskMove(serializers.ModelSerializer[TaskChange]):
    """One move of a task: when, from, to, by whom, why."""

    rule = serializers.SerializerMethodField(help_text="by which rule the system made it; empty: the usual way, or somebody did")
    keys = serializers.SerializerMethodField(help_text="configuration keys that the rule depends on")

    def get_rule(self, move: TaskChange) -> str:
        return step.rule if (step := of_task(move.old, move.new, move.who)) else ""

    def get_keys(self, move: TaskChange) -> list[str]:
        return list(step.keys) if (step := of_task(move.old, move.new, move.who)) else []

    class Meta:
        model = TaskChange
        fields = ("at", "old", "new", "who", "why", "epoch", "rule", "keys")
        read_only_fields = fields


class StrictBody(serializers.Serializer[None]):
    """A body whose every member is known, and of the type that the document tells: a misspelt wish must not pass as no wish, nor
    a number as a text.
    """

    def to_internal_value(self, data: Any) -> Any:
        """The values; ValidationError with the rule `unknown` for each other name, `type` for each value of another type."""
        if isinstance(data, dict):
            known = ", ".join(self.fields)
            faults = {
                name[:100]: serializers.ErrorDetail(f"unknown; there are: {known}", "unknown")
                for name in data
                if name not in self.fields
            } or {name: told for name, value in data.items() if (told := _other_type(self.fields[name], value))}
            if faults:
                raise serializers.ValidationError(faults)
        return super().to_internal_value(data)


def _other_type(field: serializers.Field[Any, Any, Any, Any], value: Any) -> Any:
    """The faults of a value of another type than the field takes, None without; REST framework would read 1 as a text."""
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        return {n: told for n, each in enumerate(value) if (told := _other_type(field.child, each))} or None
    if isinstance(field, serializers.DictField) and isinstance(value, dict):
        return {name: told for name, each in value.items() if (told := _other_type(field.child, each))} or None
    for kinds, wanted, types in _TYPES:
        if isinstance(field, kinds):
            right = value is None or (isinstance(value, types) and (bool in types or not isinstance(value, bool)))
            return None if right else serializers.ErrorDetail(f"expected {wanted}", "type")
    return None


_TYPES: tuple[tuple[tuple[type, ...], str, tuple[type, ...]], ...] = (
    ((serializers.BooleanField,), "true or false", (bool,)),
    ((serializers.IntegerField,), "a whole number", (int,)),
    ((serializers.FloatField,), "a number", (int, float)),
    ((serializers.CharField, serializers.ChoiceField, serializers.DateTimeField), "a text", (str,)),
)
"""Fields, in words what they take, and the types of JSON that it may have."""


class StrictBodyInDocument(OpenApiSerializerExtension):
    """What the OpenAPI document tells of a strict body beyond its fields: no other member, no blank text, no empty list."""

    target_class = "workqueues.api.serializers.StrictBody"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        """The schema of the body."""
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        for name, field in self.target.fields.items():
            told = schema["properties"][name]
            _tell_blank(told, field)
            if isinstance(field, serializers.ListField):
                _tell_blank(told["items"], field.child)
            if (least := getattr(field, "min_length", None)) and not isinstance(field, serializers.CharField):
                told["minItems"] = least
        return schema | {"additionalProperties": False}


def _tell_blank(told: dict[str, Any], field: serializers.Field[Any, Any, Any, Any]) -> None:
    if isinstance(field, serializers.CharField) and not field.allow_blank:
        told.setdefault("minLength", 1)
        if field.trim_whitespace:
            told.setdefault("pattern", NOT_BLANK)


class CommandAsked(StrictBody):
    """The body of a command without options."""

    comment = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="why, for the history")
