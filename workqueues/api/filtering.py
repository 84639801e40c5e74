"""Filters of the lists of tasks, datasets and files."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet

from broker_site.foundation.rest.filtering import AnyOf, IdFilter, NameFilter, TextFilter
from workqueues.models.dataset import STATUSES as DATASET_STATUSES
from workqueues.models.file import STATUSES as FILE_STATUSES
from workqueues.states import PREMERGED_TYPES, TASK


class TaskFilter(django_filters.FilterSet):
    status = AnyOf(TASK.states)
    task_name = NameFilter(help_text="name; * and ? are wildcards")
    vo = TextFilter()
    user_name = NameFilter(help_text="owner; * and ? are wildcards")
    working_group = TextFilter()
    prod_source_label = TextFilter()
    task_type = TextFilter()
    processing_type = TextFilter()
    campaign = TextFilter()
    nucleus = TextFilter()
    work_queue = IdFilter(field_name="work_queue_id", help_text="number of the work queue")
    work_queue_name = TextFilter(field_name="work_queue__queue_name")
    parent_tid = IdFilter(help_text="number of the parent task")
    req_id = IdFilter(help_text="number of the request")


class WithoutPremerged(django_filters.FilterSet):
    """What jobs of a task merge is not shown unless it is asked for, by its type or at all."""

    premerged = django_filters.BooleanFilter(
        method="keep", help_text="true: also what jobs of the task merge into its outputs (trn_output, trn_log)"
    )

    def keep(self, queryset: QuerySet[Any], name: str, value: bool) -> QuerySet[Any]:
        """`filter_queryset` leaves them out."""
        return queryset

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.form.cleaned_data.get("premerged") or self.form.cleaned_data.get("type") in PREMERGED_TYPES
        chosen: QuerySet[Any] = super().filter_queryset(queryset)
        return chosen if asked else chosen.exclude(type__in=PREMERGED_TYPES)


class DatasetFilter(WithoutPremerged):
    dataset_name = NameFilter(help_text="name; * and ? are wildcards")
    container_name = TextFilter()
    type = TextFilter(help_text="input, pseudo_input, random_seed, output, log, trn_output, trn_log")
    status = AnyOf(DATASET_STATUSES)
    vo = TextFilter()
    task = IdFilter(field_name="task_id", help_text="number of the task")


class ReadGrantFilter(django_filters.FilterSet):
    vo = TextFilter(help_text="VO whose datasets they are")
    owner = TextFilter(help_text="user to whose datasets the grant is limited")
    grantee = TextFilter(help_text="VO or user that may read them")


class FileFilter(WithoutPremerged):
    dataset = IdFilter(field_name="dataset_id", help_text="number of the dataset")
    type = TextFilter(help_text="input, pseudo_input, random_seed, output, log, trn_output, trn_log")
    status = AnyOf(FILE_STATUSES)
    lfn = NameFilter(help_text="name of the file; * and ? are wildcards")
