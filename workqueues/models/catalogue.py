"""The local catalogue: datasets, files and replicas that exist, whoever made them.

A task's view of them is in dataset and file.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


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
    state = models.CharField(max_length=20, default="open", help_text="open: files may come; closed: complete")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "vo"], name="catalogue_dataset_once")]
        indexes = [models.Index(fields=["vo", "-id"], name="catalogue_list_by_vo")]

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
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "lfn"], name="catalogue_file_once")]
        indexes = [models.Index(fields=["lfn"], name="catalogue_file_by_lfn")]

    def __str__(self) -> str:
        return self.lfn


class Replica(models.Model):
    """A copy of a file on a storage endpoint."""

    id = models.BigAutoField(primary_key=True)
    file = models.ForeignKey(CatalogueFile, models.CASCADE, db_index=False, related_name="replicas")
    storage = models.CharField(max_length=60, help_text="name of the storage endpoint")
    path = models.CharField(
        max_length=1024, blank=True, default="", db_default="", help_text="path below the endpoint; empty: the LFN"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "storage"], name="replica_once")]
        indexes = [models.Index(fields=["storage"], name="replica_of_storage")]

    def __str__(self) -> str:
        return f"{self.file_id} at {self.storage}"
