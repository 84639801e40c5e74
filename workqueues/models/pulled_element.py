"""What this broker pulled from its parent: one row for each try of an element, and the task that it became here; row X5."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workqueues.models.task import Task
from workqueues.states.elements import ELEMENT


class PulledElement(models.Model):
    """An element of the parent as this child has it. It is told to the parent as long as it stands here."""

    id = models.BigAutoField(primary_key=True)
    element_id = models.BigIntegerField(help_text="its number at the parent")
    try_nr = models.BigIntegerField(help_text="number of the pull at the parent: its fence")
    incarnation = models.UUIDField(help_text="of the parent, when it was pulled")
    parent_task_id = models.BigIntegerField(help_text="its task at the parent")
    status = models.CharField(max_length=20, choices=[(s, s) for s in ELEMENT.states], help_text="its state here")
    priority = models.IntegerField()
    jobs = models.IntegerField()
    site = models.CharField(max_length=128, help_text="site for which it was pulled")
    vo = models.CharField(max_length=32)
    work = models.JSONField(default=dict, help_text="what the parent gave: parameters, files, numbers; empty: not yet fetched")
    task = models.OneToOneField(Task, models.SET_NULL, null=True, blank=True, related_name="pulled_element")
    pulled_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(help_text="when the parent takes it back, unless it hears of us, by our clock")
    told_at = models.DateTimeField(null=True, blank=True, help_text="when the parent last took a report of it")
    told = models.CharField(max_length=20, blank=True, default="", db_default="", help_text="the state that the parent knows")
    ended_at = models.DateTimeField(null=True, blank=True, help_text="when nothing of it was left to tell")
    refused = models.CharField(
        max_length=255, blank=True, default="", db_default="", help_text="why the parent no longer gives it to us"
    )

    given_back = models.CharField(
        max_length=510, blank=True, default="", db_default="", help_text="why this broker gives it back to the parent"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["element_id", "try_nr", "incarnation"], name="pulled_element_once"),
        ]
        indexes = [
            models.Index(fields=["told_at", "id"], name="pulled_element_to_tell", condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.element_id} (try {self.try_nr})"
