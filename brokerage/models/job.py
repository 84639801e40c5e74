"""Jobs: a narrow row that scheduling and heartbeats touch, a wide one written once, inputs, result and history (decision G1)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now
from django.db.models.lookups import Exact

from brokerage.models.dispatch import TaskQueue
from brokerage.models.grid import ComputingQueue
from brokerage.models.transaction_id import CurrentTransaction, TransactionIdField
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB

NOTES = 1000
MERGE_RELATION, RETRY_RELATION, REBROKER_RELATION = "merge", "retry", "rebroker"
"""Relation of a job to the one that merges its outputs; others are those of tries: after an end of its own, or after it was
closed to be brokered anew.
"""
TO_REASSIGN = "toreassign"
"""Sub-status of a job that was closed so that its files are brokered anew."""
READABLE = (datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC))
"""Times that every reader can hold, in every time zone."""


def _is_set(column: str) -> Func:
    """Whether the column is not null; unlike the lookup `isnull`, Django can also judge this of a row not yet saved."""
    return Func(F(column), template="(%(expressions)s IS NOT NULL)", output_field=models.BooleanField())


def _in(states: Iterable[str]) -> Func:
    """Whether the status is one of `states`, written with one constant."""
    listed = ",".join(states)
    return Func(F("status"), template=f"(%(expressions)s = ANY ('{{{listed}}}'))", output_field=models.BooleanField())


class Job(models.Model):
    """The hot row of a job. No index stands on a column that a heartbeat changes, so heartbeats stay on the page (HOT)."""

    id = models.BigAutoField(primary_key=True, help_text="job identifier (PandaID)")
    task_id = models.BigIntegerField()
    kind = models.SmallIntegerField(
        default=JobKind.NORMAL.value, db_default=JobKind.NORMAL.value, choices=[(kind.value, kind.label) for kind in JobKind]
    )
    status = models.CharField(max_length=16, choices=[(s, s) for s in JOB.states])
    sub_status = models.CharField(max_length=40, default="", db_default="", blank=True)
    status_since = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True, help_text="when a final state was entered; set exactly in one")
    epoch = models.IntegerField(default=0, db_default=0, help_text="number of leases given and ended by us; fences reports")
    priority = models.IntegerField(default=0, db_default=0)
    ready_priority = models.IntegerField(
        null=True, blank=True, help_text="-priority while activated: the order in which jobs are handed out"
    )
    task_queue = models.ForeignKey(
        TaskQueue, models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+", help_text="where it waits, or waited"
    )
    computing_queue = models.ForeignKey(
        ComputingQueue,
        models.PROTECT,
        db_index=False,
        null=True,
        blank=True,
        related_name="+",
        help_text="empty while it is open",
    )
    storage = models.CharField(
        max_length=60,
        default="",
        db_default="",
        blank=True,
        help_text="storage endpoint its outputs go to; empty while it is open",
    )
    work_queue_id = models.IntegerField(null=True, blank=True)
    resource_type = models.CharField(max_length=56, default="", db_default="")
    core_count = models.SmallIntegerField(default=1, db_default=1)
    attempt_nr = models.SmallIntegerField(default=1, db_default=1, help_text="1 + largest attemptNr of its inputs")
    lease_holder = models.UUIDField(null=True, blank=True, help_text="pilot that holds the job")
    lease_request = models.UUIDField(null=True, blank=True, help_text="the ask that got the job: a repeated ask gets it again")
    lease_slot = models.IntegerField(null=True, blank=True, help_text="place of the lease among those of its pilot")
    lease_until = models.DateTimeField(null=True, blank=True, help_text="when the lease ends; set exactly while leased")
    lease_s = models.FloatField(default=0, db_default=0, help_text="length of the lease at each renewal, s")
    last_seen = models.DateTimeField(null=True, blank=True, help_text="last sign of life")
    token_since = models.DateTimeField(null=True, blank=True, help_text="when the job token that counts was issued")
    kill_requested = models.BooleanField(
        default=False, db_default=False, help_text="the next heartbeat is answered with tobekilled"
    )
    kill_outcome = models.CharField(
        max_length=16, default="", db_default="", blank=True, help_text="final state of a requested kill"
    )
    kill_why = models.CharField(
        max_length=255, default="", db_default="", blank=True, help_text="why, and by whom, a kill was asked of the job's pilot"
    )

    class Meta:
        # Short on purpose: PostgreSQL reads these expressions anew for every statement that changes a job.
        constraints = [
            models.CheckConstraint(
                name="job_ended_exactly_when_final",
                condition=Exact(_in(sorted(JOB.final)), _is_set("ended_at")),
            ),
            models.CheckConstraint(
                name="job_leased_exactly_while_held",
                condition=Q(
                    Exact(_in(JOB.leased), _is_set("lease_until")), Exact(_is_set("lease_until"), _is_set("lease_holder"))
                ),
            ),
            models.CheckConstraint(
                name="job_ready_exactly_while_activated",
                condition=Exact(_in(["activated"]), _is_set("ready_priority")),
            ),
            models.CheckConstraint(name="job_kind_known", condition=Q(kind__range=(min(JobKind).value, max(JobKind).value))),
            # Of asks of one pilot that come at once only one gets a job.
            models.UniqueConstraint(
                fields=["lease_holder", "lease_slot"], name="job_lease_place", condition=Q(lease_holder__isnull=False)
            ),
        ]
        indexes = [
            models.Index(
                fields=["task_queue", "ready_priority", "id"], name="job_ready", condition=Q(ready_priority__isnull=False)
            ),
            models.Index(fields=["task_id", "id"], name="job_of_task"),
            models.Index(fields=["computing_queue", "id"], name="job_open", condition=Q(ended_at__isnull=True)),
            models.Index(fields=["task_id", "ended_at"], name="job_ended_lately", condition=Q(ended_at__isnull=False)),
            # All leases, and those of some queues.
            models.Index(fields=["computing_queue", "task_id"], name="job_held", condition=Q(lease_holder__isnull=False)),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def placed_at(self) -> ComputingQueue:
        """The computing queue that it was placed at. LookupError while it is open."""
        if self.computing_queue is None:
            raise LookupError(f"job {self.id} is open to several queues")
        return self.computing_queue


class JobSpec(models.Model):
    """What a job is: written once, when the job is made."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="spec")
    job_name = models.CharField(max_length=256)
    vo = models.CharField(max_length=32, default="", db_default="")
    user_name = models.CharField(max_length=128, default="", db_default="")
    prod_source_label = models.CharField(max_length=20, default="", db_default="")
    processing_type = models.CharField(max_length=64, default="", db_default="")
    working_group = models.CharField(max_length=32, default="", db_default="")
    transformation = models.CharField(max_length=128, default="", db_default="")
    software_release = models.CharField(max_length=192, default="", db_default="")
    job_parameters = models.TextField(
        default="", db_default="", help_text="the payload's command line; empty where the job has values for that of the task"
    )
    job_values = models.JSONField(
        null=True,
        blank=True,
        help_text="what the job puts into the placeholders of the task's job parameters, in order, where their text is long",
    )
    ram_mb = models.IntegerField(default=0, db_default=0, help_text="memory of the whole job, MB; 0: unknown")
    disk_mb = models.IntegerField(default=0, db_default=0, help_text="scratch disk of the whole job, MB; 0: unknown")
    walltime_s = models.IntegerField(default=0, db_default=0, help_text="longest run, s; 0: no limit")
    n_input_files = models.IntegerField(default=0, db_default=0)
    input_bytes = models.BigIntegerField(default=0, db_default=0)
    n_events = models.BigIntegerField(default=0, db_default=0)
    nucleus = models.CharField(max_length=60, default="", db_default="")
    decision_id = models.BigIntegerField(null=True, blank=True, help_text="brokerage decision that placed the job")
    reads_wan = models.BooleanField(
        default=False, db_default=False, help_text="input may be read from other sites, over the network"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        # A VO with few jobs: its list does not leaf through the jobs of the others.
        indexes = [models.Index(fields=["vo", "-job"], name="job_spec_list_by_vo")]

    def __str__(self) -> str:
        return self.job_name


class JobInput(models.Model):
    """One use of one input file, or of one event range, by one job.

    A tracked unit has at most one live and at most one successful use (decision F1): the database refuses a second one.
    """

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, models.CASCADE, related_name="inputs")
    file_id = models.BigIntegerField()
    dataset_id = models.BigIntegerField()
    event_range_id = models.BigIntegerField(null=True, blank=True)
    tracked = models.BooleanField(default=True, db_default=True, help_text="counts for the limit of one use")
    attempt_nr = models.SmallIntegerField(default=0, db_default=0, help_text="attemptNr of the file when it was given to the job")
    status = models.CharField(max_length=8, default="live", db_default="live", help_text="live, used, or returned")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["file_id"],
                name="job_input_one_live",
                condition=Q(status="live", tracked=True, event_range_id__isnull=True),
            ),
            models.UniqueConstraint(
                fields=["file_id"],
                name="job_input_used_once",
                condition=Q(status="used", tracked=True, event_range_id__isnull=True),
            ),
            models.UniqueConstraint(
                fields=["event_range_id"],
                name="job_input_one_live_range",
                condition=Q(status="live", tracked=True, event_range_id__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["event_range_id"],
                name="job_input_used_once_range",
                condition=Q(status="used", tracked=True, event_range_id__isnull=False),
            ),
            models.CheckConstraint(name="job_input_status", condition=Q(status__in=["live", "used", "returned"])),
        ]
        indexes = [
            models.Index(fields=["file_id"], name="job_input_returned", condition=Q(status="returned")),
            # With job_input_one_live: who uses a file now.
            models.Index(
                fields=["file_id"],
                name="job_input_live_shared",
                condition=Q(status="live") & (Q(tracked=False) | Q(event_range_id__isnull=False)),
            ),
            # With job_input_used_once: who used a file. An index of all inputs would cost each job's writes.
            models.Index(
                fields=["file_id"],
                name="job_input_used_shared",
                condition=Q(status="used") & (Q(tracked=False) | Q(event_range_id__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} {self.file_id}"


class JobResult(models.Model):
    """How a job ended: written once, at its end."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="result")
    reported_status = models.CharField(
        max_length=16, default="", db_default="", help_text="what the pilot reported; empty: nothing"
    )
    pilot_id = models.UUIDField(null=True, blank=True)
    host = models.CharField(max_length=255, default="", db_default="")
    start_time = models.DateTimeField(null=True, blank=True, help_text="when the payload began on the node")
    end_time = models.DateTimeField(null=True, blank=True, help_text="when the payload ended on the node")
    exit_code = models.IntegerField(null=True, blank=True)
    error_code = models.CharField(max_length=40, default="", db_default="")
    error_message = models.CharField(max_length=500, default="", db_default="", help_text="the line that tells first")
    fingerprint = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="what the error has in common with others; null: no error, or it is computed when counted",
    )
    metrics = models.JSONField(default=dict, db_default={})
    log_end = models.TextField(
        default="", db_default="", blank=True, help_text="end of the log of a job that failed, where that could not be stored"
    )
    notes = models.CharField(
        max_length=NOTES, default="", db_default="", help_text="what of the pilot's report could not be used, a line each"
    )
    metadata = models.JSONField(
        null=True, blank=True, help_text="what its payload told, of a preprocessing job: names with values; null: nothing"
    )
    samples = models.JSONField(
        null=True, blank=True, help_text="what the payload used over time: step_s, memory_mb, cpu_s; null: not told"
    )
    retry_actions = models.JSONField(
        null=True, blank=True, help_text="what followed from retry rules: rule, action, and what was done; null: nothing"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="job_result_times_readable",
                condition=(Q(start_time__isnull=True) | Q(start_time__range=READABLE))
                & (Q(end_time__isnull=True) | Q(end_time__range=READABLE)),
            )
        ]

    def __str__(self) -> str:
        return f"result of {self.job_id}"


class JobChange(models.Model):
    """One move of a job."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField(db_index=True)
    at = models.DateTimeField(db_default=Now())
    old = models.CharField(max_length=16, help_text="state before; '-' for an insertion")
    new = models.CharField(max_length=16, help_text="state after")
    epoch = models.IntegerField(help_text="the job's epoch after the move")
    who = models.CharField(max_length=128, help_text="agent, user or pilot")
    why = models.CharField(max_length=255, default="", db_default="")
    xid = TransactionIdField(
        db_default=CurrentTransaction(), editable=False, help_text="transaction that wrote it, by which the agent tally counts it"
    )

    class Meta:
        indexes = [models.Index(fields=["xid", "id"], name="job_change_by_transaction")]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.old} -> {self.new}"


class JobRetryHistory(models.Model):
    """Which job came from which: JEDI_Job_Retry_History of seed 001."""

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField()
    old_job_id = models.BigIntegerField(db_index=True)
    new_job_id = models.BigIntegerField(db_index=True)
    origin_job_id = models.BigIntegerField(db_index=True)
    relation_type = models.CharField(max_length=32, default="retry", db_default="retry")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "job retry histories"
        constraints = [models.UniqueConstraint(fields=["old_job_id", "new_job_id", "origin_job_id"], name="job_retry_once")]

    def __str__(self) -> str:
        return f"{self.old_job_id} -> {self.new_job_id}"
