"""Files of the datasets of a task, and the ranges of their events: JEDI_Dataset_Contents and JEDI_Events of seed 001."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from workqueues.models.dataset import Dataset
from workqueues.models.task import Task, text
from workqueues.rules.throttle.attempts import EVERY
from workqueues.states import EVENT, INPUT_FILE, OUTPUT_FILE

UNUSED = sorted(INPUT_FILE.unused)
STATUSES = tuple(dict.fromkeys(INPUT_FILE.states + OUTPUT_FILE.states))


class File(models.Model):
    """One file as one task uses or makes it. The same LFN stands in as many rows as tasks use it."""

    id = models.BigAutoField(primary_key=True, help_text="file identifier (FILEID)")
    dataset = models.ForeignKey(Dataset, models.CASCADE, db_index=False, related_name="files")
    task = models.ForeignKey(Task, models.CASCADE, db_index=False, related_name="+")
    lfn = models.CharField(max_length=256, help_text="logical file name")
    scope = text(30)
    guid = text(64)
    type = models.CharField(max_length=20, help_text="type of its dataset")
    fsize = models.BigIntegerField(null=True, blank=True, help_text="size, bytes")
    checksum = text(36, "adler32, 8 hex digits")
    n_events = models.IntegerField(null=True, blank=True, help_text="events in the file")
    first_event = models.BigIntegerField(null=True, blank=True, help_text="event number of the first processed event, or a seed")
    boundary_id = models.BigIntegerField(null=True, blank=True, help_text="files of different boundaries do not share a job")
    lumi_block_nr = models.IntegerField(null=True, blank=True)

    status = models.CharField(max_length=64, choices=[(s, s) for s in STATUSES])
    held = text(255, "why a ready file is not given to jobs")
    held_storage = text(60, "storage endpoint whose return a held file waits for")
    absent_since = models.DateTimeField(
        null=True, blank=True, help_text="when it was first found absent or damaged on a storage that answers"
    )
    look_due = models.DateTimeField(null=True, blank=True, help_text="when it is looked for on storage next; null: not at all")
    retry_due = models.DateTimeField(
        null=True, blank=True, help_text="when it may be given to a job again after a try that failed; null: now"
    )
    beside_file = models.BigIntegerField(
        null=True, blank=True, help_text="master file with which it stands in every job, of a secondary dataset"
    )
    beside_event = models.IntegerField(null=True, blank=True, help_text="first event of that file in the job, from 0")
    attempt_nr = models.SmallIntegerField(default=0, db_default=0, help_text="tries made, also closed and cancelled ones")
    max_attempt = models.SmallIntegerField(null=True, blank=True, help_text="tries allowed; null: no limit")
    failed_attempt = models.SmallIntegerField(default=0, db_default=0, help_text="tries that failed")
    max_failure = models.SmallIntegerField(null=True, blank=True, help_text="failures allowed; null: no limit")
    keep_track = models.BooleanField(default=True, db_default=True, help_text="its use is tracked: used once")
    ram_count = models.IntegerField(
        default=0, db_default=0, help_text="memory need after memory failures, in the task's ram_unit"
    )
    job_id = models.BigIntegerField(null=True, blank=True, help_text="last job that used the file (PANDAID)")
    out_job_id = models.BigIntegerField(null=True, blank=True, help_text="job that makes or made the file (OUTPANDAID)")
    element_id = models.BigIntegerField(null=True, blank=True, help_text="element that has the file, or in which it was made")
    report_due = models.BooleanField(
        default=False, db_default=False, help_text="its end is yet to be told to the parent broker, from which it came"
    )
    job_set_id = models.BigIntegerField(null=True, blank=True, help_text="job set that uses the file")
    is_waiting = text(1, "Y: waits for a real co-jumbo job")
    proc_status = text(64, "state of the job that uses it")
    optional = models.BooleanField(default=False, db_default=False, help_text="an output that its job may leave out")
    no_output = models.BooleanField(default=False, db_default=False, help_text="an optional output that the job did not make")
    lost_at = models.DateTimeField(null=True, blank=True, help_text="when a finished output was lost")
    creation_date = models.DateTimeField(db_default=Now())
    last_attempt_time = models.DateTimeField(null=True, blank=True, help_text="when it was last given to a job")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="file_attempts_within_limits",
                condition=Q(attempt_nr__gte=0, failed_attempt__gte=0)
                & (Q(max_attempt__isnull=True) | Q(attempt_nr__lte=F("max_attempt"))),
            ),
            models.UniqueConstraint(
                fields=["dataset", "lfn"],
                name="file_output_name_once",
                condition=Q(out_job_id__isnull=False) & ~Q(status="failed"),
            ),
        ]
        indexes = [
            models.Index(fields=["dataset", "status", "id"], name="file_by_state"),
            models.Index(fields=["task", "type", "id"], name="file_of_task"),
            models.Index(fields=["lfn"], name="file_by_lfn"),
            models.Index(fields=["task"], name="file_held", condition=~Q(held="")),
            models.Index(
                fields=["dataset", "status", "id"],
                name="file_fresh",
                condition=Q(status__in=UNUSED, held="", retry_due__isnull=True, beside_file__isnull=True),
            ),
            models.Index(
                fields=["dataset", "status", "retry_due"],
                name="file_retry_due",
                condition=Q(status__in=UNUSED, held="", retry_due__isnull=False),
            ),
            models.Index(fields=["dataset", "beside_file"], name="file_beside", condition=Q(beside_file__isnull=False)),
            models.Index(fields=["task", "look_due"], name="file_looked_for", condition=Q(look_due__isnull=False)),
            models.Index(
                fields=["task", "attempt_nr"],
                name="file_often_tried",
                condition=Q(attempt_nr__gte=EVERY, status__in=sorted(INPUT_FILE.live)),
            ),
            models.Index(fields=["task"], name="file_to_merge", condition=Q(status="prepared")),
            models.Index(fields=["element_id", "id"], name="file_of_element", condition=Q(element_id__isnull=False)),
            models.Index(
                fields=["task"], name="file_to_report", condition=Q(report_due=True, status__in=sorted(INPUT_FILE.final))
            ),
            models.Index(fields=["out_job_id"], name="file_out_job", condition=Q(out_job_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.lfn


class EventRange(models.Model):
    """A range of events of one file, as one job or job set processes it."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, db_index=False, related_name="+")
    dataset = models.ForeignKey(Dataset, models.CASCADE, db_index=False, related_name="+")
    file = models.ForeignKey(File, models.CASCADE, related_name="event_ranges")
    status = models.CharField(max_length=16, choices=[(s, s) for s in EVENT.states])
    job_id = models.BigIntegerField(help_text="job that processes the range; its job set while nobody does (PANDAID)")
    job_process_id = models.IntegerField(default=0, db_default=0, help_text="process of the job; start of the range on the wire")
    def_min_event_id = models.IntegerField(null=True, help_text="first event of the range, counted from 0 in the file")
    def_max_event_id = models.IntegerField(null=True, help_text="last event of the range, itself part of it")
    processed_up_to_event_id = models.IntegerField(null=True, blank=True)
    attempt_nr = models.SmallIntegerField(default=0, db_default=0, help_text="tries of its events, with this one")
    failed_attempt = models.SmallIntegerField(default=0, db_default=0, help_text="tries of its events that failed, up to now")
    objstore_id = models.IntegerField(null=True, blank=True, help_text="object store with the pre-merged file")
    event_offset = models.BigIntegerField(null=True, blank=True, help_text="offset of positional event numbers")
    is_jumbo = models.BooleanField(default=False, db_default=False, help_text="processed by a jumbo job")
    ziprow_id = models.BigIntegerField(null=True, blank=True, help_text="zip file the output is in")
    file_not_deleted = text(1)
    error_code = models.IntegerField(null=True, blank=True)
    error_diag = text(500)
    path_convention = models.SmallIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task", "job_id", "file", "job_process_id", "attempt_nr"], name="event_range_identity"
            ),
        ]
        indexes = [models.Index(fields=["job_id", "status"], name="event_range_of_job")]

    def __str__(self) -> str:
        return f"{self.task_id}-{self.job_id}-{self.file_id}-{self.job_process_id}-{self.attempt_nr}"
