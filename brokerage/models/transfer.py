"""Files that are brought from one storage endpoint to another: transfers, who wishes them, links, and copies under way.

Model: facts on data movement 5, decision I2. One open transfer per file and destination, whoever wishes it.
"""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from brokerage.models.grid import Site, StorageEndpoint
from brokerage.rules.transfers.reasons import REASONS
from brokerage.rules.transfers.wishes import ACTIVITIES, ROLES
from brokerage.states import TRANSFER
from workqueues.models import CatalogueFile


class Transfer(models.Model):
    """The bringing of one file to one storage endpoint.

    `source` is planned when it is asked for, and chosen anew at each attempt. What is due is `queued` without `next_at`.
    """

    id = models.BigAutoField(primary_key=True)
    file = models.ForeignKey(CatalogueFile, models.CASCADE, db_index=False, related_name="transfers")
    destination = models.CharField(max_length=60, help_text="storage endpoint to which the file is brought")
    destination_site = models.CharField(max_length=60)
    source = models.CharField(
        max_length=60, blank=True, default="", db_default="", help_text="storage endpoint from which; empty: none is known"
    )
    source_site = models.CharField(max_length=60, blank=True, default="", db_default="")
    status = models.CharField(max_length=16, choices=[(s, s) for s in TRANSFER.states])
    status_since = models.DateTimeField(db_default=Now())
    reason = models.CharField(
        max_length=20, blank=True, default="", db_default="", choices=[(r, r) for r in REASONS],
        help_text="why the last attempt failed, or the transfer ended"
    )  # fmt: skip
    message = models.CharField(max_length=500, blank=True, default="", db_default="", help_text="the same in words")
    activity = models.CharField(max_length=32, choices=[(a, a) for a in ACTIVITIES])
    express = models.BooleanField(default=False, db_default=False, help_text="goes before all others")
    priority = models.IntegerField(default=0, db_default=0, help_text="the highest of those who wish it")
    vo = models.CharField(max_length=32, default="", db_default="")
    share = models.CharField(max_length=64, blank=True, default="", db_default="", help_text="share of who wished it first")
    tape = models.BooleanField(default=False, db_default=False, help_text="its source has to be staged from tape")
    bytes = models.BigIntegerField()
    checksum = models.CharField(max_length=36, help_text="adler32, 8 hex digits")
    attempt = models.SmallIntegerField(default=0, db_default=0, help_text="attempts begun so far")
    next_at = models.DateTimeField(null=True, blank=True, help_text="not tried again before; null: now")
    failed_sources = ArrayField(
        models.CharField(max_length=60), default=list, db_default=[], blank=True,
        help_text="endpoints from which an attempt failed, once for each"
    )  # fmt: skip
    backend = models.CharField(max_length=16, blank=True, default="", db_default="", help_text="what moves it")
    key = models.UUIDField(
        null=True, blank=True, help_text="key of the attempt with the backend: the same asks for the same copy"
    )
    claimed_until = models.DateTimeField(
        null=True, blank=True, help_text="when the claim of who submits it ends; once it is submitted, when its backend is asked"
    )
    looked_at = models.DateTimeField(
        null=True, blank=True, help_text="when the catalogue was last asked whether the file is there"
    )
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True, help_text="set exactly in a final state")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["file", "destination"], name="transfer_open_once", condition=Q(ended_at__isnull=True)
            ),
            models.CheckConstraint(
                name="transfer_ended_exactly_when_final",
                condition=Q(status__in=sorted(TRANSFER.final), ended_at__isnull=False)
                | (~Q(status__in=sorted(TRANSFER.final)) & Q(ended_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="transfer_keyed_while_active",
                condition=~Q(status__in=list(TRANSFER.active)) | (Q(key__isnull=False) & ~Q(source="")),
            ),
            models.CheckConstraint(name="transfer_from_elsewhere", condition=~Q(source=F("destination"))),
        ]
        indexes = [
            # What is due of one link, of one share after the other: its head is read, however long it is.
            models.Index(
                F("destination_site"),
                F("source_site"),
                F("express").desc(),
                F("share"),
                F("priority").desc(),
                F("id"),
                name="transfer_due",
                condition=Q(status="queued", next_at__isnull=True),
            ),
            models.Index(fields=["next_at"], name="transfer_resting", condition=Q(status="queued", next_at__isnull=False)),
            models.Index(
                fields=["source_site", "destination_site", "source", "destination"],
                name="transfer_active",
                condition=Q(status__in=list(TRANSFER.active)),
            ),
            models.Index(fields=["claimed_until"], name="transfer_claimed", condition=Q(status__in=list(TRANSFER.active))),
            models.Index(fields=["tape", "created_at"], name="transfer_queued_since", condition=Q(status="queued")),
            models.Index(fields=["key"], name="transfer_by_key", condition=Q(key__isnull=False)),
            models.Index(fields=["file"], name="transfer_of_file"),
            models.Index(fields=["ended_at"], name="transfer_ended", condition=Q(ended_at__isnull=False)),
            models.Index(fields=["source_site", "destination_site", "-id"], name="transfer_list_by_link"),
            models.Index(fields=["vo", "-id"], name="transfer_list_by_vo"),
        ]

    def __str__(self) -> str:
        return f"{self.id} to {self.destination}"


class TransferWish(models.Model):
    """Who wants a file at a place: a job its input or output there, or a dataset its files."""

    id = models.BigAutoField(primary_key=True)
    transfer = models.ForeignKey(Transfer, models.CASCADE, db_index=False, related_name="wishes")
    role = models.CharField(max_length=8, choices=[(r, r) for r in ROLES])
    job_id = models.BigIntegerField(null=True, blank=True)
    task_id = models.BigIntegerField(null=True, blank=True)
    dataset_id = models.BigIntegerField(null=True, blank=True, help_text="dataset of the task whose file it is")
    vo = models.CharField(max_length=32, default="", db_default="")
    owner = models.CharField(max_length=128, default="", db_default="", help_text="user, or group:NAME, for whom it is")
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True, blank=True, help_text="when it was met, or nobody wanted it any more")
    released = models.BooleanField(
        default=False, db_default=False, help_text="given up, and whether somebody else wants the file was not looked at yet"
    )

    class Meta:
        verbose_name_plural = "transfer wishes"
        constraints = [
            models.UniqueConstraint(
                fields=["transfer", "job_id", "role"], name="transfer_wish_once", condition=Q(job_id__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["transfer", "dataset_id", "role"], name="transfer_wish_of_dataset_once", condition=Q(job_id__isnull=True)
            ),
        ]
        indexes = [
            models.Index(fields=["job_id"], name="transfer_wish_of_job", condition=Q(closed_at__isnull=True)),
            models.Index(fields=["transfer"], name="transfer_wish_open", condition=Q(closed_at__isnull=True)),
            models.Index(fields=["task_id", "role"], name="transfer_wish_of_task", condition=Q(closed_at__isnull=True)),
            models.Index(fields=["vo", "owner"], name="transfer_wish_of_owner", condition=Q(closed_at__isnull=True)),
            models.Index(fields=["transfer", "id"], name="transfer_wish_by_transfer"),
            models.Index(fields=["id"], name="transfer_wish_released", condition=Q(released=True)),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.job_id or self.dataset_id}"


class TransferChange(models.Model):
    """One move of a transfer."""

    id = models.BigAutoField(primary_key=True)
    transfer_id = models.BigIntegerField(db_index=True)
    at = models.DateTimeField(db_default=Now())
    old = models.CharField(max_length=16, help_text="state before; '-' for an insertion")
    new = models.CharField(max_length=16, help_text="state after")
    attempt = models.SmallIntegerField(default=0, db_default=0)
    who = models.CharField(max_length=128, help_text="agent or user")
    why = models.CharField(max_length=255, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.transfer_id}: {self.old} -> {self.new}"


class ReplicaChange(models.Model):
    """A copy that was made, removed or found damaged."""

    id = models.BigAutoField(primary_key=True)
    file_id = models.BigIntegerField(db_index=True, help_text="file of the catalogue")
    storage = models.CharField(max_length=60)
    at = models.DateTimeField(db_default=Now())
    what = models.CharField(max_length=12, help_text="made, deleting, removed, bad")
    who = models.CharField(max_length=128)
    why = models.CharField(max_length=255, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.file_id} at {self.storage}: {self.what}"


class TransferLink(models.Model):
    """What operators, or failures, say of the way from one site to another; a link without a row has the configured limits."""

    id = models.AutoField(primary_key=True)
    source = models.ForeignKey(Site, models.CASCADE, related_name="+", help_text="site where files come from")
    destination = models.ForeignKey(Site, models.CASCADE, related_name="+", help_text="site where they go")
    max_active = models.IntegerField(null=True, blank=True, help_text="transfers at a time; null: as configured")
    mb_per_s = models.FloatField(null=True, blank=True, help_text="MB/s of all its copies together; null: no limit")
    blocked_until = models.DateTimeField(null=True, blank=True, help_text="no transfer begins before; null: it is open")
    blocked_why = models.CharField(max_length=255, default="", db_default="", blank=True)
    halved_until = models.DateTimeField(
        null=True, blank=True, help_text="half as many transfers at a time until then, since many failed"
    )
    counted_since = models.DateTimeField(null=True, blank=True, help_text="since when its attempts are counted")
    n_done = models.IntegerField(default=0, db_default=0, help_text="attempts that ended well since then")
    n_failed = models.IntegerField(default=0, db_default=0, help_text="attempts that failed since then, by the link's fault")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "destination"], name="transfer_link_once"),
            models.CheckConstraint(
                name="transfer_link_limits",
                condition=(Q(max_active__isnull=True) | Q(max_active__gte=0)) & (Q(mb_per_s__isnull=True) | Q(mb_per_s__gt=0)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} to {self.destination_id}"


class LocalCopy(models.Model):
    """A copy that the mover makes for the backend `local`: the row goes when its end was seen."""

    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    source = models.ForeignKey(StorageEndpoint, models.CASCADE, db_index=False, related_name="+")
    source_path = models.CharField(max_length=1024, help_text="path below the endpoint")
    destination = models.ForeignKey(StorageEndpoint, models.CASCADE, db_index=False, related_name="+")
    destination_path = models.CharField(max_length=1024, help_text="path below the endpoint")
    bytes = models.BigIntegerField()
    checksum = models.CharField(max_length=36)
    mb_per_s = models.FloatField(null=True, blank=True, help_text="limit of its link, of all copies of the link together")
    urgency = models.IntegerField(default=0, db_default=0, help_text="the higher the sooner")
    status = models.CharField(max_length=10, default="waiting", db_default="waiting", help_text="waiting, copying, done, failed")
    cancelled = models.BooleanField(default=False, db_default=False, help_text="it is to be given up")
    reason = models.CharField(max_length=20, default="", db_default="", blank=True)
    message = models.CharField(max_length=500, default="", db_default="", blank=True)
    copied = models.BigIntegerField(default=0, db_default=0, help_text="bytes so far, as last told")
    mover = models.CharField(max_length=64, default="", db_default="", blank=True, help_text="the process that copies it")
    claimed_until = models.DateTimeField(null=True, blank=True, help_text="when the mover's claim ends")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "local copies"
        indexes = [
            models.Index(F("urgency").desc(), F("created_at"), name="local_copy_waiting", condition=Q(status="waiting")),
            models.Index(fields=["claimed_until"], name="local_copy_claimed", condition=Q(status="copying")),
            models.Index(fields=["ended_at"], name="local_copy_ended", condition=Q(ended_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.status}"
