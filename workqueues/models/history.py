"""Who moved what, when and why: one row per move of a task or dataset, and per move of a file that no job caused."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Change(models.Model):
    """What every history row says."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    old = models.CharField(max_length=64, help_text="state before; '-' for an insertion")
    new = models.CharField(max_length=64, help_text="state after")
    who = models.CharField(max_length=128, help_text="agent, user or pilot")
    why = models.CharField(max_length=510, blank=True, default="", db_default="")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.old} -> {self.new}"


class TaskChange(Change):
    task_id = models.BigIntegerField()
    epoch = models.IntegerField(help_text="the task's epoch after the move")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_id", "epoch"], name="task_change_once")]


class DatasetChange(Change):
    dataset_id = models.BigIntegerField()
    task_id = models.BigIntegerField()
    epoch = models.IntegerField(help_text="the dataset's epoch after the move")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset_id", "epoch"], name="dataset_change_once")]


class FileChange(Change):
    """One move of a file that no job caused (lost, missing, reopened, broken), or a note: held, limited, more memory."""

    file_id = models.BigIntegerField(db_index=True)
    task_id = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["task_id", "-id"], name="file_change_of_task")]


class TaskNote(models.Model):
    """A step that the system took with a task and that left it in its state: by which rule, with which numbers."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    task_id = models.BigIntegerField()
    rule = models.CharField(max_length=64, help_text="the rule, in words")
    who = models.CharField(max_length=128, help_text="agent or job")
    why = models.CharField(max_length=510, blank=True, default="", db_default="")
    before = models.JSONField(default=dict, help_text="what was changed, as it was")
    after = models.JSONField(default=dict, help_text="and as it is")

    class Meta:
        indexes = [models.Index(fields=["task_id", "-id"], name="task_note_of_task")]

    def __str__(self) -> str:
        return f"{self.rule} of task {self.task_id}"
