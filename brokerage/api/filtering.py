"""Filters of the lists of supply."""

from __future__ import annotations

from collections.abc import Sequence

import django_filters
from django.db.models import QuerySet

from broker_site.foundation.rest.filtering import AnyOf, IdFilter, NameFilter, TextFilter
from brokerage.models import ComputingQueue, Decision, Job, Site
from brokerage.rules.facts.job_kind import KIND_NAMES, JobKind
from brokerage.rules.grid.attributes import QUEUE_STATUSES, QUEUE_TYPES
from brokerage.states import JOB


class _AnyKind(AnyOf):
    """Kinds of jobs, by name."""

    def filter(self, qs: QuerySet[Job], value: Sequence[str] | None) -> QuerySet[Job]:
        """The jobs of these kinds."""
        return super().filter(qs, [JobKind.named(name) for name in value or ()])


class JobFilter(django_filters.FilterSet):
    """Filters of lists of jobs."""

    kind = _AnyKind(KIND_NAMES)
    status = AnyOf(JOB.states)
    task = IdFilter(field_name="task_id", help_text="number of the task")
    queue = NameFilter(field_name="computing_queue__name", help_text="computing queue; * and ? are wildcards")
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

    class Meta:
        model = Job
        fields: tuple[str, ...] = ()


class DecisionFilter(django_filters.FilterSet):
    """Filters of the decisions about a task."""

    policy = TextFilter()
    outcome = AnyOf(("assign", "pending"))

    class Meta:
        model = Decision
        fields: tuple[str, ...] = ()


class QueueFilter(django_filters.FilterSet):
    """Filters of the list of computing queues."""

    name = NameFilter(help_text="name; * and ? are wildcards")
    site = NameFilter(field_name="site_id", help_text="site; * and ? are wildcards")
    status = AnyOf(QUEUE_STATUSES)
    type = AnyOf(QUEUE_TYPES)

    class Meta:
        model = ComputingQueue
        fields: tuple[str, ...] = ()


class SiteFilter(django_filters.FilterSet):
    """Filters of the list of sites."""

    name = NameFilter(help_text="name; * and ? are wildcards")
    state = TextFilter()
    nucleus = django_filters.BooleanFilter()

    class Meta:
        model = Site
        fields: tuple[str, ...] = ()
