"""Units of work: the locks that agent runs hold on them, and the stored verdicts of the job throttler (seed 001; row J25)."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ThrottleVerdict(models.Model):
    """One verdict on a unit; equal ones in a row (decision and rule) are one row with a count and the numbers of the last.

    A unit is a leaf share or a work queue, times a resource type, of a source label of a VO.
    """

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(max_length=32)
    prod_source_label = models.CharField(max_length=20)
    unit = models.CharField(max_length=32, blank=True, help_text="name of the share or work queue; empty: work without a share")
    work_queue_id = models.IntegerField(default=0, db_default=0, help_text="0: the unit is a share")
    resource_type = models.CharField(max_length=56, blank=True, help_text="empty: judged whole")
    decision = models.CharField(max_length=4, help_text="PASS: jobs may be made; SKIP: none")
    rule = models.CharField(max_length=32, help_text="what decided")
    reason = models.CharField(max_length=255, help_text="the same in words, with numbers")
    max_jobs = models.IntegerField(null=True, blank=True, help_text="jobs that one run may make; empty: without limit")
    lock = models.BooleanField(help_text="one generator at a time")
    least_priority = models.IntegerField(null=True, blank=True, help_text="only tasks of this priority and more pass")
    running = models.IntegerField(help_text="jobs of the unit itself, whatever the level of the limits")
    defined = models.IntegerField()
    assigned = models.IntegerField()
    activated = models.IntegerField()
    starting = models.IntegerField()
    waiting = models.IntegerField(help_text="jobs not yet defined")
    stranded = models.IntegerField(
        default=0, db_default=0, help_text="queued jobs at queues where they cannot start: they do not count for the ratio"
    )
    ratio = models.FloatField(help_text="queued jobs for each running one from which on none are made")
    limits = models.JSONField(default=dict, help_text="limit found -> value, key, level and the jobs counted there")
    practice = models.JSONField(default=list, help_text="rules of practice that were on")
    config_revision = models.IntegerField(default=0)
    n_times = models.IntegerField(default=1, db_default=1, help_text="how many equal verdicts in a row")
    first_at = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["vo", "prod_source_label", "unit", "work_queue_id", "resource_type", "-id"],
                name="throttle_verdict_of_unit",
            ),
            models.Index(fields=["last_at"], name="throttle_verdict_lately"),
        ]

    def __str__(self) -> str:
        return f"{self.unit} {self.resource_type}: {self.decision}"


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
