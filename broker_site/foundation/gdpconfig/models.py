"""Tables of gdpconfig: overrides, their append-only history and the revision. `store` is their only writer."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from broker_site.foundation.gdpconfig.changesets import CONFIG, MAX_TICKET, MAX_WHO, Place
from broker_site.foundation.gdpconfig.keys import MAX_NAME, MAX_VO


class Revision(models.Model):
    """The one row that says how often the configuration was changed; its lock puts the writers in order."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    number = models.BigIntegerField(default=0, help_text="Number of the last change set.")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(id=1), name="gdpconfig_revision_one_row"),
            models.CheckConstraint(condition=models.Q(number__gte=0), name="gdpconfig_revision_number"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"


class ChangeSet(models.Model):
    """One write, never altered afterwards (a trigger refuses it): who applied its lines together, when and why."""

    revision = models.BigIntegerField(primary_key=True, help_text="The revision that this set made.")
    who = models.CharField(max_length=MAX_WHO, help_text="User or program that changed it.")
    why = models.TextField(help_text="The reason that was given.")
    ticket = models.CharField(max_length=MAX_TICKET, blank=True, help_text="The ticket that was named; may be empty.")
    source = models.CharField(max_length=16, help_text="By which way: page, rest, admin, import, command, expiry.")
    approved_by = models.CharField(
        max_length=MAX_WHO, blank=True, default="", db_default="", help_text="Who approved it where that takes a second person."
    )
    at = models.DateTimeField(db_default=Now(), help_text="Time of the change by the database's clock.")
    reverts = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="reverted_by", help_text="The set that this one takes back."
    )

    class Meta:
        ordering: ClassVar = ["-revision"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~models.Q(who="") & ~models.Q(why=""), name="gdpconfig_changeset_who_why"),
        ]

    def __str__(self) -> str:
        return f"change set {self.revision}"


class Change(models.Model):
    """One line of a set, as little altered: what was before and after."""

    id = models.BigAutoField(primary_key=True)
    change_set = models.ForeignKey(ChangeSet, models.PROTECT, related_name="lines")
    kind = models.CharField(
        max_length=16, default=CONFIG, help_text="What is changed: config, an override of a key; share; work_queue."
    )
    app = models.CharField(max_length=64)
    component = models.CharField(max_length=64)
    name = models.CharField("key", max_length=MAX_NAME, help_text="Name of the key with its parts filled in.")
    vo = models.CharField("VO", max_length=MAX_VO, blank=True, help_text="Empty: for all VOs.")
    # Null and the empty text differ here: no override, and one that is empty.
    before = models.TextField(null=True, help_text="Override before the change; null: there was none.")  # noqa: DJ001
    until_before = models.DateTimeField(null=True, help_text="When the override before would have ended; null: never.")
    after = models.TextField(null=True, help_text="Override after the change; null: it was removed.")  # noqa: DJ001
    until = models.DateTimeField(null=True, help_text="When the override ends; null: never.")

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["component", "name", "-change_set"], name="gdpconfig_change_by_key"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(before__isnull=False) | models.Q(after__isnull=False), name="gdpconfig_change_something"
            ),
            models.UniqueConstraint(
                fields=["change_set", "kind", "app", "component", "name", "vo"], name="gdpconfig_change_once_a_set"
            ),
        ]

    def __str__(self) -> str:
        return f"change {self.change_set_id} of {self.component}.{self.name}"

    @property
    def place(self) -> Place:
        return Place(self.kind, self.app, self.component, self.name, self.vo)

    @property
    def who(self) -> str:
        return self.change_set.who

    @property
    def why(self) -> str:
        return self.change_set.why

    @property
    def at(self) -> datetime:
        return self.change_set.at


class Override(models.Model):
    """What holds instead of the default of a key, for one VO or for all."""

    app = models.CharField(max_length=64)
    component = models.CharField(max_length=64)
    name = models.CharField("key", max_length=MAX_NAME, help_text="Name of the key with its parts filled in.")
    vo = models.CharField("VO", max_length=MAX_VO, blank=True, help_text="Empty: for all VOs that have no override of their own.")
    value = models.TextField(help_text="The value as text, in the form of the key's type.")
    until = models.DateTimeField(null=True, help_text="When it ends by itself; null: never.")
    # Null and the empty text differ here too.
    afterwards = models.TextField(null=True, help_text="The lasting override that holds again then; null: none.")  # noqa: DJ001
    change = models.OneToOneField(Change, models.PROTECT, help_text="The change that set this value: who, when and why.")

    class Meta:
        ordering: ClassVar = ["app", "component", "name", "vo"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["app", "component", "name", "vo"], name="gdpconfig_override_once")
        ]

    def __str__(self) -> str:
        return f"{self.component}.{self.name}{f' for {self.vo}' if self.vo else ''}"

    @property
    def place(self) -> Place:
        return Place(CONFIG, self.app, self.component, self.name, self.vo)


class Steered(models.Model):
    """A row of a table that sets of changes steer: the change that wrote it last. Rows that were never changed have none."""

    kind = models.CharField(max_length=16)
    app = models.CharField(max_length=64)
    component = models.CharField(max_length=64)
    name = models.CharField(max_length=MAX_NAME)
    vo = models.CharField("VO", max_length=MAX_VO, blank=True)
    until = models.DateTimeField(null=True, help_text="When what holds ends by itself; null: never.")
    afterwards = models.TextField(null=True, help_text="The columns that hold again then.")  # noqa: DJ001
    change = models.OneToOneField(Change, models.PROTECT, help_text="The change that wrote it: who, when and why.")

    class Meta:
        ordering: ClassVar = ["kind", "name", "vo"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "app", "component", "name", "vo"], name="gdpconfig_steered_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["until"], name="gdpconfig_steered_until", condition=models.Q(until__isnull=False))
        ]

    def __str__(self) -> str:
        return str(self.place)

    @property
    def place(self) -> Place:
        return Place(self.kind, self.app, self.component, self.name, self.vo)


class Proposal(models.Model):
    """A draft that waits for somebody else to approve it, or what became of it."""

    id = models.BigAutoField(primary_key=True)
    who = models.CharField(max_length=MAX_WHO, help_text="Who proposed it.")
    why = models.TextField(help_text="The reason that was given.")
    ticket = models.CharField(max_length=MAX_TICKET, blank=True)
    source = models.CharField(max_length=16, help_text="By which way it was proposed.")
    lines = models.JSONField(help_text="The lines: kind, app, component, name, vo, before, after, until.")
    at = models.DateTimeField(db_default=Now(), help_text="When it was proposed.")
    expires_at = models.DateTimeField(help_text="When it can no longer be approved.")
    reverts = models.ForeignKey(
        ChangeSet, models.PROTECT, null=True, db_index=False, related_name="+", help_text="The set that it would take back."
    )
    outcome = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        help_text="Empty while it waits; approved, refused, withdrawn, expired.",
    )
    decided_by = models.CharField(max_length=MAX_WHO, blank=True, default="", db_default="")
    decided_why = models.TextField(blank=True, default="", db_default="")
    decided_at = models.DateTimeField(null=True)
    change_set = models.OneToOneField(
        ChangeSet, models.PROTECT, null=True, related_name="proposal", help_text="The set that it became."
    )

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["expires_at"], name="gdpconfig_proposal_open", condition=models.Q(outcome="")),
        ]

    def __str__(self) -> str:
        return f"proposal {self.id}"
