"""Filters of the lists of tasks, datasets and files."""

from __future__ import annotations

import django_filters

from broker_site.foundation.rest.filtering import AnyOf, IdFilter, NameFilter, TextFilter
from workqueues.models.dataset import STATUSES as DATASET_STATUSES
from workqueues.models.file import STATUSES as FILE_STATUSES
from workqueues.states import TASK


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


class DatasetFilter(django_filters.FilterSet):
    dataset_name = NameFilter(help_text="name; * and ? are wildcards")
    container_name = TextFilter()
    type = TextFilter(help_text="input, pseudo_input, random_seed, output, log")
    status = AnyOf(DATASET_STATUSES)
    vo = TextFilter()
    task = IdFilter(field_name="task_id", help_text="number of the task")


class ReadGrantFilter(django_filters.FilterSet):
    vo = TextFilter(help_text="VO whose datasets they are")
    owner = TextFilter(help_text="user to whose datasets the grant is limited")
    grantee = TextFilter(help_text="VO or user that may read them")


class FileFilter(django_filters.FilterSet):
    dataset = IdFilter(field_name="dataset_id", help_text="number of the dataset")
    type = TextFilter(help_text="input, pseudo_input, random_seed, output, log")
    status = AnyOf(FILE_STATUSES)
    lfn = NameFilter(help_text="name of the file; * and ? are wildcards")
