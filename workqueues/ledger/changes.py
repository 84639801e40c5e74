"""Changed parameters of a task that is run again: stored with everything that follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Max

from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.roles import PRODUCTION
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.ledger.resource_types import resource_type_of
from workqueues.models import Dataset, Task, TaskParams
from workqueues.queries.read_grants import readable
from workqueues.rules.refine import Reader, production_wishes, read_task
from workqueues.rules.refine.changes import Changed, change
from workqueues.rules.refine.data_rights import of_another_vo
from workqueues.states import MASTER_TYPES


def looked_at(task: Task, changes: Mapping[str, Any], path: str = "changes.") -> Changed:
    """What the changes come to for the task as it is. Refused(422) with every problem; `path` stands before their fields."""
    asked = change(task.params.task_params, changes, task.split_rule, path=path)
    if problems := [*asked.problems, *_too_small(task, asked, path)]:
        detail = "; ".join(f"{p.field}: {p.message}" for p in problems[:3])[:1000]
        raise Refused(422, "The changes break rules", detail, problems)
    return asked


def _too_small(task: Task, asked: Changed, path: str) -> Iterator[Problem]:
    """Files and events that a task has are not taken from it: it cannot want less than these."""
    wanted = {d.name: d.after for d in asked.differences if d.name in ("nFiles", "nEvents") and d.after is not None}
    if not wanted:
        return
    masters = Dataset.objects.filter(task_id=task.id, type__in=MASTER_TYPES, master=None, excluded=False)
    has = masters.aggregate(nFiles=Max("n_files"), nEvents=Max("n_events"))
    for name, number in wanted.items():
        if number < (least := has[name] or 0):
            what = "files" if name == "nFiles" else "events"
            yield problem(path + name, "range", f"may not be less than the {least:,} {what} that the task has already")


def may_change(principal: Principal, task: Task, changes: Mapping[str, Any]) -> None:
    """Refused(403) where these values need the role production in the task's VO, which the caller does not have, or datasets of
    another VO that the caller's token does not reach.
    """
    before, after = task.params.task_params, {**task.params.task_params, **changes}
    if beyond := _beyond_reach(principal, task, before, after):
        told = f"this token reaches no dataset {beyond[0]}"
        raise Refused(403, "Not permitted", told, [problem("changes", "dataset", told)])
    wishes = production_wishes(read_task(after).parameters)
    wrong = [
        problem(f"changes.{w.field}", w.rule, f"{w.message} needs the role {PRODUCTION}") for w in wishes if w.field in changes
    ]
    if wrong and not may(principal, "task:produce", task.vo):
        raise Refused(403, "Not permitted", wrong[0].message, wrong)


def _beyond_reach(principal: Principal, task: Task, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The inputs of other VOs that a change adds and that a limited token of the task's owner does not reach, there or not."""
    if not principal.limited or principal.name != task.user_name:
        return []
    reader = Reader(task.vo, task.user_name, visible_vos(principal, "dataset:read").names)
    added = [name for name in read_task(after).input_names if name not in read_task(before).input_names]
    wishes = {name: (reader, key) for name in added if (key := of_another_vo(task.vo, name))}
    allowed = readable(set(wishes.values()))
    return [name for name, wish in wishes.items() if wish not in allowed]


def store_changes(task: Task, asked: Changed) -> dict[str, Any]:
    """Store the parameters of a locked task: the columns that are to be written with its move."""
    TaskParams.objects.filter(task_id=task.id).update(task_params=dict(asked.params))
    columns = dict(asked.columns)
    if {"ram_count", "core_count"} & columns.keys():
        columns["resource_type"] = resource_type_of(task, columns)
    return columns
