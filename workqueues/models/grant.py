"""Grants: datasets that others than the members of their VO may read."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workqueues.rules.refine.data_rights import GRANTEE_KINDS


class ReadGrant(models.Model):
    """Tasks of a VO or of a user may read datasets of another VO (decision F8). Without the row they cannot see them."""

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField("VO", max_length=32, help_text="whose datasets they are")
    pattern = models.CharField(max_length=255, help_text="names of datasets in the VO; * stands for any text")
    owner = models.CharField(
        max_length=128,
        blank=True,
        default="",
        db_default="",
        help_text="only datasets of this user; empty: all of the VO, which an operator may give",
    )
    grantee_kind = models.CharField(
        "grantee is a", max_length=8, choices=[(kind, kind) for kind in GRANTEE_KINDS], help_text="vo or user"
    )
    grantee = models.CharField(max_length=128, help_text="the VO whose tasks, or the user whose tasks may read them")
    made_by = models.CharField(max_length=150, editable=False)
    made_at = models.DateTimeField(db_default=Now(), editable=False)
    ends_at = models.DateTimeField(null=True, blank=True, help_text="until when; empty: until it is withdrawn")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["vo", "pattern", "owner", "grantee_kind", "grantee"], name="read_grant_once"),
            models.CheckConstraint(condition=Q(grantee_kind__in=GRANTEE_KINDS), name="read_grant_kind_known"),
        ]
        indexes = [models.Index(fields=["grantee", "grantee_kind", "vo"], name="read_grant_by_grantee")]

    def __str__(self) -> str:
        return f"{self.vo}:{self.pattern} for {self.grantee_kind} {self.grantee}"
