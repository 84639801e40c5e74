"""Chains of tasks, known from their submission on: what each is going to write, and who writes what another one reads."""

from __future__ import annotations

from django.db import models

from workqueues.models.task import Task


class DatasetWriter(models.Model):
    """Who may write to a dataset: one task, or those of one owner that all allow it (allowTaskDuplication).

    The tasks are those of its planned outputs.
    """

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(max_length=32)
    dataset_name = models.CharField(max_length=255)
    user_name = models.CharField(max_length=128)
    shared = models.BooleanField(
        default=False, db_default=False, help_text="other tasks of the owner that say so write to it too"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset_name", "vo"], name="dataset_writer_once")]

    def __str__(self) -> str:
        return self.dataset_name


class PlannedOutput(models.Model):
    """A dataset that a task writes, known before its datasets are made."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="planned_outputs")
    writer = models.ForeignKey(
        DatasetWriter,
        models.CASCADE,
        db_index=False,
        related_name="planned_outputs",
        help_text="the dataset, and who may write to it",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["writer", "task"], name="planned_output_once")]

    def __str__(self) -> str:
        return f"{self.writer.dataset_name} of task {self.task_id}"


class InputWriter(models.Model):
    """A task that was to write an input of this one at its submission: an inferred parent, which only delays (decision F5)."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, db_index=False, related_name="input_writers")
    writer = models.ForeignKey(Task, models.CASCADE, related_name="+")
    dataset_name = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "dataset_name", "writer"], name="input_writer_once")]

    def __str__(self) -> str:
        return f"task {self.writer_id} writes {self.dataset_name} for task {self.task_id}"
