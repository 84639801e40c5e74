"""What lists can be filtered by: one set per list, for page, JSON and CSV alike, by the names that the REST lists use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

import django_filters
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.forms import CheckboxSelectMultiple, IntegerField, TextInput

from broker_site.foundation.gdpconfig.changesets import Source
from broker_site.foundation.gdpconfig.models import Change, ChangeSet
from broker_site.foundation.rest.paging import LARGEST_ID
from broker_site.foundation.sql.wildcards import named
from brokerage.models import Job, Transfer, TransferWish
from brokerage.queries.open_places import open_to
from brokerage.rules.facts.job_kind import KIND_NAMES, JobKind
from brokerage.rules.transfers.reasons import REASONS
from brokerage.states import JOB, TRANSFER
from monitoring.wording import WORDS
from workqueues.models import Dataset, File, Task
from workqueues.states import TYPES

ANY = "*"


class _IdFilter(django_filters.Filter):
    field_class = IntegerField


def _states(states: Sequence[str]) -> django_filters.MultipleChoiceFilter:
    return django_filters.MultipleChoiceFilter(
        label="Status", choices=[(s, s) for s in states], widget=CheckboxSelectMultiple, method="of_states"
    )


def _name(label: str, column: str, hint: str = "", method: str = "match") -> django_filters.CharFilter:
    widget = TextInput(attrs={"placeholder": hint, "size": 14})
    return django_filters.CharFilter(label=label, field_name=column, method=method, max_length=256, widget=widget)


def _number(label: str, **more: Any) -> _IdFilter:
    widget = TextInput(attrs={"inputmode": "numeric", "size": 8})
    return _IdFilter(label=label, min_value=1, max_value=LARGEST_ID, widget=widget, **more)


class ListFilter(django_filters.FilterSet):
    """What the lists share.

    `narrow`: filters that an index of their own serves. `texts`: those that may have wildcards. `aliases`: other names that
    people and programs know a filter by.
    """

    narrow: ClassVar[frozenset[str]] = frozenset()
    texts: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[Mapping[str, str]] = {}

    def match(self, rows: QuerySet[Any], column: str, text: str) -> QuerySet[Any]:
        return rows.filter(named(column, text))


class TaskFilter(ListFilter):
    texts = ("task_name", "user_name")
    aliases = {"name": "task_name", "user": "user_name"}

    status = _states(tuple(WORDS["task"]))
    task_name = _name("Name", "task_name", "mc23.*")
    user_name = _name("Owner", "user_name")
    vo = _name("VO", "vo")

    def of_states(self, rows: QuerySet[Task], column: str, states: Sequence[str]) -> QuerySet[Task]:
        return rows.filter(status__in=sorted(states)) if states else rows


class JobFilter(ListFilter):
    narrow = frozenset({"task"})
    texts = ("queue", "open_to", "user_name")
    aliases = {"task_id": "task", "computing_queue": "queue", "user": "user_name"}

    status = _states(tuple(WORDS["job"]))
    kind = django_filters.TypedChoiceFilter(
        label="Kind", choices=[("", "any"), *((name, name) for name in KIND_NAMES)], coerce=JobKind.named
    )
    task = _number("Task", field_name="task_id")
    queue = _name("At queue", "computing_queue__name")
    open_to = _name("Open to queue", "", method="of_open")
    user_name = _name("Owner", "user_name", method="of_owner")
    vo = _name("VO", "spec__vo")

    def of_open(self, rows: QuerySet[Job], column: str, text: str) -> QuerySet[Job]:
        """Jobs without a queue that may still go to one of these."""
        return rows.filter(open_to(text, rows.db))

    def of_owner(self, rows: QuerySet[Job], column: str, text: str) -> QuerySet[Job]:
        """Jobs of the tasks of these users: far fewer rows to compare than those of the jobs themselves."""
        return rows.filter(task_id__in=Task.objects.filter(named(column, text)).values("id"))

    def of_states(self, rows: QuerySet[Job], column: str, states: Sequence[str]) -> QuerySet[Job]:
        """Any of these states; where none is final, the small index of jobs that have not ended can serve."""
        if not states:
            return rows
        chosen = rows.filter(status__in=sorted(states))
        return chosen if JOB.final & set(states) else chosen.filter(ended_at=None)


DATASET_STATES = tuple(state for state in WORDS["dataset"] if "," not in state)
"""Those that are stored; others are only told."""


class DatasetFilter(ListFilter):
    narrow = frozenset({"task", "dataset_name"})
    texts = ("dataset_name", "container_name")
    aliases = {"task_id": "task", "name": "dataset_name"}

    status = _states(DATASET_STATES)
    dataset_name = _name("Name", "dataset_name", "mc23.evgen.*")
    container_name = _name("Container", "container_name")
    type = django_filters.ChoiceFilter(label="Type", choices=[(kind, kind) for kind in TYPES], empty_label="any")
    task = _number("Task", field_name="task_id")
    vo = _name("VO", "vo")

    def of_states(self, rows: QuerySet[Dataset], column: str, states: Sequence[str]) -> QuerySet[Dataset]:
        return rows.filter(status__in=sorted(states)) if states else rows


class FileFilter(ListFilter):
    narrow = frozenset({"task", "dataset", "lfn"})
    texts = ("lfn",)
    aliases = {"task_id": "task", "dataset_id": "dataset", "name": "lfn"}

    status = _states(tuple(WORDS["file"]))
    lfn = _name("Name", "lfn", "data.0001.*")
    dataset = _number("Dataset", method="of_dataset")
    type = django_filters.ChoiceFilter(label="Type", choices=[(kind, kind) for kind in TYPES], empty_label="any")
    task = _number("Task", field_name="task_id")

    def of_dataset(self, rows: QuerySet[File], column: str, number: int) -> QuerySet[File]:
        """Files of the dataset, which are of its task and type: by these an index has them in the order of the list."""
        known = Dataset.objects.using(rows.db).filter(id=number)
        return rows.filter(dataset_id=number, task_id=Subquery(known.values("task_id")), type=Subquery(known.values("type")))

    def of_states(self, rows: QuerySet[File], column: str, states: Sequence[str]) -> QuerySet[File]:
        return rows.filter(status__in=sorted(states)) if states else rows


class TransferFilter(ListFilter):
    narrow = frozenset({"task"})
    texts = ("lfn", "source_site", "destination_site", "destination")
    aliases = {"task_id": "task", "storage": "destination", "file": "lfn"}

    status = _states(TRANSFER.states)
    lfn = _name("File", "file__lfn", "data.0001.*")
    source_site = _name("From site", "source_site")
    destination_site = _name("To site", "destination_site")
    destination = _name("To storage", "destination")
    reason = django_filters.ChoiceFilter(label="Reason", choices=[(reason, reason) for reason in REASONS], empty_label="any")
    task = _number("Task", method="of_task")
    vo = _name("VO", "vo")

    def of_task(self, rows: QuerySet[Transfer], column: str, number: int) -> QuerySet[Transfer]:
        """Those that the task waits for."""
        wishes = TransferWish.objects.using(rows.db).filter(task_id=number, closed_at=None)
        return rows.filter(id__in=wishes.values("transfer_id"))

    def of_states(self, rows: QuerySet[Transfer], column: str, states: Sequence[str]) -> QuerySet[Transfer]:
        return rows.filter(status__in=sorted(states)) if states else rows


class ChangeSetFilter(ListFilter):
    """Sets of changes of the configuration, by what they changed and who made them."""

    texts = ("name",)
    aliases = {"key": "name", "user": "who"}

    name = _name("Key", "name", "NQUEUED_*", method="of_lines")
    component = _name("Component", "component", method="of_lines")
    who = _name("By", "who")
    source = django_filters.ChoiceFilter(label="Way", choices=[(s, s) for s in get_args(Source)], empty_label="any")

    def of_lines(self, rows: QuerySet[ChangeSet], column: str, text: str) -> QuerySet[ChangeSet]:
        lines = Change.objects.filter(named(column, text), change_set=OuterRef("pk"))
        return rows.filter(Exists(lines))
