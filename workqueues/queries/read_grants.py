"""Which datasets of other VOs tasks may read at this moment (decision F8). The rule itself: `rules.refine.data_rights`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.access.models import Role, User
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import found, problem
from workqueues.models import CatalogueDataset, Dataset, ReadGrant, Task
from workqueues.rules.refine import DatasetKey, Reader, dataset_key
from workqueues.rules.refine.data_rights import Grant, may_read

Wish = tuple[Reader, DatasetKey]
"""Somebody wants to read a dataset."""

INPUT_IN_CATALOGUE = """
c.vo = coalesce(nullif(d.data_vo, ''), d.vo) AND
c.name = CASE d.data_vo WHEN '' THEN d.dataset_name ELSE substr(d.dataset_name, length(d.data_vo) + 2) END
"""
"""SQL: `c` is the dataset of the catalogue that the task's dataset `d` reads, as `dataset_key` has it."""


def readable(wishes: Collection[Wish]) -> dict[Wish, int]:
    """Those of these datasets of other VOs that exist and may be read, with their numbers in the catalogue.

    Three queries at most, however many wishes; none without wishes.
    """
    if not wishes:
        return {}
    vos = {dataset.vo for _, dataset in wishes}
    readers = with_roles({reader for reader, _ in wishes}, vos)
    grants = grants_in_force(readers.values(), vos)
    open_vos = {grant.vo for grant in grants}.union(*(reader.vos or () for reader in readers.values())) & vos
    existing = catalogued([dataset for _, dataset in wishes if dataset.vo in open_vos])
    return {
        (reader, dataset): existing[dataset][0]
        for reader, dataset in wishes
        if dataset in existing and may_read(readers[reader], dataset, existing[dataset][1], grants)
    }


def with_roles(readers: Collection[Reader], vos: Collection[str]) -> dict[Reader, Reader]:
    """The readers with those of these VOs in which their owners have a role."""
    unknown = {reader.user_name for reader in readers if reader.vos is None}
    roles = Role.objects.filter(user__username__in=unknown, user__is_active=True, vo__in=vos)
    held = set(roles.values_list("user__username", "vo")) if unknown else set()
    return {
        reader: replace(reader, vos=frozenset(vo for vo in _within(reader, vos) if (reader.user_name, vo) in held))
        if reader.vos is None
        else reader
        for reader in readers
    }


def _within(reader: Reader, vos: Collection[str]) -> Collection[str]:
    return vos if reader.within is None else reader.within & frozenset(vos)


def reader_of(task: Task) -> Reader:
    """For whom the task reads; what the token that submitted it did not reach it never reads by the roles of its owner."""
    return Reader(task.vo, task.user_name, within=None if task.reads_vos is None else frozenset(task.reads_vos))


def grants_in_force(readers: Iterable[Reader], vos: Collection[str]) -> list[Grant]:
    """The grants on datasets of these VOs for the VOs of the readers, or for themselves, that have not ended."""
    names = {(reader.vo, reader.user_name) for reader in readers}
    for_us = Q(grantee_kind="vo", grantee__in={vo for vo, _ in names}) | Q(
        grantee_kind="user", grantee__in={user for _, user in names}
    )
    rows = ReadGrant.objects.filter(for_us, Q(ends_at=None) | Q(ends_at__gt=Now()), vo__in=vos)
    return [Grant(*row) for row in rows.values_list("vo", "pattern", "owner", "grantee_kind", "grantee")]


def check_names(grant: Grant) -> list[Problem]:
    """Who of those that a new grant names does not exist: a VO in which nobody has a role, a user who is not active."""
    vos = {"vo": grant.vo} | ({"grantee": grant.grantee} if grant.grantee_kind == "vo" else {})
    known = set(Role.objects.filter(vo__in=vos.values()).values_list("vo", flat=True))
    wrong = [problem(field, "vo", f"nobody has a role in a VO {found(vo)}") for field, vo in vos.items() if vo not in known]
    user = grant.grantee_kind == "user"
    if user and not User.objects.filter(username=grant.grantee, is_active=True).exists():
        wrong.append(problem("grantee", "user", f"there is no active user {found(grant.grantee)}"))
    return wrong


def catalogued(datasets: Collection[DatasetKey]) -> dict[DatasetKey, tuple[int, str]]:
    """Number and owner of those of these datasets that the catalogue has."""
    if not datasets:
        return {}
    rows = CatalogueDataset.objects.filter(name__in={d.name for d in datasets}, vo__in={d.vo for d in datasets})
    wanted = set(datasets)
    columns: Any = rows.values_list("vo", "name", "id", "owner")
    return {key: (id_, owner) for vo, name, id_, owner in columns if (key := DatasetKey(vo, name)) in wanted}


def withheld_inputs(tasks: Sequence[Task], inputs: Iterable[Dataset]) -> dict[int, str]:
    """Task -> an input of another VO that it reads and may not read any more, under its name in the task.

    One that the catalogue does not have is none of them. No query where no task reads from another VO.
    """
    readers = {task.id: reader_of(task) for task in tasks}
    wishes = {
        d: (readers[d.task_id], dataset_key(d.vo, d.dataset_name, d.data_vo)) for d in inputs if d.data_vo and not d.excluded
    }
    allowed = readable(set(wishes.values()))
    refused = {d: wish for d, wish in wishes.items() if wish not in allowed}
    existing = catalogued([key for _, key in refused.values()])
    return {d.task_id: d.dataset_name for d, (_, key) in refused.items() if key in existing}
