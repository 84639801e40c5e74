"""Work queues: JEDI_Work_Queue of seed 001."""

from __future__ import annotations

from django.db import models


class WorkQueue(models.Model):
    """A partition of the workload with a share; each task maps to exactly one."""

    id = models.AutoField(primary_key=True, help_text="queue identifier (QUEUE_ID)")
    queue_name = models.CharField(max_length=32)
    queue_type = models.CharField(max_length=32, help_text="prodSourceLabel the queue is for; empty: all")
    vo = models.CharField(max_length=32, help_text="virtual organization; *: all")
    queue_share = models.SmallIntegerField(null=True, blank=True, help_text="share; null: not throttled")
    queue_order = models.SmallIntegerField(unique=True, help_text="queues with lower order are evaluated first")
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
        constraints = [models.UniqueConstraint(fields=["queue_name", "queue_type", "vo"], name="work_queue_name")]

    def __str__(self) -> str:
        return self.queue_name
