"""Pilots: the programs that ask for jobs and run them."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from brokerage.models.grid import ComputingQueue


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
