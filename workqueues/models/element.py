"""Elements: the parts of a task that child brokers pull, with who has them; rows W1, W2 and W5."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workqueues.models.child_broker import ChildBroker
from workqueues.models.history import Change
from workqueues.models.task import Task
from workqueues.states.elements import ELEMENT

TAKEN = sorted(ELEMENT.taken)
TO_BE_HAD = Q(status="Available", is_aside=False, why_waiting="")
"""A child may have it: what pulls look through, which does not grow with what nobody may have."""
SITE_NAME = 128


class ElementGroup(models.Model):
    """What elements ask of a child broker and its sites: those that ask the same hang together, and a pull looks at the first few
    of each. Groups without elements that wait are removed after a while.
    """

    id = models.AutoField(primary_key=True)
    digest = models.CharField(max_length=64, unique=True, help_text="of all that follows")
    vo = models.CharField(max_length=32)
    team = models.CharField(max_length=64, blank=True, default="", db_default="", help_text="team that may have them; empty: all")
    sites = ArrayField(models.CharField(max_length=SITE_NAME), help_text="sites that have all they read and that lists allow")
    used_at = models.DateTimeField(db_default=Now(), help_text="when elements last came here")

    class Meta:
        indexes = [
            models.Index(fields=["used_at"], name="element_group_used"),
            GinIndex(fields=["sites"], name="element_group_sites", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"{self.vo} {self.team or 'all'}: {len(self.sites)} sites"


class Element(models.Model):
    """A run of files of one input dataset of a task, or of records of a task without input: what one child broker gets at a time.

    While it waits its files are picked for it; while a child has it they are running. `try_nr` is new with every pull and never
    given twice: with `incarnation` it fences what children say of an element that they no longer have.
    """

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="elements")
    dataset = models.ForeignKey("workqueues.Dataset", models.CASCADE, db_index=False, related_name="+")
    group = models.ForeignKey(
        ElementGroup, models.DO_NOTHING, null=True, blank=True, db_index=False, db_constraint=False, related_name="elements",
        help_text="one that does not wait may name a group that is gone"
    )  # fmt: skip
    status = models.CharField(max_length=20, choices=[(s, s) for s in ELEMENT.states], help_text="state of the machine `element`")
    status_since = models.DateTimeField(db_default=Now())
    epoch = models.IntegerField(default=0, db_default=0, help_text="number of moves so far; fences concurrent writers")
    priority = models.IntegerField(help_text="that of its task; higher first, then the task that is older")
    jobs = models.IntegerField(help_text="jobs that it will be, as far as can be told beforehand")
    n_files = models.IntegerField(help_text="files, or records, that it was cut with")
    n_files_finished = models.IntegerField(default=0, db_default=0)
    n_files_failed = models.IntegerField(default=0, db_default=0)
    n_events = models.BigIntegerField(null=True, blank=True)
    places = ArrayField(
        models.CharField(max_length=60), default=list, db_default=[], help_text="storage endpoints that have all of its files"
    )
    located_at = models.DateTimeField(db_default=Now(), help_text="when its places were looked up; so it is while it waits")
    why_waiting = models.CharField(max_length=255, blank=True, default="", db_default="", help_text="why no site may have it")
    is_aside = models.BooleanField(
        default=False, db_default=False, help_text="its task gives no work for now: it stands among no others that wait"
    )

    child = models.ForeignKey(ChildBroker, models.PROTECT, null=True, blank=True, db_index=False, related_name="elements")
    try_nr = models.BigIntegerField(default=0, db_default=0, help_text="number of the pull that took it; 0: none yet")
    incarnation = models.UUIDField(null=True, blank=True, help_text="of this broker, when it was pulled")
    site = models.CharField(
        max_length=SITE_NAME, blank=True, default="", db_default="", help_text="site of the child for which it was pulled"
    )
    lease_until = models.DateTimeField(null=True, blank=True, help_text="when it returns, unless its child is heard of")
    serial_first = models.IntegerField(null=True, blank=True, help_text="first serial number of outputs of this try")
    serial_last = models.IntegerField(null=True, blank=True)
    sentence = models.CharField(max_length=510, blank=True, default="", db_default="", help_text="what the child says of it")
    decision = models.TextField(blank=True, default="", db_default="", help_text="the child's last decision, in words")
    told_at = models.DateTimeField(null=True, blank=True, help_text="when the child last said something of it")
    returned_by = models.ForeignKey(
        ChildBroker, models.PROTECT, null=True, blank=True, db_index=False, related_name="+",
        help_text="the child that gave it back last"
    )  # fmt: skip
    n_returned = models.IntegerField(
        default=0, db_default=0, help_text="how often in a row children gave it back without an end of a file"
    )
    rests_until = models.DateTimeField(
        null=True, blank=True, help_text="so long it is kept from children, since it was given back"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="element_has_its_child",
                condition=Q(status__in=TAKEN, child__isnull=False, lease_until__isnull=False, incarnation__isnull=False)
                | ~Q(status__in=TAKEN) & Q(lease_until__isnull=True),
            ),
            models.CheckConstraint(
                name="element_files_counted",
                condition=Q(n_files__gte=models.F("n_files_finished") + models.F("n_files_failed")),
            ),
        ]
        indexes = [
            models.Index(
                models.F("group"), models.F("is_aside"), models.F("priority").desc(), models.F("task"), models.F("id"),
                name="element_waiting", condition=Q(status="Available"),
            ),
            models.Index(
                models.F("priority").desc(), models.F("task"), models.F("id"),
                name="element_in_order", condition=TO_BE_HAD,
            ),
            models.Index(fields=["child"], name="element_negotiating", condition=Q(status="Negotiating")),
            models.Index(fields=["task", "is_aside", "id"], name="element_waiting_of_task", condition=Q(status="Available")),
            models.Index(fields=["located_at"], name="element_located", condition=Q(status="Available")),
            models.Index(
                fields=["rests_until"], name="element_rests", condition=Q(status="Available", rests_until__isnull=False)
            ),
            models.Index(fields=["lease_until"], name="element_lease", condition=Q(lease_until__isnull=False)),
            models.Index(fields=["child", "id"], name="element_of_child", condition=Q(status__in=TAKEN)),
            models.Index(fields=["status", "-id"], name="element_list_by_state"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.id} of task {self.task_id}"


class ElementInput(models.Model):
    """The use of a file by one try of an element, as JobInput is that by a job."""

    id = models.BigAutoField(primary_key=True)
    element = models.ForeignKey(Element, models.CASCADE, db_index=False, related_name="inputs")
    try_nr = models.BigIntegerField()
    file_id = models.BigIntegerField()
    status = models.CharField(max_length=10, help_text="live, used, failed, untried")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["element", "try_nr", "file_id"], name="element_input_once"),
            models.UniqueConstraint(fields=["file_id"], name="element_input_live_once", condition=Q(status="live")),
            models.UniqueConstraint(fields=["file_id"], name="element_input_used_once", condition=Q(status="used")),
        ]
        indexes = [models.Index(fields=["file_id"], name="element_input_of_file")]

    def __str__(self) -> str:
        return f"{self.file_id} in element {self.element_id}"


class ElementInbox(models.Model):
    """How the elements of a task stand together: the element in the inbox, which the documents have for each request."""

    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, related_name="inbox")
    status = models.CharField(max_length=20, choices=[(s, s) for s in ELEMENT.states])
    status_since = models.DateTimeField(db_default=Now())
    counts = models.JSONField(default=dict, help_text="state -> elements in it")
    percent_complete = models.SmallIntegerField(default=0, db_default=0, help_text="mean of those of its elements, percent")
    percent_success = models.SmallIntegerField(default=0, db_default=0)
    is_open = models.BooleanField(default=True, db_default=True, help_text="not all of its elements have ended")
    counted_at = models.DateTimeField(
        null=True, blank=True, help_text="when they were counted last; null: not since some were cut"
    )

    class Meta:
        verbose_name_plural = "element inboxes"
        indexes = [
            models.Index(
                models.F("counted_at").asc(nulls_first=True), models.F("task"),
                name="inbox_counted", condition=Q(is_open=True),
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"task {self.task_id}: {self.status}"


class ElementChange(Change):
    element_id = models.BigIntegerField()
    task_id = models.BigIntegerField()
    epoch = models.IntegerField(help_text="the element's epoch after the move")

    class Meta:
        indexes = [
            models.Index(fields=["element_id", "id"], name="element_change_of_element"),
            models.Index(fields=["at"], name="element_change_at"),
        ]
