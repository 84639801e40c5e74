"""What the lists of tasks, datasets and files can be filtered by, on pages, in JSON, CSV and REST."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet, Subquery

from broker_site.foundation.kernel.filter_words import Bounds
from broker_site.foundation.rest.filtering import (
    AgeFilter,
    AnyOf,
    FlagFilter,
    IdFilter,
    ListFilter,
    NameFilter,
    NumberFilter,
    TimeFilter,
    is_named,
    last_hours,
)  # fmt: skip
from workqueues.models import ChildBroker, Dataset, ElementGroup, Task
from workqueues.models.dataset import STATUSES as DATASET_STATUSES
from workqueues.models.file import STATUSES as FILE_STATUSES
from workqueues.states import PREMERGED_TYPES, TASK, TYPES
from workqueues.states.elements import ELEMENT

WILD = "* and ? are wildcards"
PRIORITIES = (-(1 << 31), (1 << 31) - 1)


def of_tasks(column: str) -> Any:
    """Rows of the tasks of which a column is so: far fewer to compare than the rows themselves."""

    def condition(text: str, using: str) -> Q:
        return Q(task_id__in=Task.objects.using(using).filter(is_named(column, text)).values("id"))

    return condition


class TaskFilter(ListFilter):
    in_order = frozenset({"vo"})
    aliases = {
        "name": "task_name", "user": "user_name", "gshare": "share", "current_priority": "priority", "jeditaskid": "id",
        "created": "creation_date", "type": "task_type", "hours": "status_since",
    }  # fmt: skip
    reworded = {"hours": last_hours}

    status = AnyOf(TASK.states, label="Status")
    task_name = NameFilter(label="Name", help_text=f"name; {WILD}")
    user_name = NameFilter(label="Owner", help_text=f"owner; {WILD}")
    vo = NameFilter(label="VO")
    share = NameFilter(label="Share", field_name="gshare", help_text="share of the task")
    age = AgeFilter(label="Age", field_name="creation_date", help_text="time since its submission")
    id = IdFilter(label="Number", narrow=True, help_text="number of the task")
    task_type = NameFilter(label="Type")
    prod_source_label = NameFilter(label="Label")
    processing_type = NameFilter(label="Processing")
    working_group = NameFilter(label="Working group")
    campaign = NameFilter(label="Campaign")
    nucleus = NameFilter(label="Nucleus")
    resource_type = NameFilter(label="Resource type")
    priority = NumberFilter(label="Priority", field_name="current_priority", least=PRIORITIES[0], most=PRIORITIES[1])
    progress = NumberFilter(label="Progress", most=100, help_text="percent of input files finished")
    work_queue = IdFilter(label="Work queue no.", field_name="work_queue_id", help_text="number of the work queue")
    work_queue_name = NameFilter(label="Work queue", field_name="work_queue__queue_name")
    parent_tid = IdFilter(label="Parent", narrow=True, help_text="number of the parent task")
    req_id = IdFilter(label="Request", help_text="number of the request")
    creation_date = TimeFilter(label="Submitted", help_text="when it was submitted")
    status_since = TimeFilter(label="Status since", help_text="when it entered its status")
    ended_at = TimeFilter(label="Ended", help_text="when it ended")


class WithoutPremerged(ListFilter):
    """What jobs of a task merge is not shown unless it is asked for, by its type or at all."""

    premerged = FlagFilter(
        label="Before merging", help_text="also what jobs of the task merge into its outputs (trn_output, trn_log)", holds=Q()
    )

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        said = dict(self.form.cleaned_data)
        premerged, kind = said.pop("premerged", None), said.get("type")
        for name, value in said.items():
            queryset = self.filters[name].filter(queryset, value)
        asked = kind is not None and set(kind.any_of) & set(PREMERGED_TYPES)
        shown = asked or (premerged is not None and "true" in set(premerged.any_of) - set(premerged.none_of))
        return queryset if shown else queryset.exclude(type__in=PREMERGED_TYPES)


class DatasetFilter(WithoutPremerged):
    in_order = frozenset({"vo"})
    aliases = {"task_id": "task", "name": "dataset_name", "user": "user_name", "gshare": "share", "created": "creation_time"}

    status = AnyOf(DATASET_STATUSES, label="Status")
    dataset_name = NameFilter(label="Name", narrow=True, help_text=f"name; {WILD}")
    type = AnyOf(TYPES, label="Type")
    task = IdFilter(label="Task", field_name="task_id", narrow=True, help_text="number of the task")
    vo = NameFilter(label="VO")
    user_name = NameFilter(label="Owner", condition=of_tasks("user_name"), help_text=f"owner of the task; {WILD}")
    share = NameFilter(label="Share", condition=of_tasks("gshare"), help_text="share of the task")
    age = AgeFilter(label="Age", field_name="creation_time")
    container_name = NameFilter(label="Container")
    n_files = NumberFilter(label="Files", help_text="how many files it has")
    n_files_failed = NumberFilter(label="Files failed", help_text="how many files were given up")
    creation_time = TimeFilter(label="Created")


class ReadGrantFilter(ListFilter):
    vo = NameFilter(help_text="VO whose datasets they are")
    owner = NameFilter(help_text="user to whose datasets the grant is limited")
    grantee = NameFilter(help_text="VO or user that may read them")


class FilesOfDataset(IdFilter):
    """Files by their dataset, which are of its task and type: by these an index has them in the order of the list."""

    def compared(self, part: Bounds[Any]) -> Q:
        wanted = super().compared(part)
        for comparison, number in part:
            if comparison == "exact":
                known = Dataset.objects.filter(id=number)
                wanted &= Q(task_id=Subquery(known.values("task_id")), type=Subquery(known.values("type")))
        return wanted


class FileFilter(WithoutPremerged):
    aliases = {"task_id": "task", "dataset_id": "dataset", "name": "lfn", "user": "user_name", "gshare": "share", "held": "why"}

    status = AnyOf(FILE_STATUSES, label="Status")
    lfn = NameFilter(label="Name", narrow=True, help_text=f"name of the file; {WILD}")
    dataset = FilesOfDataset(label="Dataset", field_name="dataset_id", narrow=True, help_text="number of the dataset")
    type = AnyOf(TYPES, label="Type")
    task = IdFilter(label="Task", field_name="task_id", narrow=True, help_text="number of the task")
    user_name = NameFilter(label="Owner", condition=of_tasks("user_name"), help_text=f"owner of the task; {WILD}")
    share = NameFilter(label="Share", condition=of_tasks("gshare"), help_text="share of the task")
    why = NameFilter(label="Held back", field_name="held", help_text="why it is not given to jobs")
    fsize = NumberFilter(label="Size", help_text="bytes")
    attempt_nr = NumberFilter(label="Attempts")


def _of_team(text: str, using: str) -> Q:
    return Q(group__in=ElementGroup.objects.using(using).filter(is_named("team", text)).values("id"))


def _of_children(text: str, using: str) -> Q:
    return Q(child__in=ChildBroker.objects.using(using).filter(is_named("name", text)).values("id"))


class ElementFilter(ListFilter):
    aliases = {"task_id": "task", "state": "status", "child_broker": "child"}
    in_order = frozenset({"status"})

    status = AnyOf(ELEMENT.course, label="State")
    task = IdFilter(label="Task", field_name="task_id", narrow=True, help_text="number of the task")
    child = NameFilter(
        label="Child broker", condition=_of_children, help_text=f"child broker that has it, or had it last; {WILD}"
    )
    site = NameFilter(label="Site", help_text=f"site of the child for which it was pulled; {WILD}")
    vo = NameFilter(label="VO", condition=of_tasks("vo"))
    team = NameFilter(label="Team", condition=_of_team, help_text="team that may have it, while it waits")
    id = IdFilter(label="Number", narrow=True, help_text="number of the element")
    priority = NumberFilter(label="Priority", least=PRIORITIES[0], most=PRIORITIES[1])
    try_nr = NumberFilter(label="Try", help_text="number of the pull that took it; 0: none yet")
    age = AgeFilter(label="Time in its state", field_name="status_since")
    told_at = TimeFilter(label="Told", help_text="when its child last said something of it")
