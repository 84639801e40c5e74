"""The grid: sites, storage endpoints, computing queues and which storage a queue uses.

Attribute names and units: facts on queues 5.1. Columns hold what is valid: what a document or feed says, under the overrides of
operators (`grid_overrides`). Not here: what is measured between and at them (`grid_facts`), feeds (`grid_feeds`).
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Described(models.Model):
    """What a grid document or a feed describes."""

    source = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="feed that describes it; empty: a grid document or the admin",
    )
    gone_at = models.DateTimeField(null=True, blank=True, help_text="when its document or feed no longer had it")
    fault = models.TextField(
        blank=True, default="", db_default="", help_text="what is wrong with it in the feed; the last good version holds"
    )
    fault_since = models.DateTimeField(null=True, blank=True, help_text="since when it is faulty in the feed")
    good_at = models.DateTimeField(null=True, blank=True, help_text="when its feed or document last had a good version of it")

    class Meta:
        abstract = True


class Site(Described):
    """A place that computes or stores."""

    name = models.CharField(max_length=60, primary_key=True)
    state = models.CharField(max_length=16, default="ACTIVE", help_text="only ACTIVE sites are used")
    nucleus = models.BooleanField(default=False, help_text="may collect the outputs of tasks")
    attributes = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="attributes of its document without a column of their own"
    )

    def __str__(self) -> str:
        return self.name


class StorageEndpoint(Described):
    """A storage area of a site."""

    name = models.CharField(max_length=60, primary_key=True)
    site = models.ForeignKey(Site, models.PROTECT, related_name="storages")
    type = models.CharField(max_length=32, default="DATADISK", help_text="DATADISK, SCRATCHDISK, DATATAPE, ...")
    state = models.CharField(max_length=16, default="ACTIVE")
    is_tape = models.BooleanField(default=False)
    free_gb = models.FloatField(null=True, blank=True, help_text="free space, GB = 10^9 bytes")
    expired_gb = models.FloatField(null=True, blank=True, help_text="space of expired files, GB")
    status = models.JSONField(
        default=dict, blank=True, help_text="ON, OFF or TEST per access: read_lan, write_lan, read_wan, write_wan"
    )
    path = models.CharField(
        max_length=1024, blank=True, default="", help_text="directory, where the endpoint is one that pilots reach"
    )
    attributes = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="attributes of its document without a column of their own"
    )

    def __str__(self) -> str:
        return self.name


class ComputingQueue(Described):
    """What pilots run for: slots of one shape at one site."""

    id = models.AutoField(primary_key=True)
    name = models.CharField(max_length=60, unique=True, help_text="nickname of the queue")
    site = models.ForeignKey(Site, models.PROTECT, related_name="queues")
    status = models.CharField(max_length=16, default="online", help_text="online, standby, brokeroff, test, offline, paused")
    type = models.CharField(max_length=16, default="unified", help_text="production, analysis, unified")
    capability = models.CharField(max_length=32, blank=True, default="")
    corecount = models.IntegerField(default=0, help_text="cores per slot; 0: any")
    corepower = models.FloatField(default=0, help_text="HS06 per core; 0: unknown, 10 is used")
    maxrss = models.IntegerField(default=0, help_text="memory per slot, MB; 0: no limit")
    minrss = models.IntegerField(default=0, help_text="least memory of a job, MB per slot")
    maxtime = models.IntegerField(default=0, help_text="longest job, s; 0: no limit")
    mintime = models.IntegerField(default=0, help_text="shortest job, s")
    maxwdir = models.IntegerField(default=0, help_text="scratch disk per slot, MB; 0: no limit")
    transferringlimit = models.IntegerField(default=0, help_text="most jobs in transferring; 0: 2000")
    workflow = models.CharField(max_length=32, blank=True, default="", help_text="selects HEARTBEAT_TIMEOUT_<workflow>")
    catchall = models.CharField(
        max_length=1024, blank=True, default="", help_text="further switches, `key` or `key=value`, comma list"
    )
    attributes = models.JSONField(
        default=dict, blank=True, help_text="attributes of the grid document without a column of their own"
    )
    local_pilots = models.IntegerField(default=0, help_text="pilots that the supervisor starts for this queue")
    last_start = models.DateTimeField(null=True, blank=True, help_text="when a job last began to run here")
    modified_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class QueueStorage(models.Model):
    """A storage endpoint that a queue reads or writes."""

    queue = models.ForeignKey(ComputingQueue, models.CASCADE, related_name="storages")
    storage = models.ForeignKey(StorageEndpoint, models.CASCADE, related_name="queues")
    access = models.CharField(max_length=32, help_text="read_lan or write_lan, with _analysis for that scope")
    position = models.SmallIntegerField(help_text="order; 1 is the default")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "access", "storage"], name="queue_storage_once")]
        ordering = ["queue", "access", "position"]

    def __str__(self) -> str:
        return f"{self.queue_id} {self.access} {self.storage_id}"
