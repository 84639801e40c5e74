"""The grid: sites, storage endpoints, computing queues and which storage a queue uses.

Columns hold what is valid: what a document or feed says, under the overrides of operators (`grid_overrides`). Those of attributes
are made from the declarations in `brokerage.rules.grid.attributes`. Not here: what is measured between and at them
(`grid_facts`), feeds (`grid_feeds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.functions import Now

from brokerage.rules.grid.attributes import QUEUE, SITE, STORAGE, Attribute
from brokerage.rules.grid.storage_root import ROOT_STATES


def column(attribute: Attribute) -> models.Field[Any, Any]:
    """The column of a declared attribute."""
    options: dict[str, Any] = {"help_text": attribute.doc, "default": attribute.default}
    match attribute.kind:
        case "int" if attribute.default is None:
            return models.IntegerField(help_text=attribute.doc, null=True, blank=True)
        case "int":
            return models.IntegerField(**options)
        case "number":
            return models.FloatField(
                **(options if attribute.default is not None else {"help_text": attribute.doc, "null": True, "blank": True})
            )
        case "flag":
            return models.BooleanField(**options)
        case "object":
            return models.JSONField(default=dict, blank=True, help_text=attribute.doc)
    length = attribute.length or max(16, *map(len, attribute.choices))
    return models.CharField(max_length=length, blank=attribute.default == "", **options)


class Described(models.Model):
    """What a grid document or a feed describes."""

    source = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="feed that describes it; empty: a grid document or the admin",
    )
    gone_at = models.DateTimeField(null=True, blank=True, help_text="when its document or feed no longer had it")
    fault = models.TextField(
        blank=True, default="", db_default="", help_text="what is wrong with it in the feed; the last good version holds"
    )
    fault_since = models.DateTimeField(null=True, blank=True, help_text="since when it is faulty in the feed")
    good_at = models.DateTimeField(null=True, blank=True, help_text="when its feed or document last had a good version of it")

    class Meta:
        abstract = True

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the columns of attributes
        def __setattr__(self, name: str, value: Any) -> None: ...


class Site(Described):
    """A place that computes or stores."""

    name = models.CharField(max_length=60, primary_key=True)
    attributes = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="attributes of its document without a column of their own"
    )
    state_since = models.DateTimeField(db_default=Now(), help_text="when it got its state")

    def __str__(self) -> str:
        return self.name


class StorageEndpoint(Described):
    """A storage area of a site."""

    name = models.CharField(max_length=60, primary_key=True)
    site = models.ForeignKey(Site, models.PROTECT, related_name="storages")
    attributes = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="attributes of its document without a column of their own"
    )
    mark = models.CharField(
        max_length=1200, blank=True, default="", db_default="", help_text="how its root is marked; empty: it never was"
    )
    key_number = models.IntegerField(
        default=1, db_default=1, help_text="number of the key with which its addresses are signed; a new one makes old ones void"
    )
    root_state = models.CharField(
        max_length=16,
        choices=[(state, state) for state in ROOT_STATES],
        default="unmarked",
        db_default="unmarked",
        help_text="how its root was when the server last looked",
    )
    root_fault = models.CharField(
        max_length=510, blank=True, default="", db_default="", help_text="what is wrong with its root, in words"
    )
    root_since = models.DateTimeField(null=True, blank=True, help_text="since when its root is so")
    root_gb = models.FloatField(null=True, blank=True, help_text="size of the file system of its root, GB")
    root_free_gb = models.FloatField(
        null=True, blank=True, help_text="free space there when the server last looked; where none is published, it holds"
    )

    def __str__(self) -> str:
        return self.name


class ComputingQueue(Described):
    """What pilots run for: slots of one shape at one site."""

    id = models.AutoField(primary_key=True)
    name = models.CharField(max_length=60, unique=True, help_text="nickname of the queue")
    site = models.ForeignKey(Site, models.PROTECT, related_name="queues")
    attributes = models.JSONField(
        default=dict, blank=True, help_text="attributes of the grid document without a column of their own"
    )
    last_start = models.DateTimeField(null=True, blank=True, help_text="when a job last began to run here")
    modified_at = models.DateTimeField(db_default=Now())
    status_since = models.DateTimeField(db_default=Now(), help_text="when it got its status")

    def __str__(self) -> str:
        return self.name


for described, table in ((Site, SITE), (StorageEndpoint, STORAGE), (ComputingQueue, QUEUE)):
    for name, attribute in table.items():
        if not hasattr(described, name):
            described.add_to_class(name, column(attribute))


class QueueStorage(models.Model):
    """A storage endpoint that a queue reads or writes."""

    queue = models.ForeignKey(ComputingQueue, models.CASCADE, related_name="storages")
    storage = models.ForeignKey(StorageEndpoint, models.CASCADE, related_name="queues")
    access = models.CharField(max_length=32, help_text="read_lan or write_lan, with _analysis for that scope")
    position = models.SmallIntegerField(help_text="order; 1 is the default")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "access", "storage"], name="queue_storage_once")]
        ordering = ["queue", "access", "position"]

    def __str__(self) -> str:
        return f"{self.queue_id} {self.access} {self.storage_id}"
