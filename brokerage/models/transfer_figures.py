"""What our own transfers say of links: how much waits, and how fast it went. Kept by the agent `links`; small, whatever moved.

Names of sites, not references: what is known of a site that is gone goes with the next count.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class LinkLoad(models.Model):
    """What is open on a link for one activity, and the throughput of the link."""

    id = models.BigAutoField(primary_key=True)
    source = models.CharField(max_length=60, help_text="site where files come from")
    destination = models.CharField(max_length=60, help_text="site where they go")
    activity = models.CharField(max_length=32, help_text="what the files are")
    files = models.IntegerField(default=0, help_text="transfers that are not over")
    bytes = models.BigIntegerField(default=0, help_text="their size")
    mbps_1h = models.FloatField(null=True, blank=True, help_text="MB/s while something moved, in this hour and the one before")
    mbps_1d = models.FloatField(null=True, blank=True, help_text="the same of a day")
    mbps_1w = models.FloatField(null=True, blank=True, help_text="the same of a week")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "destination", "activity"], name="link_load_once")]

    def __str__(self) -> str:
        return f"{self.source} to {self.destination}: {self.activity}"


class LinkHour(models.Model):
    """What was brought over a link in transfers that ended within one hour."""

    id = models.BigAutoField(primary_key=True)
    source = models.CharField(max_length=60)
    destination = models.CharField(max_length=60)
    hour = models.DateTimeField(help_text="when the hour began")
    files = models.IntegerField()
    bytes = models.BigIntegerField()
    busy_s = models.FloatField(help_text="seconds in which at least one of them was under way")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["hour", "source", "destination"], name="link_hour_once")]

    def __str__(self) -> str:
        return f"{self.source} to {self.destination} at {self.hour}"


class TransferCount(models.Model):
    """The one row that says when links were last counted, and which ended transfers are in the hours already."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    counted_at = models.DateTimeField(help_text="when open transfers were last counted")
    ended_until = models.DateTimeField(help_text="transfers that ended until then are in the hours")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="transfer_count_one_row")]

    def __str__(self) -> str:
        return f"counted at {self.counted_at}"
