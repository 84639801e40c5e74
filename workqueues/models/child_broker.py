"""Other brokers: the children that pull from this one, and the parent from which this one pulls; rows W6 and X5."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.access.models import Credential


class Contact(models.Model):
    """What one broker knows of another by their last messages."""

    instance = models.UUIDField(null=True, blank=True, help_text="the other broker; the same as long as it lives")
    incarnation = models.UUIDField(null=True, blank=True, help_text="new whenever the other broker was restored from a backup")
    version = models.CharField(max_length=40, blank=True, default="", db_default="")
    protocol = models.SmallIntegerField(null=True, blank=True, help_text="version of the messages that it speaks")
    clock_ahead_s = models.FloatField(default=0.0, db_default=0.0, help_text="by how much its clock is ahead of ours, s")
    last_contact = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=510, blank=True, default="", db_default="", help_text="why its last message failed")
    last_error_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class ChildBroker(Contact):
    """A broker that may pull elements here. What it told of itself is kept as it came."""

    id = models.AutoField(primary_key=True)
    name = models.CharField(max_length=64, unique=True)
    credential = models.OneToOneField(Credential, models.PROTECT, related_name="child_broker", help_text="its token")
    team = models.CharField(max_length=64, blank=True, default="", db_default="", help_text="no elements of other teams")
    vo = models.CharField(max_length=32, blank=True, default="", db_default="", help_text="only elements of this VO; empty: all")
    created_at = models.DateTimeField(db_default=Now())
    replaced_at = models.DateTimeField(null=True, blank=True, help_text="when it was last not the one that it was")
    drain_since = models.DateTimeField(null=True, blank=True, help_text="since when it gets nothing new; null: it may pull")
    drain_until = models.DateTimeField(null=True, blank=True, help_text="when what it still has is taken back")
    is_draining = models.BooleanField(default=False, db_default=False, help_text="it said itself that it pulls nothing more")
    sites = models.JSONField(default=dict, help_text="site -> its state and slots, as the child last told")
    jobs_by_priority = models.JSONField(default=dict, help_text="site -> priority -> jobs there, as it last told")
    free_jobs = models.IntegerField(null=True, blank=True, help_text="jobs that it may still have; null: any number")
    last_pull_at = models.DateTimeField(null=True, blank=True)
    last_pull_key = models.UUIDField(null=True, blank=True, help_text="a pull with this key again gets the same answer")
    last_pull = models.JSONField(default=dict, help_text="the last pull: what was asked, the answer, and why it was no more")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="child_broker_drain_ends",
                condition=Q(drain_until__isnull=True) | Q(drain_since__isnull=False),
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name


class ParentBroker(Contact):
    """The broker from which this one pulls: at most one row."""

    id = models.AutoField(primary_key=True)
    url = models.CharField(max_length=255, unique=True)
    lineage = models.JSONField(default=list, help_text="instances above this one, nearest first, as the parent told")
    answer = models.JSONField(default=dict, help_text="the last answer to a pull")

    def __str__(self) -> str:
        return self.url


class Installation(models.Model):
    """This broker itself: one row. A file beside the database has the same; its `mark` shows when an older backup came back."""

    id = models.AutoField(primary_key=True)
    instance = models.UUIDField()
    incarnation = models.UUIDField()
    mark = models.BigIntegerField(default=0, db_default=0, help_text="grows while the broker works")
    changed_at = models.DateTimeField(db_default=Now(), help_text="when this incarnation began")
    why = models.CharField(max_length=255, blank=True, default="", db_default="", help_text="why it began")
    works_since = models.DateTimeField(db_default=Now(), help_text="since when its agents speak to other brokers without a gap")
    worked_at = models.DateTimeField(db_default=Now(), help_text="when they last did")

    def __str__(self) -> str:
        return str(self.instance)
