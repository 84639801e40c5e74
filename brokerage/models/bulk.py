"""One act on many tasks or jobs: who asked for it, on what, and what became of each."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class BulkAction(models.Model):
    """An act that is carried out in the background on each of its targets, with the rights of who asked for it.

    The counts are those of its targets' outcomes, written in the same transactions.
    """

    id = models.BigAutoField(primary_key=True)
    of = models.CharField(max_length=8, help_text="tasks or jobs")
    act = models.CharField(max_length=16, help_text="kill, retry, pause, resume or priority")
    options = models.JSONField(default=dict, help_text="the new priority")
    comment = models.CharField(max_length=200, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", help_text="who asked for it")
    rights = models.JSONField(help_text="superuser and roles by VO that the caller had; it never has more")
    selection = models.JSONField(null=True, help_text="the filter, or null where the targets were named")
    moment = models.DateTimeField(help_text="what came after it is not touched")
    vos = ArrayField(models.CharField(max_length=64), default=list, db_default=[], help_text="VOs in which it may act")
    n = models.IntegerField(help_text="targets")
    done = models.IntegerField(default=0, db_default=0, help_text="targets that it was done with")
    skipped = models.IntegerField(default=0, db_default=0, help_text="targets that were skipped, each with its reason")
    not_done = models.IntegerField(default=0, db_default=0, help_text="targets that were left when it was stopped")
    at = models.DateTimeField(db_default=Now(), help_text="when it was asked for")
    stopped_at = models.DateTimeField(null=True, help_text="when somebody stopped it")
    stopped_by = models.CharField(max_length=150, blank=True, default="", db_default="", help_text="who stopped it")
    ended_at = models.DateTimeField(null=True, help_text="when the last target was done with")

    class Meta:
        indexes = [models.Index(fields=["id"], name="bulk_action_open", condition=models.Q(ended_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.act} of {self.n} {self.of}"


class BulkTarget(models.Model):
    """One task or job of an act; its outcome is written in the transaction that did it."""

    id = models.BigAutoField(primary_key=True)
    action = models.ForeignKey(BulkAction, models.CASCADE, db_index=False, related_name="targets")
    target_id = models.BigIntegerField(help_text="number of the task or job")
    outcome = models.CharField(
        max_length=8, blank=True, default="", db_default="", help_text="empty: to do; done, skipped or not_done"
    )
    said = models.CharField(max_length=400, blank=True, default="", db_default="", help_text="what happens now, or why not")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "target_id"], name="bulk_target_once")]
        indexes = [models.Index(fields=["action", "outcome", "id"], name="bulk_target_by_outcome")]

    def __str__(self) -> str:
        return f"{self.action_id}: {self.target_id}"
