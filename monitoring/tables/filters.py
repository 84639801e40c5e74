"""What lists can be filtered by: one set per list, for page, JSON and CSV alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import django_filters
from django.db.models import CharField, Lookup, QuerySet
from django.forms import CheckboxSelectMultiple, IntegerField, NumberInput, TextInput

from brokerage.models import Job
from brokerage.states import JOB
from workqueues.models import Task
from workqueues.states import TASK

ANY = "*"
LARGEST_ID = 2**63 - 1


@CharField.register_lookup
class Matches(Lookup):
    """A text in which `*` stands for anything; every other character stands for itself."""

    lookup_name = "matches"

    def get_prep_lookup(self) -> str:
        """The text as a pattern of LIKE."""
        return str(self.rhs).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace(ANY, "%")

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        """`column LIKE pattern`."""
        column, column_parameters = self.process_lhs(compiler, connection)
        pattern, pattern_parameters = self.process_rhs(compiler, connection)
        return f"{column} LIKE {pattern}", (*column_parameters, *pattern_parameters)


class _IdFilter(django_filters.Filter):
    """The number of a row."""

    field_class = IntegerField


def _text(label: str, column: str, hint: str = "") -> django_filters.CharFilter:
    widget = TextInput(attrs={"placeholder": hint, "size": 14})
    return django_filters.CharFilter(label=label, field_name=column, method="match", max_length=256, widget=widget)


class _ListFilter(django_filters.FilterSet):
    """What the lists share. `narrow`: filters that an index of their own serves."""

    narrow: frozenset[str] = frozenset()

    def match(self, rows: QuerySet[Any], column: str, text: str) -> QuerySet[Any]:
        """Compare with a text that may have `*` in it."""
        return rows.filter(**{f"{column}__matches": text} if ANY in text else {column: text})


class TaskFilter(_ListFilter):
    """Filters of the task list."""

    status = django_filters.MultipleChoiceFilter(
        label="Status", choices=[(s, s) for s in TASK.states], widget=CheckboxSelectMultiple, method="of_states"
    )
    name = _text("Name", "task_name", "mc23.*")
    user = _text("Owner", "user_name")
    vo = _text("VO", "vo")

    class Meta:
        model = Task
        fields: tuple[str, ...] = ()

    def of_states(self, rows: QuerySet[Task], column: str, states: Sequence[str]) -> QuerySet[Task]:
        """Any of these states."""
        return rows.filter(status__in=sorted(states)) if states else rows


class JobFilter(_ListFilter):
    """Filters of the job list."""

    narrow = frozenset({"task"})

    status = django_filters.MultipleChoiceFilter(
        label="Status", choices=[(s, s) for s in JOB.states], widget=CheckboxSelectMultiple, method="of_states"
    )
    task = _IdFilter(
        label="Task", field_name="task_id", min_value=1, max_value=LARGEST_ID, widget=NumberInput(attrs={"min": 1, "size": 8})
    )
    queue = _text("Queue", "computing_queue__name")
    user = _text("Owner", "spec__user_name")
    vo = _text("VO", "task_queue__vo")

    class Meta:
        model = Job
        fields: tuple[str, ...] = ()

    def of_states(self, rows: QuerySet[Job], column: str, states: Sequence[str]) -> QuerySet[Job]:
        """Any of these states; where none is final, the small index of jobs that have not ended can serve."""
        if not states:
            return rows
        chosen = rows.filter(status__in=sorted(states))
        return chosen if JOB.final & set(states) else chosen.filter(ended_at=None)
