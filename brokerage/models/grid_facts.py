"""What is measured, declared and published between the sites and at the queues: links, slots, disk I/O, software.

Each table is what the last document or feed with that part said; rows that it no longer has are removed, nothing refers to them.
Shapes: facts on queues 5.5, 5.6 and 4.6.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from brokerage.models.grid import ComputingQueue, Site


class Link(models.Model):
    """The way of files from one site to another, for one activity."""

    id = models.AutoField(primary_key=True)
    source = models.ForeignKey(Site, models.CASCADE, related_name="links_from", help_text="site where files come from")
    destination = models.ForeignKey(Site, models.CASCADE, related_name="links_to", help_text="site where they go")
    activity = models.CharField(max_length=64, default="Production Output", help_text="what the files are")
    files_queued = models.IntegerField(default=0, help_text="files that wait")
    mbps_1h = models.FloatField(null=True, blank=True, help_text="throughput of the last hour, MB/s as the feed gives it")
    mbps_1d = models.FloatField(null=True, blank=True, help_text="throughput of the last day")
    mbps_1w = models.FloatField(null=True, blank=True, help_text="throughput of the last week")
    closeness = models.FloatField(null=True, blank=True, help_text="0 nearest, 11 farthest, -1 blocked")
    measured_at = models.DateTimeField(null=True, blank=True, help_text="when it was measured; empty: always counts as fresh")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "destination", "activity"], name="link_once")]

    def __str__(self) -> str:
        return f"{self.source_id} to {self.destination_id}: {self.activity}"


class Software(models.Model):
    """The software document that a queue publishes; the row ALL knows every tag."""

    queue = models.CharField(max_length=60, primary_key=True, help_text="name of the queue, or ALL")
    document = models.JSONField(default=dict, help_text="cmtconfigs, containers, cvmfs, tags, architectures")

    class Meta:
        verbose_name_plural = "software"

    def __str__(self) -> str:
        return self.queue


class DeclaredSlots(models.Model):
    """How many jobs of a share may run at a queue, as somebody declared it.

    0: as many as are starting. Less than 0, or expired: ignored.
    """

    id = models.AutoField(primary_key=True)
    queue = models.ForeignKey(ComputingQueue, models.CASCADE, related_name="slots")
    share = models.CharField(max_length=64, blank=True, default="", help_text="global share; empty: all")
    resource_type = models.CharField(max_length=56, blank=True, default="", help_text="class of resources; empty: all")
    n = models.IntegerField(default=0, help_text="jobs that may run")
    expires = models.DateTimeField(null=True, blank=True, help_text="until when they hold; empty: always")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "share", "resource_type"], name="declared_slots_once")]
        verbose_name_plural = "declared slots"

    def __str__(self) -> str:
        return f"{self.queue_id} {self.share}/{self.resource_type}: {self.n}"


class Measured(models.Model):
    """What is measured of a queue's running jobs."""

    queue = models.OneToOneField(ComputingQueue, models.CASCADE, primary_key=True, related_name="measured")
    disk_io_per_core = models.FloatField(default=0, help_text="disk I/O of running jobs, kB/s per core")
    starts_per_hour = models.FloatField(null=True, blank=True, help_text="jobs that begin in an hour; empty: from our own jobs")

    class Meta:
        verbose_name_plural = "measured"
        constraints = [models.CheckConstraint(name="measured_not_negative", condition=Q(disk_io_per_core__gte=0))]

    def __str__(self) -> str:
        return f"{self.queue_id}: {self.disk_io_per_core:g} kB/s per core"
