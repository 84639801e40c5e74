"""The local catalogue: datasets, files and replicas that exist, whoever made them.

A task's view of them is in dataset and file.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

REPLICA_STATES = ("available", "deleting", "bad")
REPLICA_KINDS = ("origin", "cache")


class CatalogueDataset(models.Model):
    """A dataset that exists. It belongs to one VO: for everybody else there is no such dataset (decision F8)."""

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(
        "VO", max_length=32, blank=True, default="", db_default="", help_text="whose dataset it is; empty: nobody sees it"
    )
    name = models.CharField(max_length=255, help_text="name, `scope:name` where it has a scope of its own")
    owner = models.CharField(
        max_length=128,
        blank=True,
        default="",
        db_default="",
        help_text="user who may write to it; empty: only who has the role production",
    )
    folder = models.CharField(
        max_length=300, blank=True, default="", db_default="", help_text="where new files go below an endpoint"
    )
    state = models.CharField(
        max_length=20, default="open", help_text="open: files may come; closed: complete; expired: it was transient"
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="when its files are removed, as it is transient; null: it is kept"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "vo"], name="catalogue_dataset_once")]
        indexes = [
            models.Index(fields=["vo", "-id"], name="catalogue_list_by_vo"),
            models.Index(fields=["expires_at"], name="catalogue_expires", condition=Q(expires_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class CatalogueFile(models.Model):
    """A file of a dataset that exists."""

    id = models.BigAutoField(primary_key=True)
    dataset = models.ForeignKey(CatalogueDataset, models.CASCADE, db_index=False, related_name="files")
    lfn = models.CharField(max_length=256)
    guid = models.CharField(max_length=64, blank=True, default="", db_default="")
    fsize = models.BigIntegerField(help_text="size, bytes")
    checksum = models.CharField(max_length=36, help_text="adler32, 8 hex digits")
    n_events = models.IntegerField(null=True, blank=True)
    boundary_id = models.BigIntegerField(null=True, blank=True, help_text="files of different boundaries do not share a job")
    lumi_block_nr = models.IntegerField(null=True, blank=True, help_text="lumi block of its events")
    moving = models.BooleanField(
        default=False,
        db_default=False,
        help_text="on its way to where its dataset is collected: not yet a file of it for readers",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "lfn"], name="catalogue_file_once")]
        indexes = [
            models.Index(fields=["lfn"], name="catalogue_file_by_lfn"),
            models.Index(fields=["dataset"], name="catalogue_file_moving", condition=Q(moving=True)),
        ]

    def __str__(self) -> str:
        return self.lfn


class Replica(models.Model):
    """A copy of a file on a storage endpoint. An origin is kept; a cache copy may be removed when nobody needs it."""

    id = models.BigAutoField(primary_key=True)
    file = models.ForeignKey(CatalogueFile, models.CASCADE, db_index=False, related_name="replicas")
    storage = models.CharField(max_length=60, help_text="name of the storage endpoint")
    path = models.CharField(
        max_length=1024, blank=True, default="", db_default="", help_text="path below the endpoint; empty: the LFN"
    )
    state = models.CharField(
        max_length=12,
        default="available",
        db_default="available",
        choices=[(s, s) for s in REPLICA_STATES],
        help_text="available; deleting: about to be removed; bad: damaged, not read",
    )
    kind = models.CharField(
        max_length=8,
        default="origin",
        db_default="origin",
        choices=[(k, k) for k in REPLICA_KINDS],
        help_text="origin: kept; cache: brought for jobs, removed when the endpoint needs space and nobody needs it",
    )
    last_used = models.DateTimeField(null=True, blank=True, help_text="when a job last asked for a cache copy")
    keep_until = models.DateTimeField(
        null=True, blank=True, help_text="when a cache copy may go whatever space is free; null: not"
    )
    removal_at = models.DateTimeField(
        null=True, blank=True, help_text="of one that is deleting: its removal began, and is tried again then; null: it did not"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "storage"], name="replica_once")]
        indexes = [
            models.Index(fields=["storage"], name="replica_of_storage"),
            models.Index(fields=["storage", "last_used"], name="replica_cached", condition=Q(kind="cache")),
            models.Index(fields=["keep_until"], name="replica_kept_until", condition=Q(keep_until__isnull=False)),
            models.Index(fields=["storage"], name="replica_not_available", condition=~Q(state="available")),
        ]

    def __str__(self) -> str:
        return f"{self.file_id} at {self.storage}"
