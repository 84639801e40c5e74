"""Claims of agents and idempotency of submissions: JEDI_Process_Lock of seed 001, and the keys of repeated submissions."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ProcessLock(models.Model):
    """A lock that one agent run holds on a part of the workload (JEDI_Process_Lock)."""

    vo = models.CharField(max_length=32)
    prod_source_label = models.CharField(max_length=20)
    work_queue_id = models.IntegerField(default=0)
    cloud = models.CharField(max_length=16, default="default")
    resource_type = models.CharField(max_length=56, default="default")
    component = models.CharField(max_length=56, default="default")
    locked_by = models.CharField(max_length=56, blank=True, help_text="agent run that holds the lock; empty: nobody")
    locked_time = models.DateTimeField(db_default=Now(), help_text="when the lock was taken, renewed or given back")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["vo", "prod_source_label", "work_queue_id", "cloud", "resource_type", "component"],
                name="process_lock_key",
            )
        ]

    def __str__(self) -> str:
        return f"{self.component} {self.vo} {self.prod_source_label} {self.work_queue_id}"


class Submission(models.Model):
    """A submission with an Idempotency-Key: the same key from the same user gives the same task."""

    user_name = models.CharField(max_length=128)
    key = models.CharField(max_length=255)
    body_sha256 = models.CharField(max_length=64, help_text="digest of the canonical body; another body under the key is refused")
    task_id = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user_name", "key"], name="submission_key_once")]

    def __str__(self) -> str:
        return f"{self.user_name} {self.key}"
