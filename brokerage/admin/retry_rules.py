"""Retry rules, to edit: which errors of which jobs, and what follows."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm

from broker_site.foundation.adminpages import AuditedAdmin
from brokerage.models import ComputingQueue, RetryRule
from brokerage.rules.dispatch.retry_rules import LIMIT_RETRY, fault_of_pattern

FIELDS = (
    "name", "active", "component", "error_code", "pattern", "vo", "architecture", "release", "computing_queue", "work_queue",
    "expires_at", "action", "max_attempt",
)  # fmt: skip


class RetryRuleForm(ModelForm):
    """A rule whose pattern is one that ends soon, whose queue is there, and whose action has what it needs."""

    class Meta:
        model = RetryRule
        fields = FIELDS

    def clean_pattern(self) -> str:
        """A regular expression that no message keeps busy."""
        pattern = str(self.cleaned_data["pattern"])
        if fault := fault_of_pattern(pattern):
            raise forms.ValidationError(fault, code="pattern")
        return pattern

    def clean_computing_queue(self) -> str:
        """A queue of the grid."""
        name = str(self.cleaned_data["computing_queue"])
        if name and not ComputingQueue.objects.filter(name=name).exists():
            raise forms.ValidationError(f"there is no queue {name}", code="reference")
        return name

    def clean(self) -> dict[str, Any] | None:
        data = super().clean()
        values = self.cleaned_data
        most, limits = values.get("max_attempt"), values.get("action") == LIMIT_RETRY
        if limits and not (most and most > 0) and "max_attempt" not in self.errors:
            self.add_error(
                "max_attempt", forms.ValidationError("limited tries need a number of tries, from 1 on", code="required")
            )
        if not limits and most is not None:
            self.add_error("max_attempt", forms.ValidationError("only limited tries have a number of tries", code="unexpected"))
        if not any(values.get(name) for name in ("component", "error_code", "pattern")) and not self.errors:
            message = "a rule for every error needs at least who says it: a component, a code or a pattern"
            self.add_error("component", forms.ValidationError(message, code="required"))
        return data


@admin.register(RetryRule)
class RetryRuleAdmin(AuditedAdmin):
    """What follows from errors of jobs; changes are in the history of each and in the audit."""

    form = RetryRuleForm
    fields = FIELDS
    list_display = ("name", "active", "component", "error_code", "pattern", "action", "max_attempt", "vo", "expires_at",
                    "fault")  # fmt: skip
    list_filter = ("active", "action", "component")
    search_fields = ("name", "error_code")
    ordering = ("name",)

    @admin.display(description="Fault")
    def fault(self, rule: RetryRule) -> str:
        """Of a rule that did not come through this page."""
        fault = fault_of_pattern(rule.pattern)
        return f"it matches nothing: {fault}" if fault else ""
