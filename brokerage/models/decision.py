"""Stored decisions: what the brokerage saw, decided and why (decision B16). Texts with numbers are made when somebody reads."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class GridSnapshot(models.Model):
    """The queues as one cycle saw them, as compressed columns."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    columns = models.BinaryField(help_text="compressed columns; brokerage.rules.snapshot reads them")
    digest = models.CharField(max_length=64, db_index=True, help_text="sha256 of columns")

    def __str__(self) -> str:
        return f"{self.id} {self.at:%Y-%m-%dT%H:%M:%SZ}"


class Decision(models.Model):
    """One decision of a broker about one task; equal ones in a row are one row with a count."""

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField()
    policy = models.CharField(max_length=64)
    policy_version = models.CharField(max_length=16, default="", db_default="")
    outcome = models.CharField(max_length=16, help_text="assign or pending")
    n_candidates = models.IntegerField()
    n_chosen = models.IntegerField()
    ask = models.JSONField(help_text="what was asked")
    record = models.BinaryField(help_text="first criteria, verdict bits, weights; brokerage.rules.decision_record reads it")
    config = models.JSONField(default=dict, help_text="configuration values the decision used")
    config_revision = models.IntegerField(default=0)
    seed = models.CharField(max_length=64)
    snapshot = models.ForeignKey(GridSnapshot, models.SET_NULL, null=True, blank=True)
    n_times = models.IntegerField(default=1, db_default=1, help_text="how many equal decisions in a row")
    first_at = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["task_id", "-id"], name="decision_of_task")]

    def __str__(self) -> str:
        return f"task {self.task_id}: {self.outcome}"
