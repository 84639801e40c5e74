"""Tables of gdpconfig: overrides, their append-only history and the revision. `store` is their only writer."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from broker_site.foundation.gdpconfig.keys import MAX_NAME, MAX_VO


class Revision(models.Model):
    """The one row that says how often the configuration was changed; its lock puts the writers in order."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    number = models.BigIntegerField(default=0, help_text="Number of the last change.")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(id=1), name="gdpconfig_revision_one_row"),
            models.CheckConstraint(condition=models.Q(number__gte=0), name="gdpconfig_revision_number"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"


class Change(models.Model):
    """One write, never altered afterwards (a trigger refuses it): what was before and after, who changed it, when and why."""

    revision = models.BigIntegerField(primary_key=True, help_text="The revision that this change made.")
    app = models.CharField(max_length=64)
    component = models.CharField(max_length=64)
    name = models.CharField("key", max_length=MAX_NAME, help_text="Name of the key with its parts filled in.")
    vo = models.CharField("VO", max_length=MAX_VO, blank=True, help_text="Empty: for all VOs.")
    # Null and the empty text differ here: no override, and one that is empty.
    before = models.TextField(null=True, help_text="Override before the change; null: there was none.")  # noqa: DJ001
    after = models.TextField(null=True, help_text="Override after the change; null: it was removed.")  # noqa: DJ001
    who = models.CharField(max_length=150, help_text="User or program that changed it.")
    why = models.TextField(help_text="The reason that was given.")
    at = models.DateTimeField(db_default=Now(), help_text="Time of the change by the database's clock.")
    reverts = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="reverted_by", help_text="The change that this one takes back."
    )

    class Meta:
        ordering: ClassVar = ["-revision"]
        indexes: ClassVar = [models.Index(fields=["component", "name", "-revision"], name="gdpconfig_change_by_key")]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~models.Q(who="") & ~models.Q(why=""), name="gdpconfig_change_who_why"),
            models.CheckConstraint(
                condition=models.Q(before__isnull=False) | models.Q(after__isnull=False), name="gdpconfig_change_something"
            ),
        ]

    def __str__(self) -> str:
        return f"change {self.revision} of {self.component}.{self.name}"


class Override(models.Model):
    """What holds instead of the default of a key, for one VO or for all."""

    app = models.CharField(max_length=64)
    component = models.CharField(max_length=64)
    name = models.CharField("key", max_length=MAX_NAME, help_text="Name of the key with its parts filled in.")
    vo = models.CharField("VO", max_length=MAX_VO, blank=True, help_text="Empty: for all VOs that have no override of their own.")
    value = models.TextField(help_text="The value as text, in the form of the key's type.")
    change = models.OneToOneField(Change, models.PROTECT, help_text="The change that set this value: who, when and why.")

    class Meta:
        ordering: ClassVar = ["app", "component", "name", "vo"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["app", "component", "name", "vo"], name="gdpconfig_override_once")
        ]

    def __str__(self) -> str:
        return f"{self.component}.{self.name}{f' for {self.vo}' if self.vo else ''}"
