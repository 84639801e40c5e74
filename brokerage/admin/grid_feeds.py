"""Feeds: what is read, from where, and how each is doing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from broker_site.foundation.adminpages import AuditedAdmin
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel import clock
from brokerage.feeds.fetch import FeedUnavailable, checked
from brokerage.feeds.refresh import limits
from brokerage.models import Feed
from brokerage.queries.feeds import state_of

NAME = r"[a-z0-9][a-z0-9._-]*"


class FeedForm(ModelForm):
    """A feed whose place may be read."""

    class Meta:
        model = Feed
        fields = ("name", "kind", "place", "enabled")

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not re.fullmatch(NAME, name):
            raise forms.ValidationError("Small letters, digits and . _ -, a letter or digit first.", code="format")
        return name

    def clean_place(self) -> str:
        """An address on a listed host, or an absolute path in a listed folder."""
        place = str(self.cleaned_data["place"]).strip()
        try:
            if "://" in place:
                checked(place, limits().hosts)
            elif not any(Path(place).is_relative_to(folder) for folder in limits().folders) or ".." in Path(place).parts:
                raise FeedUnavailable("the file is not in a folder listed in FEED_FOLDERS")
        except FeedUnavailable as down:
            raise forms.ValidationError(str(down), code="place") from None
        return place


@admin.register(Feed)
class FeedAdmin(AuditedAdmin):
    form = FeedForm
    noted = ("how_it_is", "tried_at", "good_at", "data_at", "entries", "fault", "fault_since", "faulty")
    list_display = ("name", "kind", "enabled", "how_it_is", "good_at", "entries")
    list_filter = ("kind", "enabled")
    search_fields = ("name", "place")
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Without the copies, which are large."""
        return super().get_queryset(request).defer("copy")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """What is set, and how it is doing."""
        return [*FeedForm.Meta.fields, *(self.noted if obj is not None else ())]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What the system notes; and the name, which the rows of the grid refer to."""
        return self.noted if obj is None else ("name", *self.noted)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save, and have it read at once; of another place the data may be older than what the former one gave."""
        obj.tried_at = None
        if {"place", "kind"} & set(form.changed_data):
            obj.data_at = None
        super().save_model(request, obj, form, change)
        look_after_commit("refresh")

    @admin.display(description="state")
    def how_it_is(self, feed: Feed) -> str:
        state = state_of(feed, clock.now())
        return f"{state.state}; {state.sentence}"
