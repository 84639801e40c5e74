"""Where jobs meet pilots: task queues, where jobs with the same requirements wait together (row D1), and pilots."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from brokerage.models.grid import ComputingQueue
from brokerage.rules.dispatch.requirement import SETS


class RequirementSet(models.Model):
    """What jobs require by several values: rows are made once, and shared by the task queues that differ in other things."""

    id = models.AutoField(primary_key=True)
    digest = models.CharField(max_length=64, unique=True, help_text="of all values and places")
    used_at = models.DateTimeField(db_default=Now(), help_text="when it was last looked for")

    def __str__(self) -> str:
        return self.digest[:12]


class RequirementValue(models.Model):
    """One value of an attribute with several: a site, a tag, a platform."""

    id = models.AutoField(primary_key=True)
    requirement_set = models.ForeignKey(RequirementSet, models.CASCADE, db_index=False, related_name="values")
    attribute = models.CharField(max_length=20, choices=[(name, name) for name in SETS if name != "queues"])
    value = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["requirement_set", "attribute", "value"], name="requirement_value_once")]

    def __str__(self) -> str:
        return f"{self.attribute} {self.value}"


class RequirementPlace(models.Model):
    """A computing queue to which open jobs may go, and the storage endpoint for what they make there."""

    id = models.AutoField(primary_key=True)
    requirement_set = models.ForeignKey(RequirementSet, models.CASCADE, db_index=False, related_name="places")
    computing_queue = models.ForeignKey(ComputingQueue, models.CASCADE, db_index=False, related_name="+")
    storage = models.CharField(max_length=60, default="", db_default="", help_text="storage endpoint of their outputs there")
    own_datasets = models.BooleanField(db_default=True, help_text="the outputs made there go to datasets of that queue alone")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["computing_queue", "requirement_set"], name="requirement_place_once"),
        ]
        indexes = [models.Index(fields=["requirement_set"], name="requirement_place_of_set")]

    def __str__(self) -> str:
        return f"{self.computing_queue_id} {self.storage}"


class TaskQueue(models.Model):
    """One set of requirements. Jobs point here; a match chooses a task queue, then takes one of its ready jobs.

    Where `computing_queue` is empty its jobs are open: they go to any of the places of the requirement set. One without waiting
    jobs is removed; jobs that have ended may name one that is gone.
    """

    id = models.AutoField(primary_key=True)
    computing_queue = models.ForeignKey(
        ComputingQueue, models.PROTECT, db_index=False, null=True, blank=True, related_name="task_queues"
    )
    vo = models.CharField(max_length=32, default="", db_default="")
    owner = models.CharField(max_length=128, default="", db_default="", blank=True, help_text="whose jobs: the user")
    owner_group = models.CharField(
        max_length=32, default="", db_default="", blank=True, help_text="the working group of the jobs"
    )
    setup = models.CharField(max_length=32, default="", db_default="", blank=True)
    prod_source_label = models.CharField(max_length=20, default="", db_default="")
    work_queue_id = models.IntegerField(default=0, db_default=0)
    gshare = models.CharField(max_length=32, default="", db_default="", help_text="leaf of the share tree; empty: none")
    resource_type = models.CharField(max_length=56, default="", db_default="")
    core_count = models.SmallIntegerField(default=1, db_default=1)
    ram_mb = models.IntegerField(default=0, db_default=0, help_text="memory of the whole job, MB; 0: no demand")
    disk_mb = models.IntegerField(default=0, db_default=0, help_text="scratch disk of the whole job, MB; 0: no demand")
    walltime_s = models.IntegerField(default=0, db_default=0, help_text="run time, s; 0: no demand")
    cpu_time_s = models.IntegerField(default=0, db_default=0, help_text="class of the CPU time, s; 0: no demand")
    requirement_set = models.ForeignKey(RequirementSet, models.PROTECT, db_index=False, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    used_at = models.DateTimeField(db_default=Now(), help_text="when jobs last came here, or were found to need it")
    priority = models.FloatField(null=True, blank=True, help_text="its part of the share of its group")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "computing_queue", "vo", "prod_source_label", "work_queue_id", "gshare", "resource_type", "core_count",
                    "ram_mb", "disk_mb", "walltime_s", "cpu_time_s", "owner", "owner_group", "setup", "requirement_set",
                ],
                name="task_queue_requirements_once",
                nulls_distinct=False,
            )
        ]  # fmt: skip
        indexes = [models.Index(fields=["requirement_set"], name="task_queue_of_set", condition=Q(requirement_set__isnull=False))]

    def __str__(self) -> str:
        return f"{self.computing_queue_id or 'open'}/{self.vo}/{self.prod_source_label}/{self.core_count}"


class JobOpening(models.Model):
    """A job that waits at its queue and is to be open to others once it has waited (row X4); gone when that is due."""

    job_id = models.BigIntegerField(primary_key=True)
    task_queue = models.ForeignKey(
        TaskQueue, models.DO_NOTHING, db_constraint=False, related_name="+", help_text="where it is to wait then, open"
    )
    due = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.job_id} {self.due}"


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
    last_seen = models.DateTimeField(db_default=Now(), help_text="last sign of life, to about a minute")

    class Meta:
        indexes = [
            models.Index(fields=["queue", "last_seen"], name="pilot_of_queue"),
            models.Index(fields=["registered_at", "id"], name="pilot_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.slot}@{self.host}"


class PlacementRound(models.Model):
    """A run of the agent generate that made jobs; the last ones are kept.

    What pilots took since tells how many jobs a queue can use until the next one.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    last_change = models.BigIntegerField(help_text="number of the last move of a job before it")

    def __str__(self) -> str:
        return f"{self.id} at {self.at:%H:%M:%S}"


class GroupUse(models.Model):
    """What the jobs of an owner in a group held in one hour, for the correction of shares."""

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(max_length=32)
    owner_group = models.CharField(max_length=32)
    owner = models.CharField(max_length=128)
    hour = models.DateTimeField(help_text="its beginning, UTC")
    hs06_s = models.FloatField(default=0, db_default=0, help_text="cores x HS06 per core x seconds")
    looked_at = models.DateTimeField(help_text="when it was last looked at")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["vo", "owner_group", "owner", "hour"], name="group_use_once")]
        indexes = [models.Index(fields=["hour"], name="group_use_by_time")]

    def __str__(self) -> str:
        return f"{self.owner_group}/{self.owner} {self.hour:%Y-%m-%dT%H}"


class IdleSlot(models.Model):
    """A pilot that asked in vain; the row goes when it gets a job or asks no more."""

    pilot = models.OneToOneField(Pilot, models.CASCADE, primary_key=True, related_name="idle_slot")
    queue = models.ForeignKey(ComputingQueue, models.CASCADE, db_index=False, related_name="+")
    since = models.DateTimeField(db_default=Now(), help_text="when it first asked in vain")
    until = models.DateTimeField(db_default=Now(), help_text="if it has not asked again by then, it is gone")
    core_count = models.SmallIntegerField(help_text="what it asked for: cores")
    memory_mb = models.IntegerField(default=0, db_default=0, help_text="MB; 0: unknown")
    disk_mb = models.IntegerField(default=0, db_default=0, help_text="MB; 0: unknown")
    walltime_s = models.IntegerField(default=0, db_default=0, help_text="seconds that are left; 0: unknown")
    vo = models.CharField(max_length=32, default="", db_default="", help_text="the only VO whose work it may do; empty: all")
    resource = models.JSONField(
        default=dict, db_default={}, help_text="what else it said of itself: attributes with their values"
    )
    beside_since = models.DateTimeField(null=True, blank=True, help_text="since when work is there that it may do")

    def __str__(self) -> str:
        return f"{self.pilot_id} idle"


class MisfitQueue(models.Model):
    """Task queues with jobs at a queue that fit none of the slots that idle there, as it was found lately."""

    queue = models.OneToOneField(ComputingQueue, models.CASCADE, primary_key=True, related_name="+")
    seen_at = models.DateTimeField(db_default=Now(), help_text="when it was found")
    slots = models.JSONField(help_text="the slots that idled: cores, MB of memory and disk, seconds, VO, what else they said")
    task_queues = ArrayField(models.BigIntegerField(), help_text="the task queues")

    def __str__(self) -> str:
        return f"misfits at {self.queue_id}"


class IdleHour(models.Model):
    """How long slots of a queue idled in one hour, and how it stood when it was last looked at."""

    id = models.BigAutoField(primary_key=True)
    queue = models.ForeignKey(ComputingQueue, models.CASCADE, db_index=False, related_name="+")
    hour = models.DateTimeField(help_text="its beginning, UTC")
    idle_s = models.FloatField(default=0, db_default=0, help_text="seconds of idle slots, whatever work was there")
    beside_s = models.FloatField(default=0, db_default=0, help_text="those of slots beside eligible work")
    held_s = models.FloatField(default=0, db_default=0, help_text="those beside work that a share, the throttler or a cap holds")
    looked_at = models.DateTimeField(help_text="when it was last looked at")
    idle = models.IntegerField(default=0, db_default=0, help_text="idle slots then")
    beside = models.IntegerField(default=0, db_default=0, help_text="those beside eligible work")
    held = models.IntegerField(default=0, db_default=0, help_text="those beside held work")
    longest_s = models.FloatField(default=0, db_default=0, help_text="how long one of them had stood beside eligible work")
    why = models.CharField(max_length=255, default="", db_default="", blank=True, help_text="what the eligible work waits for")
    why_held = models.CharField(max_length=255, default="", db_default="", blank=True, help_text="what holds the work")
    task_id = models.BigIntegerField(null=True, blank=True, help_text="a task with such work")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "hour"], name="idle_hour_once")]
        indexes = [models.Index(fields=["hour"], name="idle_hour_by_time")]

    def __str__(self) -> str:
        return f"{self.queue_id} {self.hour:%Y-%m-%dT%H}"
