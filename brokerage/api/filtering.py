"""Filters of the lists of supply."""

from __future__ import annotations

from collections.abc import Sequence

import django_filters
from django.db.models import QuerySet

from broker_site.foundation.rest.filtering import AnyOf, IdFilter, NameFilter, TextFilter
from brokerage.models import ComputingQueue, Decision, Job, Site
from brokerage.queries.open_places import open_to
from brokerage.rules.facts.job_kind import KIND_NAMES, JobKind
from brokerage.rules.grid.attributes import QUEUE_STATUSES, QUEUE_TYPES
from brokerage.states import JOB


class _AnyKind(AnyOf):
    def filter(self, qs: QuerySet[Job], value: Sequence[str] | None) -> QuerySet[Job]:
        return super().filter(qs, [JobKind.named(name) for name in value or ()])


class JobFilter(django_filters.FilterSet):
    kind = _AnyKind(KIND_NAMES)
    status = AnyOf(JOB.states)
    task = IdFilter(field_name="task_id", help_text="number of the task")
    queue = NameFilter(
        field_name="computing_queue__name",
        help_text="computing queue that the job has; * and ? are wildcards. One that is open to several has none: see open_to",
    )
    open_to = TextFilter(
        method="of_open", help_text="computing queue to which the job is open, until a pilot takes it; * and ? are wildcards"
    )
    vo = TextFilter(field_name="spec__vo")
    user_name = NameFilter(field_name="spec__user_name", help_text="owner of the task; * and ? are wildcards")
    prod_source_label = TextFilter(field_name="spec__prod_source_label")
    processing_type = TextFilter(field_name="spec__processing_type")
    sub_status = TextFilter()
    resource_type = TextFilter()
    error_code = TextFilter(field_name="result__error_code", help_text="error with which the job ended")
    ended = django_filters.BooleanFilter(
        field_name="ended_at", lookup_expr="isnull", exclude=True, help_text="true: in a final state; false: alive"
    )

    def of_open(self, rows: QuerySet[Job], column: str, text: str) -> QuerySet[Job]:
        return rows.filter(open_to(text))

    class Meta:
        model = Job
        fields: tuple[str, ...] = ()


class DecisionFilter(django_filters.FilterSet):
    policy = TextFilter()
    outcome = AnyOf(("assign", "pending"))

    class Meta:
        model = Decision
        fields: tuple[str, ...] = ()


class QueueFilter(django_filters.FilterSet):
    name = NameFilter(help_text="name; * and ? are wildcards")
    site = NameFilter(field_name="site_id", help_text="site; * and ? are wildcards")
    status = AnyOf(QUEUE_STATUSES)
    type = AnyOf(QUEUE_TYPES)

    class Meta:
        model = ComputingQueue
        fields: tuple[str, ...] = ()


class SiteFilter(django_filters.FilterSet):
    name = NameFilter(help_text="name; * and ? are wildcards")
    state = TextFilter()
    nucleus = django_filters.BooleanFilter()

    class Meta:
        model = Site
        fields: tuple[str, ...] = ()
