"""Limits at sites (rows S1, S2): what they advertise, the room that is given out of it, and how limits on kinds of jobs stand."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from brokerage.models.dispatch import Pilot
from brokerage.models.grid import Site
from brokerage.rules.dispatch.site_limits import KINDS


class SiteAdvertisement(models.Model):
    """The last advertisement of a site, and how many jobs it was given since the count in it."""

    site = models.OneToOneField(Site, models.CASCADE, primary_key=True, related_name="advertisement")
    number = models.BigIntegerField(default=1, help_text="how many the site has sent")
    counted_at = models.DateTimeField(help_text="when the site counted its jobs")
    arrived_at = models.DateTimeField(db_default=Now())
    max_jobs = models.IntegerField(null=True, blank=True, help_text="most jobs in any state; empty: not advertised, no match")
    max_submitting_jobs = models.IntegerField(
        null=True, blank=True, help_text="most jobs being submitted; empty: not advertised, no match"
    )
    current_jobs = models.IntegerField(help_text="jobs in any state, those being submitted among them")
    current_submitting_jobs = models.IntegerField(help_text="jobs being submitted")
    stations = ArrayField(models.CharField(max_length=60), default=list, blank=True, help_text="stations it offers")
    kind = models.CharField(
        max_length=16,
        choices=[(kind, kind) for kind in KINDS],
        default="native",
        db_default="native",
        help_text="native: runs jobs itself; forwarding: hands them to another grid",
    )
    sent_by = models.CharField(max_length=128, default="", db_default="", help_text="enrolment that sent it")
    matched = models.IntegerField(
        default=0, db_default=0, help_text="jobs matched since the count; room held by web processes is among them"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(name="site_advertisement_counts", condition=Q(matched__gte=0, current_jobs__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.number}"


class RoomBlock(models.Model):
    """A part of a site's room that a web process took; rows go once a count is newer than they are."""

    id = models.BigAutoField(primary_key=True)
    site = models.ForeignKey(Site, models.CASCADE, related_name="+")
    number = models.BigIntegerField(help_text="number of the advertisement among whose matches it is")
    taken_at = models.DateTimeField(db_default=Now())
    n = models.SmallIntegerField(help_text="matches that it allows")
    used = models.SmallIntegerField(null=True, blank=True, help_text="matches made with it; empty: it was not handed back")
    closed_at = models.DateTimeField(null=True, blank=True, help_text="when it was handed back")

    class Meta:
        constraints = [
            models.CheckConstraint(name="room_block_used", condition=Q(used__isnull=True) | Q(used__gte=1, used__lte=F("n"))),
        ]

    def __str__(self) -> str:
        return f"{self.n} at {self.site_id}"


class MatchGauge(models.Model):
    """How one limit on jobs of a kind stands: jobs counted, those matched since, and when the delays between matches are over."""

    id = models.BigAutoField(primary_key=True)
    site = models.ForeignKey(Site, models.CASCADE, db_index=False, related_name="+")
    ce = models.CharField(max_length=255, default="", db_default="", blank=True, help_text="computing element; empty: the site")
    attribute = models.CharField(max_length=32)
    value = models.CharField(max_length=128)
    running = models.IntegerField(default=0, db_default=0, help_text="jobs that held a slot when they were counted")
    matched = models.IntegerField(default=0, db_default=0, help_text="jobs matched since the count, and blocks of matches")
    blocks = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="matches that threads took at once: id, number, until when (s since 1970)",
    )
    counted_at = models.DateTimeField(null=True, blank=True, help_text="when jobs were last counted; empty: never")
    free_at = models.DateTimeField(null=True, blank=True, help_text="when the delays of all matches so far are over")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["site", "ce", "attribute", "value"], name="match_gauge_once"),
            # The match that a limit does not let pass breaks this, and is undone.
            models.CheckConstraint(condition=models.Q(matched__gte=0), name="match_gauge_passed"),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.ce} {self.attribute} {self.value}"


class PilotCE(models.Model):
    """The computing elements of a pilot that got a job at a site with limits for its computing elements."""

    pilot = models.OneToOneField(Pilot, models.CASCADE, primary_key=True, related_name="+")
    ces = ArrayField(models.CharField(max_length=255), default=list, verbose_name="computing elements")

    class Meta:
        verbose_name = "pilot computing element"

    def __str__(self) -> str:
        return f"{self.pilot_id} at {', '.join(self.ces)}"
