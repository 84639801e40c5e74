"""Filters that people keep under a name, to read: what is shared with a VO shows who made it."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminfields import NamedValues
from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import SavedView


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "list_name", "owner", "vo", "created_at")
    list_filter = ("list_name", ("vo", NamedValues))
    search_fields = ("name", "=owner")
    search_help_text = "Part of the name, owner, or number."
    number_fields = ("id",)
