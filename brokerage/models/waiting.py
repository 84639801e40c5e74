"""Tasks that wait for a place: what for, in groups that ask for the same."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workqueues.models import Task


class GridRevision(models.Model):
    """The one row that says how often the grid was changed: by documents, feeds, overrides and storages that come and go."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    number = models.BigIntegerField(default=0, db_default=0, help_text="number of the last change")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="grid_revision_one_row")]

    def __str__(self) -> str:
        return f"revision {self.number}"


class WaitGroup(models.Model):
    """Tasks that found no place and ask for the same: looked at together, by one decision."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=64, unique=True, help_text="digest of policy, needs, share, and places of the input")
    policy = models.CharField(max_length=64, help_text="policy that found no place")
    ask = models.JSONField(help_text="what one of them asked")
    own = models.BinaryField(default=b"", help_text="what was known of that task beyond the grid, compressed")
    criteria = ArrayField(models.CharField(max_length=64), help_text="criteria that pass with time, or by somebody's hand")
    queues = ArrayField(models.CharField(max_length=60), help_text="queues, or nuclei, that fail no other criterion")
    judged_at = models.DateTimeField(db_default=Now(), help_text="of when the world is by which they were last judged")
    grid_revision = models.BigIntegerField(help_text="revision of the grid by which they were last judged; -1: look now")
    config_revision = models.BigIntegerField(help_text="revision of the configuration by which they were last judged")

    class Meta:
        indexes = [
            GinIndex(fields=["queues"], name="wait_group_by_queue"),
            models.Index(fields=["grid_revision"], name="wait_group_by_grid"),
            models.Index(fields=["config_revision"], name="wait_group_by_config"),
        ]

    def __str__(self) -> str:
        return f"{self.policy}: {', '.join(self.criteria) or 'no queue'}"


class TaskWait(models.Model):
    """One waiting task; the row means nothing any more once the task waits until another time, or for nothing."""

    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, related_name="+")
    group = models.ForeignKey(WaitGroup, models.CASCADE, related_name="waits")
    until = models.DateTimeField(db_index=True, help_text="when it is looked at again whatever happens")

    def __str__(self) -> str:
        return f"task {self.task_id}"
