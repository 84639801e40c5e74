"""Filters of lists that people keep under a name."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class SavedView(models.Model):
    """A filter of a list under a name: of its owner alone, or of everybody in a VO."""

    id = models.BigAutoField(primary_key=True)
    owner = models.CharField(max_length=128, help_text="user who saved it, and may delete it")
    list_name = models.CharField(max_length=24, help_text="list that it filters: tasks, jobs, ...")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=4000, help_text="the filter as the address of the list has it")
    vo = models.CharField(max_length=32, default="", db_default="", blank=True, help_text="who else sees it; empty: nobody")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "list_name", "name"], name="saved_view_once")]
        indexes = [models.Index(fields=["list_name", "vo"], name="saved_view_of_list")]

    def __str__(self) -> str:
        return f"{self.list_name}: {self.name}"
