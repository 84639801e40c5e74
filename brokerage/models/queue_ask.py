"""What the last asks at each queue got, and how many asks ended in which way (row X1, decision H9)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from brokerage.models.grid import ComputingQueue
from brokerage.rules.dispatch.queue_asks import OUTCOMES

_OUTCOME = [(outcome, outcome) for outcome in OUTCOMES]


class QueueAsk(models.Model):
    """One of the last asks at a queue. There is no constraint on the pilot: it may be gone."""

    id = models.BigAutoField(primary_key=True)
    queue = models.ForeignKey(ComputingQueue, models.CASCADE, db_index=False, related_name="+")
    at = models.DateTimeField()
    pilot_id = models.UUIDField()
    outcome = models.CharField(max_length=12, choices=_OUTCOME, help_text="job, or why there was nothing")
    jobs = ArrayField(models.BigIntegerField(), default=list, help_text="jobs that it got")
    offer = models.JSONField(help_text="what the pilot offered: attributes of its resource with their values")
    told = models.JSONField(default=dict, help_text="why there was nothing: text, closest task queue, what it lacked, limits")
    vo = models.CharField(max_length=32, default="", help_text="whose jobs it got, or whose it missed; empty: nobody's")
    unknown = ArrayField(models.CharField(max_length=64), default=list, help_text="fields of the ask that are not known")
    took_ms = models.FloatField(help_text="from its arrival in the verb to its outcome")

    class Meta:
        indexes = [models.Index(fields=["queue", "id"], name="queue_ask_of_queue")]

    def __str__(self) -> str:
        return f"{self.queue_id}: {self.outcome}"


class AskHour(models.Model):
    """How many asks at a queue ended in one way, by the minutes of an hour."""

    id = models.BigAutoField(primary_key=True)
    queue = models.ForeignKey(ComputingQueue, models.CASCADE, db_index=False, related_name="+")
    outcome = models.CharField(max_length=12, choices=_OUTCOME)
    hour = models.DateTimeField(help_text="its beginning")
    minutes = ArrayField(models.IntegerField(), help_text="one number for each of its 60 minutes")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "hour", "outcome"], name="ask_hour_once")]

    def __str__(self) -> str:
        return f"{self.queue_id} {self.hour:%H}: {self.outcome}"
