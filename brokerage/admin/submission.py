"""Admin of submitted jobs, to read: how each stands between the broker and its pilot."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import SubmittedJob


@admin.register(SubmittedJob)
class SubmittedJobAdmin(ReadOnlyAdmin):
    """Jobs that were submitted and have not ended."""

    list_display = ("job_id", "site", "kind", "submitter", "submitted_at", "handle", "tries", "claimed_by")
    list_filter = ("site", "kind", "submitter")
    ordering = ("-job_id",)
    search_fields = ("=job_id",)
    search_help_text = "The whole number of a job."
