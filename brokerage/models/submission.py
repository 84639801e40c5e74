"""Jobs that were submitted to a site and have not ended there (row W4). Each has a pilot of its own."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from brokerage.models.dispatch import Pilot
from brokerage.models.grid import Site


class SubmittedJob(models.Model):
    """A job with the pilot that was submitted for it; the row goes once the job is held no more.

    A job is submitted once: it never waits again. Of several processes that come as its pilot the first one is it.
    """

    job_id = models.BigIntegerField(primary_key=True)
    pilot = models.OneToOneField(Pilot, models.CASCADE, related_name="submitted_job")
    site = models.ForeignKey(Site, models.CASCADE, db_index=False, related_name="+")
    kind = models.CharField(max_length=16, help_text="kind of jobs, as thresholds tell them apart")
    submitter = models.CharField(max_length=32, help_text="what starts its pilot")
    submitted_at = models.DateTimeField(db_default=Now())
    handle = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="the pilot, as the submitter knows it; empty: not started",
    )
    tries = models.SmallIntegerField(default=0, db_default=0, help_text="how often it could not be started")
    claimed_by = models.CharField(
        max_length=420, blank=True, default="", db_default="", help_text="the process that came as its pilot; empty: none yet"
    )

    class Meta:
        indexes = [models.Index(fields=["submitter"], name="submitted_job_to_start", condition=models.Q(handle=""))]

    def __str__(self) -> str:
        return f"{self.job_id} to {self.site_id}"
