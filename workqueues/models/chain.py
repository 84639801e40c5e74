"""Chains of tasks, known from their submission on: what each is going to write, and who writes what another one reads."""

from __future__ import annotations

from django.db import models

from workqueues.models.task import Task


class PlannedOutput(models.Model):
    """A dataset that a task writes, known before its datasets are made."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="planned_outputs")
    dataset_name = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset_name", "task"], name="planned_output_once")]

    def __str__(self) -> str:
        return f"{self.dataset_name} of task {self.task_id}"


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
