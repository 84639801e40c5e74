"""The record of each agent: when it last began and succeeded, what it did, what went wrong."""

from __future__ import annotations

from django.db import models


class Agent(models.Model):
    """One row per agent, whichever process runs it."""

    name = models.CharField(max_length=32, primary_key=True)
    last_start = models.DateTimeField(null=True, blank=True, help_text="when a run last began")
    last_success = models.DateTimeField(null=True, blank=True, help_text="when a run last ended well")
    last_error_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="", help_text="what the last failed run said")
    left_out = models.TextField(
        blank=True, default="", db_default="", help_text="what the last good run could not work on, and why"
    )
    last_run = models.CharField(max_length=56, blank=True, default="", help_text="identity of the last run")
    rows = models.BigIntegerField(default=0, help_text="rows the last run handled")
    total_rows = models.BigIntegerField(default=0, help_text="rows handled since installation")
    runs = models.BigIntegerField(default=0)
    duration_s = models.FloatField(default=0, help_text="time the last run took, s")

    def __str__(self) -> str:
        return self.name
