"""What operators set by hand on top of documents and feeds."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from brokerage.rules.grid.overrides import TABLES

KINDS = tuple(TABLES)


class LocalOverride(models.Model):
    """One attribute of one site, storage endpoint or queue, that wins over what documents and feeds say.

    The row it is about has the value; `beneath` keeps what the document says, which holds again when the override ends.
    """

    id = models.AutoField(primary_key=True)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in KINDS], help_text="what it is about")
    name = models.CharField(max_length=60, help_text="name of the site, storage endpoint or queue")
    attribute = models.CharField(max_length=64, help_text="name of the attribute, as in the grid document")
    value = models.TextField(blank=True, help_text="the value as text; objects and lists as JSON; empty: the default")
    reason = models.CharField(max_length=255, help_text="why")
    who = models.CharField(max_length=150, blank=True, default="", help_text="who set it")
    since = models.DateTimeField(db_default=Now(), help_text="when it was set")
    until = models.DateTimeField(null=True, blank=True, help_text="when it ends by itself; empty: when it is removed")
    beneath = models.JSONField(null=True, blank=True, help_text="what the document says; null: nothing")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "attribute"], name="override_once"),
            models.CheckConstraint(name="override_has_reason", condition=~Q(reason="") & Q(kind__in=KINDS)),
        ]
        ordering = ["kind", "name", "attribute"]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}.{self.attribute} = {self.value}"
