"""Tasks, their parameters and the keys of their submissions: JEDI_Tasks, JEDI_TaskParams, JEDI_JobParams_Template of seed 001."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workqueues.states import TASK


def text(length: int, help_text: str = "") -> models.CharField[str, str]:
    return models.CharField(max_length=length, blank=True, default="", db_default="", help_text=help_text)


def _count(help_text: str) -> models.IntegerField[int | None, int | None]:
    return models.IntegerField(null=True, blank=True, help_text=help_text)


def _amount(help_text: str) -> models.FloatField[float | None, float | None]:
    return models.FloatField(null=True, blank=True, help_text=help_text)


def _time(help_text: str) -> models.DateTimeField[Any, datetime | None]:
    return models.DateTimeField(null=True, blank=True, help_text=help_text)


class Task(models.Model):
    """One task: what a user asked for and how far it is."""

    id = models.BigAutoField(primary_key=True, help_text="task identifier (JEDITASKID)")
    task_name = text(256, "name of the task")
    user_name = text(128, "user who owns the task")
    submitted_by = text(128, "user who submitted it: the owner, or one with the role production for him")
    reads_vos = ArrayField(
        models.CharField(max_length=32), null=True, blank=True,
        help_text="VOs whose datasets the token that submitted it reached, where these are not all of its owner's; null: all"
    )  # fmt: skip
    working_group = text(32, "working group that owns the task")
    country_group = text(20, "country group of the user")
    vo = text(32, "virtual organization that owns the task")
    prod_source_label = text(20, "source label: managed, user, test, ...")
    task_type = text(64, "type of the task: prod, anal, ...")
    processing_type = text(64, "type of the processing: evgen, simul, reco, ...")
    request_type = text(32, "type of the request")
    campaign = text(32, "campaign to which the task belongs")
    req_id = models.BigIntegerField(null=True, blank=True, help_text="identifier of the request")
    parent_tid = models.BigIntegerField(null=True, blank=True, help_text="parent task; the task itself when there is none")
    ticket_id = text(50, "ticket that keeps track of the task")
    ticket_system_type = text(16, "ticket system")
    gshare = text(32, "leaf of the global share tree")
    work_queue = models.ForeignKey(
        "workqueues.WorkQueue", models.PROTECT, null=True, blank=True, db_index=False, help_text="work queue (WORKQUEUE_ID)"
    )
    work_to = models.CharField(
        max_length=8, default="own", db_default="own", help_text="who does its work: own queues, children, or who is first"
    )
    resource_type = text(56, "class of the jobs' resources: SCORE, MCORE, ...")

    status = models.CharField(max_length=64, choices=[(s, s) for s in TASK.states], help_text="state of the machine `task`")
    old_status = text(64, "state that pending, throttled and paused come back to")
    status_since = models.DateTimeField(db_default=Now(), help_text="when status was entered (STATECHANGETIME)")
    ended_at = _time("when a final state was entered (ENDTIME); set exactly in one")
    super_status = text(64, "last status told to the request system")
    epoch = models.IntegerField(default=0, db_default=0, help_text="number of moves so far; fences concurrent writers")
    error_dialog = text(510, "why the task is where it is, in words")
    command = text(32, "command accepted and not yet carried out")
    command_by = text(128, "who gave the command")
    command_comment = text(255, "comment and qualifiers of the command")
    command_time = _time("when the command was accepted")
    next_look_at = _time("when a pending or throttled task is looked at again")

    creation_date = models.DateTimeField(db_default=Now(), help_text="when the record was inserted")
    modification_time = models.DateTimeField(db_default=Now(), help_text="when an agent last worked on the task; orders pick-up")
    start_time = _time("when the first job was made")
    frozen_time = _time("start of the unbroken spell without success")
    throttled_time = _time("when throttling ends")
    num_throttled = models.SmallIntegerField(null=True, blank=True, help_text="how many times throttled so far")
    assessment_time = _time("when the statistics were updated")
    n_measured = models.IntegerField(default=0, db_default=0, help_text="finished jobs by which its needs were measured last")
    rescue_time = _time("when the rescue process last checked the task")
    locked_by = text(56, "agent run that holds the claim")
    locked_time = _time("when the claim ends unless renewed")
    agent_faults = models.SmallIntegerField(default=0, db_default=0, help_text="how often in a row an agent failed on the task")
    faulty_agent = text(32, "the agent that failed on it last")
    quarantined_at = _time("since when no agent works on the task, as one failed on it too often; a retry lets it go on")

    task_priority = models.IntegerField(default=0, db_default=0, help_text="priority asked for")
    current_priority = models.IntegerField(default=0, db_default=0, help_text="priority now")
    attempt_nr = models.SmallIntegerField(default=0, db_default=0, help_text="tries of the task: +1 per retry or incremental run")
    progress = models.SmallIntegerField(default=0, db_default=0, help_text="percent of input files finished")
    failure_rate = models.SmallIntegerField(null=True, blank=True, help_text="percent of the jobs that failed, at the end")
    goal = models.SmallIntegerField(null=True, blank=True, help_text="wanted completeness, percent x 10; null: all")
    term_condition = text(100, "termination condition in words")
    split_rule = text(200, "rules for splitting, `XX=value` joined by commas")

    architecture = text(256, "platform and hardware the payload needs")
    trans_uses = text(64, "software release")
    trans_home = text(128, "software cache with the transformation")
    trans_path = text(128, "name of the transformation")
    container_name = text(200, "image of the payload")
    core_count = models.IntegerField(default=1, db_default=1, help_text="cores per job; 0: may vary")
    ram_count = _count("memory, in ram_unit")
    ram_unit = text(32, "MB or MBPerCore")
    base_ram_count = _count("memory that does not scale with cores, MB")
    walltime = _count("wall time per MB of input, s")
    walltime_unit = text(32, "unit of walltime")
    base_walltime = _count("wall time that does not scale, s")
    cpu_time = _amount("HS06 x CPU time per event, in cpu_time_unit")
    cpu_time_unit = text(32, "HS06sPerEvent or mHS06sPerEvent")
    cpu_efficiency = models.SmallIntegerField(null=True, blank=True, help_text="single-core efficiency, percent; 0: no scaling")
    out_disk_count = _amount("output size per MB of input or per event, in out_disk_unit")
    out_disk_unit = text(32, "kB, MB or GB; with PerEvent: per event")
    work_disk_count = _amount("size of the work directory, in work_disk_unit")
    work_disk_unit = text(32, "kB, MB or GB")
    io_intensity = _amount("(input + output size) / wall time / cores, in io_intensity_unit")
    io_intensity_unit = text(32, "kBPerS")
    disk_io = _amount("local disk access, in disk_io_unit")
    disk_io_unit = text(32, "kBPerS")
    merge_core_count = _count("cores per merge job; 0: may vary")
    merge_ram_count = _count("memory of merge jobs, in merge_ram_unit")
    merge_ram_unit = text(32, "unit of merge_ram_count")
    merge_walltime = _count("wall time of merge jobs per MB of input, s")
    merge_walltime_unit = text(32, "unit of merge_walltime")

    cloud = text(16, "cloud of the task; WORLD: a nucleus is chosen")
    site = text(255, "comma list of computing queues; empty: normal brokerage")
    nucleus = text(52, "site that collects the outputs")
    event_service = models.SmallIntegerField(default=0, db_default=0, help_text="1: event service")
    use_jumbo = text(1, "state of jumbo jobs: W, R, P, L, D")
    ami_flag = text(10, "READY once done or finished")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="task_ended_exactly_when_final",
                condition=Q(status__in=sorted(TASK.final), ended_at__isnull=False)
                | (~Q(status__in=sorted(TASK.final)) & Q(ended_at__isnull=True)),
            ),
            models.CheckConstraint(name="task_goal_per_mille", condition=Q(goal__isnull=True) | Q(goal__gte=0, goal__lte=1000)),
            models.CheckConstraint(name="task_progress_percent", condition=Q(progress__gte=0, progress__lte=100)),
        ]
        indexes = [
            models.Index(fields=["status", "vo", "task_type", "-current_priority", "id"], name="task_by_state_priority"),
            models.Index(fields=["work_queue", "status", "-current_priority", "id"], name="task_by_work_queue"),
            models.Index(fields=["user_name", "vo", "task_type", "status", "-current_priority", "id"], name="task_by_user"),
            models.Index(fields=["status", "task_type", "vo", "user_name"], name="task_users_by_state"),
            models.Index(fields=["status", "task_type", "creation_date"], name="task_slow"),
            models.Index(fields=["command_time"], name="task_commanded", condition=~Q(command="")),
            models.Index(fields=["locked_time"], name="task_locked", condition=~Q(locked_by="")),
            models.Index(fields=["next_look_at"], name="task_next_look", condition=Q(next_look_at__isnull=False)),
            models.Index(fields=["quarantined_at"], name="task_quarantined", condition=Q(quarantined_at__isnull=False)),
            # Tasks with the parameter disableReassign: rare, and looked for in every run of the agent reap.
            models.Index(fields=["id"], name="task_keeps_jobs", condition=Q(ended_at__isnull=True, split_rule__contains="DI=1")),
            # Tasks whose work goes to child brokers: few or none, and looked for in every run of the agent offer.
            models.Index(fields=["id"], name="task_of_children", condition=Q(ended_at__isnull=True) & ~Q(work_to="own")),
            models.Index(fields=["parent_tid"], name="task_by_parent"),
            models.Index(fields=["vo", "user_name", "task_name"], name="task_by_name"),
            models.Index(fields=["status", "-id"], name="task_list_by_state"),
            # A VO with few tasks: its list does not leaf through the tasks of the others.
            models.Index(fields=["vo", "-id"], name="task_list_by_vo"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.task_name}"


class TaskParams(models.Model):
    """The parameters a task was submitted with, as they came, with what was changed when it was run again (JEDI_TaskParams)."""

    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, related_name="params")
    task_params = models.JSONField(help_text="PanDA's task parameters")

    class Meta:
        verbose_name = verbose_name_plural = "task parameters"

    def __str__(self) -> str:
        return f"parameters of task {self.task_id}"


class JobParamsTemplate(models.Model):
    """The template that the job parameters of a task are filled from (JEDI_JobParams_Template); fixed once it has jobs."""

    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, related_name="job_params_template")
    job_params_template = models.TextField(help_text="command line with placeholders")

    def __str__(self) -> str:
        return f"job parameters of task {self.task_id}"


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


class TaskThrottle(models.Model):
    """One cause for which a task is throttled; it is released when none holds any more (decision D25)."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="throttles")
    cause = models.CharField(max_length=24, help_text="attempts, disk_transfers, tape_staging, user_cap, failing, busy_sites")
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(null=True, blank=True, help_text="when it ends by itself; null: when what caused it is over")
    why = text(255, "the cause with its numbers")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "cause"], name="task_throttle_once")]
        indexes = [models.Index(fields=["cause", "until"], name="task_throttle_by_cause")]

    def __str__(self) -> str:
        return f"{self.task_id}: {self.cause}"
