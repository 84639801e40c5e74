"""Stored decisions: what the brokerage saw, decided and why (decision B16). Texts with numbers are made when somebody reads."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class GridPart(models.Model):
    """A part of snapshots that changes seldom, stored once: the grid with its software, or the links."""

    digest = models.CharField(max_length=64, primary_key=True, help_text="sha256 of the part before it is compressed")
    content = models.BinaryField(help_text="compressed; brokerage.rules.world.stored_snapshot reads it")

    def __str__(self) -> str:
        return self.digest


class StoredSnapshot(models.Model):
    """The grid as one cycle saw it."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    grid = models.ForeignKey(GridPart, models.PROTECT, related_name="+", help_text="sites, storages, queues and software")
    links = models.ForeignKey(GridPart, models.PROTECT, related_name="+", help_text="links between sites")
    moment = models.BinaryField(help_text="jobs, pilots and what else changes from cycle to cycle, compressed")

    class Meta:
        db_table = "brokerage_gridsnapshot"

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
    record = models.BinaryField(help_text="first criteria, verdict bits, weights; brokerage.rules.decision.record reads it")
    own = models.BinaryField(
        default=b"", help_text="what it knew beyond the snapshot, compressed; brokerage.rules.world.stored_snapshot reads it"
    )
    sameness = models.CharField(
        max_length=64, default="", db_default="", help_text="digest of policy, candidates, first criteria and outcome"
    )
    config = models.JSONField(default=dict, help_text="configuration values the decision used")
    config_revision = models.IntegerField(default=0)
    seed = models.CharField(max_length=64)
    snapshot = models.ForeignKey(StoredSnapshot, models.SET_NULL, null=True, blank=True)
    pinned = models.BooleanField(default=False, db_default=False, help_text="its snapshot is kept until somebody unpins it")
    n_times = models.IntegerField(default=1, db_default=1, help_text="how many equal decisions in a row")
    first_at = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["task_id", "-id"], name="decision_of_task"),
            models.Index(fields=["snapshot"], name="decision_pinned", condition=Q(pinned=True)),
        ]

    def __str__(self) -> str:
        return f"task {self.task_id}: {self.outcome}"
