"""Counts of jobs over time, and the errors with which they ended (decision L3). Written by the agent tally alone."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from brokerage.rules.dispatch.error_fingerprint import LONGEST
from brokerage.rules.facts.rollups import STEPS, Family


class TallyMark(models.Model):
    """How far the history of jobs is counted: one row."""

    id = models.SmallIntegerField(primary_key=True, default=1, db_default=1)
    seen = models.TextField(help_text="snapshot of the database; changes that it does not show are yet to be counted")
    first_id = models.BigIntegerField(default=0, db_default=0, help_text="changes before this one are never counted")
    counted_at = models.DateTimeField(db_default=Now(), help_text="what happened before is counted")
    compared_at = models.DateTimeField(null=True, help_text="when the levels were last compared with the jobs")
    off = models.BigIntegerField(default=0, db_default=0, help_text="jobs by which they differed then; they should not")
    moved = models.BigIntegerField(
        default=0, db_default=0, help_text="jobs that had another queue, share or owner by then, without a move"
    )
    off_at = models.DateTimeField(null=True, help_text="when they last differed")
    off_in_all = models.BigIntegerField(default=0, db_default=0, help_text="jobs by which they ever differed")
    off_said = models.CharField(max_length=255, default="", db_default="", help_text="where they last differed")
    tasks_from = models.DateTimeField(db_default=Now(), help_text="since when the tasks of errors are noted")

    class Meta:
        constraints = [models.CheckConstraint(name="tally_mark_one", condition=models.Q(id=1))]

    def __str__(self) -> str:
        return f"counted to {self.counted_at:%F %T}"


class TallyGroup(models.Model):
    """Jobs that are counted together. Names are kept as they were: what they name may be gone."""

    id = models.AutoField(primary_key=True)
    family = models.CharField(max_length=8, choices=[(family.value, family.value) for family in Family])
    vo = models.CharField(max_length=32, default="", db_default="")
    queue = models.CharField(max_length=60, default="", db_default="", help_text="computing queue; empty: open to several")
    share = models.CharField(max_length=60, default="", db_default="")
    kind = models.SmallIntegerField(default=0, db_default=0)
    user_name = models.CharField(max_length=128, default="", db_default="", help_text="owner of the task")
    fingerprint = models.BigIntegerField(default=0, db_default=0, help_text="of the error; 0: none")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["family", "vo", "queue", "share", "kind", "user_name", "fingerprint"], name="tally_group_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.family} {self.id}"


class TallyLevel(models.Model):
    """How many jobs of a group are in a state, by the changes that are counted."""

    id = models.BigAutoField(primary_key=True)
    group = models.ForeignKey(TallyGroup, models.CASCADE, db_index=False, related_name="levels")
    what = models.CharField(max_length=16, help_text="state")
    n = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "what"], name="tally_level_once")]

    def __str__(self) -> str:
        return f"{self.what}: {self.n}"


class TaskLevel(models.Model):
    """How many tasks of a VO that have not ended are in a state, as the agent tally counted them last."""

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(max_length=32)
    state = models.CharField(max_length=16)
    n = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["vo", "state"], name="task_level_once")]

    def __str__(self) -> str:
        return f"{self.vo} {self.state}: {self.n}"


class TallyBucket(models.Model):
    """What happened to jobs of a group in some time: how many did something, or by how many more there are in a state."""

    id = models.BigAutoField(primary_key=True)
    step_s = models.IntegerField(choices=[(step, str(step)) for step in STEPS], help_text="length of the time, s")
    group = models.ForeignKey(TallyGroup, models.CASCADE, db_index=False, related_name="+")
    what = models.CharField(max_length=16, help_text="what jobs did, or a state")
    at = models.DateTimeField(help_text="its beginning")
    n = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "step_s", "what", "at"], name="tally_bucket_once")]
        # What is too old is removed by it.
        indexes = [models.Index(fields=["step_s", "at"], name="tally_bucket_age")]

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.what}: {self.n}"


class ErrorFingerprint(models.Model):
    """Errors that differ in numbers and names only."""

    id = models.BigIntegerField(primary_key=True)
    component = models.CharField(max_length=16, help_text="who says so: pilot or broker")
    code = models.CharField(max_length=40)
    exit_code = models.IntegerField(help_text="of the payload; 0: none")
    message = models.CharField(max_length=LONGEST, help_text="* stands for what differs")
    first_seen = models.DateTimeField(help_text="when a job first ended with it")
    sample_job_id = models.BigIntegerField(help_text="the first job that did")

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class ErrorTask(models.Model):
    """A task of which jobs ended with an error, of late. The number is kept as it was: the task may be gone."""

    id = models.BigAutoField(primary_key=True)
    group = models.ForeignKey(TallyGroup, models.CASCADE, db_index=False, related_name="+", help_text="VO, owner and error")
    task_id = models.BigIntegerField(help_text="the task")
    first_at = models.DateTimeField(help_text="the minute in which the first of its jobs ended so, since it is noted")
    last_at = models.DateTimeField(help_text="the minute in which the last did")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "task_id"], name="error_task_once")]
        # Those of a window are counted by it, and those that are too old removed.
        indexes = [models.Index(fields=["group", "last_at"], name="error_task_age")]

    def __str__(self) -> str:
        return f"task {self.task_id}"
