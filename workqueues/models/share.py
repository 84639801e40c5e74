"""Work queues (JEDI_Work_Queue of seed 001), hierarchical global shares (the table GLOBAL_SHARES of the system of the documents,
row J2), and where each stands."""

from __future__ import annotations

from django.db import models


def _regex(help_text: str) -> models.CharField[str, str]:
    return models.CharField(max_length=256, blank=True, default="", db_default="", help_text=f"{help_text}; empty: any")


class GlobalShare(models.Model):
    """One node of the tree of a VO; tasks belong to leaves. A leaf takes tasks that its regular expressions match."""

    name = models.CharField(max_length=32, primary_key=True)
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", help_text="empty: at the top"
    )
    vo = models.CharField(max_length=32, help_text="virtual organization; the same in a whole tree")
    value = models.FloatField(help_text="weight among the shares beside it; 0: gets nothing")
    position = models.SmallIntegerField(default=0, db_default=0, help_text="order of matching and of ties; lower first")
    throttled = models.BooleanField(default=True, db_default=True, help_text="off: jobs are made without limit")
    prod_source_label = _regex("regular expression, matched from the beginning")
    working_group = _regex("regular expression; a task without group has an empty one")
    campaign = _regex("regular expression; tasks without campaign are not compared")
    processing_type = _regex("regular expression; tasks without type are not compared")
    trans_path = _regex("regular expression; tasks without transformation are not compared")

    class Meta:
        constraints = [models.CheckConstraint(name="share_value_not_negative", condition=models.Q(value__gte=0))]
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name


class Standing(models.Model):
    """What a unit should have, has, wants and may have, as the agent share saw it last. Amounts in HS06."""

    at = models.DateTimeField(help_text="when it was counted")
    place = models.FloatField(null=True, blank=True, help_text="of a leaf: 0 is served first, below 1; empty for others")
    above = models.BooleanField(
        default=False, db_default=False, help_text="more of it runs than it is entitled to, so it gets new jobs last"
    )
    ahead = models.FloatField(default=0.0, db_default=0.0, help_text="by how much it ran too much of late; below 0: too little")
    percent = models.FloatField(help_text="part of all, percent")
    target = models.FloatField(help_text="that part of all that runs")
    entitled = models.FloatField(help_text="what it may use now, with what idle ones leave")
    hs06_running = models.FloatField()
    hs06_queued = models.FloatField()
    jobs_running = models.IntegerField()
    jobs_queued = models.IntegerField()
    cores_running = models.IntegerField()
    cores_queued = models.IntegerField()

    class Meta:
        abstract = True


class ShareStanding(Standing):
    """Where a share stands; shares are counted whether they drive their VO or not."""

    share = models.OneToOneField(GlobalShare, models.CASCADE, primary_key=True, related_name="standing")

    def __str__(self) -> str:
        return self.share_id


class WorkQueueStanding(Standing):
    """Where a work queue stands in a VO that its work queues drive, or a Resource queue in another one (without place)."""

    id = models.AutoField(primary_key=True)
    vo = models.CharField(max_length=32, help_text="virtual organization; a queue may be for several")
    work_queue = models.ForeignKey(
        "workqueues.WorkQueue", models.CASCADE, db_index=False, related_name="standings", help_text="work queue or partition"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["work_queue", "vo"], name="work_queue_standing_once")]

    def __str__(self) -> str:
        return f"{self.work_queue_id} {self.vo}"


class WorkQueue(models.Model):
    """A partition of the workload with a share; each task maps to exactly one."""

    id = models.AutoField(primary_key=True, help_text="queue identifier (QUEUE_ID)")
    queue_name = models.CharField(max_length=32)
    queue_type = models.CharField(max_length=32, help_text="prodSourceLabel the queue is for; empty: all")
    vo = models.CharField(max_length=32, help_text="virtual organization; *: all")
    queue_share = models.SmallIntegerField(null=True, blank=True, help_text="share; null: not throttled")
    queue_order = models.SmallIntegerField(help_text="queues with lower order are evaluated first")
    criteria = models.CharField(
        max_length=256, blank=True, default="", help_text="selection over task parameters; empty takes all"
    )
    variables = models.CharField(
        max_length=256, blank=True, default="", help_text="values of the criteria's variables, p1:v,p2:v"
    )
    is_partition = models.BooleanField(default=False, help_text="a partition: has sub queues and no criteria (PARTITIONID -1)")
    partition = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, help_text="partition of a sub queue (PARTITIONID)"
    )
    stretchable = models.BooleanField(default=False, help_text="first to get what other queues do not use")
    queue_function = models.CharField(max_length=32, blank=True, default="", help_text="Resource: kept beside global shares")
    status = models.CharField(max_length=64, default="active", help_text="active or inactive")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue_name", "queue_type", "vo"], name="work_queue_name"),
            # Deferred, so that one set of changes may let two queues change places.
            models.UniqueConstraint(fields=["queue_order"], name="work_queue_order", deferrable=models.Deferrable.DEFERRED),
        ]

    def __str__(self) -> str:
        return self.queue_name
