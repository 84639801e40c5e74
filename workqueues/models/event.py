"""Event ranges: JEDI_Events of seed 001."""

from __future__ import annotations

from django.db import models

from workqueues.models.dataset import Dataset
from workqueues.models.file import File
from workqueues.models.task import Task
from workqueues.states import EVENT


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
    file_not_deleted = models.CharField(max_length=1, blank=True, default="", db_default="")
    error_code = models.IntegerField(null=True, blank=True)
    error_diag = models.CharField(max_length=500, blank=True, default="", db_default="")
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
