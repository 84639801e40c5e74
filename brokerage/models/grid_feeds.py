"""Feeds: documents that a periodic agent reads, the last good copy of each and how it is doing."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from brokerage.rules.grid.cric import KINDS


class Feed(models.Model):
    """One document that is read again and again. When it cannot be used, what it last said stays."""

    name = models.CharField(max_length=32, primary_key=True, help_text="its name here")
    kind = models.CharField(max_length=16, choices=list(KINDS.items()), help_text="what the document is")
    place = models.CharField(max_length=1024, help_text="http(s) address on a listed host, or a file in a listed folder")
    enabled = models.BooleanField(default=True, db_default=True, help_text="whether it is read, and its age counts")
    created_at = models.DateTimeField(db_default=Now())
    tried_at = models.DateTimeField(null=True, blank=True, help_text="when it was last asked for")
    good_at = models.DateTimeField(null=True, blank=True, help_text="when it was last read and used")
    data_at = models.DateTimeField(null=True, blank=True, help_text="of when the last good document is")
    entries = models.IntegerField(default=0, db_default=0, help_text="entries of the last good document")
    fault = models.TextField(blank=True, default="", db_default="", help_text="why the last try gave nothing; empty: it did")
    fault_since = models.DateTimeField(null=True, blank=True, help_text="since when it gives nothing")
    faulty = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="entries of the last good document that are faulty: name to fault"
    )
    copy = models.BinaryField(null=True, blank=True, help_text="the last good document, compressed (zlib)")
    digest = models.CharField(max_length=64, blank=True, default="", db_default="", help_text="sha256 of the last good document")

    class Meta:
        constraints = [models.CheckConstraint(name="feed_kind", condition=Q(kind__in=list(KINDS)))]

    def __str__(self) -> str:
        return self.name
