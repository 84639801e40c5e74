"""The small form above a list by which an operator asks where a task would go."""

from __future__ import annotations

from typing import Self

from django import forms
from django.http import HttpRequest

from broker_site.foundation.adminpages import LARGEST_ID


class TryForm(forms.Form):
    """Which task to try."""

    task = forms.IntegerField(min_value=1, max_value=LARGEST_ID)

    @property
    def number(self) -> int | None:
        return self.cleaned_data["task"] if self.is_bound and self.is_valid() else None

    @classmethod
    def taken_from(cls, request: HttpRequest) -> Self:
        """The form as the address has it; the list itself, which would take it for a filter, sees it no more."""
        query = request.GET.copy()
        form = cls(query if "task" in query else None)
        form.is_valid()
        query = query.copy()
        query.pop("task", None)
        request.GET = query  # type: ignore[assignment]
        return form
