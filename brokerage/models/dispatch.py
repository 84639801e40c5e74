"""Where jobs meet pilots: task queues, where jobs with the same requirements wait together (row D1), and pilots."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from brokerage.models.grid import ComputingQueue


class TaskQueue(models.Model):
    """One set of requirements. Jobs point here; a match chooses a task queue, then takes its first ready job."""

    id = models.AutoField(primary_key=True)
    computing_queue = models.ForeignKey(ComputingQueue, models.PROTECT, db_index=False, related_name="task_queues")
    vo = models.CharField(max_length=32, default="", db_default="")
    prod_source_label = models.CharField(max_length=20, default="", db_default="")
    work_queue_id = models.IntegerField(default=0, db_default=0)
    gshare = models.CharField(max_length=32, default="", db_default="", help_text="leaf of the share tree; empty: none")
    resource_type = models.CharField(max_length=56, default="", db_default="")
    core_count = models.SmallIntegerField(default=1, db_default=1)
    ram_mb = models.IntegerField(default=0, db_default=0, help_text="memory of the whole job, MB; 0: no demand")
    disk_mb = models.IntegerField(default=0, db_default=0, help_text="scratch disk of the whole job, MB; 0: no demand")
    walltime_s = models.IntegerField(default=0, db_default=0, help_text="run time, s; 0: no demand")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "computing_queue",
                    "vo",
                    "prod_source_label",
                    "work_queue_id",
                    "gshare",
                    "resource_type",
                    "core_count",
                    "ram_mb",
                    "disk_mb",
                    "walltime_s",
                ],
                name="task_queue_requirements_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.computing_queue_id}/{self.vo}/{self.prod_source_label}/{self.core_count}"


class Pilot(models.Model):
    """One pilot, from its registration to its last sign of life."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    queue = models.ForeignKey(ComputingQueue, models.CASCADE, related_name="pilots")
    host = models.CharField(max_length=255)
    slot = models.CharField(max_length=128, help_text="name of the slot on the host")
    pid = models.IntegerField(null=True, blank=True)
    core_count = models.SmallIntegerField(default=1)
    memory_mb = models.IntegerField(default=0)
    disk_mb = models.IntegerField(default=0)
    registered_at = models.DateTimeField(db_default=Now())
    last_seen = models.DateTimeField(db_default=Now(), help_text="last ask for a job, to about a minute")

    class Meta:
        indexes = [models.Index(fields=["queue", "last_seen"], name="pilot_of_queue")]

    def __str__(self) -> str:
        return f"{self.slot}@{self.host}"
