"""Who may read and who may write which dataset (decision F8). Pure.

Not here: who has which role, and which grants there are (`queries.writers`, `queries.read_grants`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import found, problem
from workqueues.rules.jobs.lengths import DATASET
from workqueues.rules.refine.types import TaskDocument
from workqueues.states import OUTPUT_TYPES

GranteeKind = Literal["vo", "user"]
GRANTEE_KINDS: tuple[GranteeKind, ...] = ("vo", "user")
NOT_READ_ANY_MORE = "which is no longer open to its VO and owner: no grant lets them read it"
"""Of an input of another VO that a task could read when it was submitted."""
_PATTERN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:/*-]*")


class DatasetKey(NamedTuple):
    """What a dataset is known by: one name may be that of a dataset in each VO."""

    vo: str
    name: str


def dataset_key(vo: str, name: str, data_vo: str = "") -> DatasetKey:
    """The dataset that a task of the VO calls `name`; `data_vo`: the VO that has it, empty for the task's own."""
    return DatasetKey(data_vo, name.removeprefix(f"{data_vo}:")) if data_vo else DatasetKey(vo, name)


def of_another_vo(vo: str, name: str) -> DatasetKey | None:
    """The dataset of another VO that `name` may mean in a task of this VO: `other:name`; None where it has no scope."""
    scope, _, rest = name.partition(":")
    return DatasetKey(scope, rest) if rest and scope != vo else None


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a task reads: its VO and its owner. `vos`: those in which the owner has a role; None: to be looked up, and
    then only those count that are `within`; None: all.
    """

    vo: str
    user_name: str
    vos: frozenset[str] | None = None
    within: frozenset[str] | None = None


class Grant(NamedTuple):
    """Datasets of a VO that somebody else may read. `owner`: only those of this user; empty: all of the VO."""

    vo: str
    pattern: str
    owner: str
    grantee_kind: str
    grantee: str


def may_read(reader: Reader, dataset: DatasetKey, owner: str, grants: Iterable[Grant]) -> bool:
    """Whether a task of the reader may read the dataset of this owner. `grants`: those in force; `reader.vos` must be known."""
    if dataset.vo == reader.vo or dataset.vo in (reader.vos or ()):
        return True
    grantees = {"vo": reader.vo, "user": reader.user_name}
    return any(
        grant.vo == dataset.vo
        and grantees.get(grant.grantee_kind) == grant.grantee
        and grant.owner in ("", owner)
        and matches(grant.pattern, dataset.name)
        for grant in grants
    )


def matches(pattern: str, name: str) -> bool:
    """Whether the whole name is as the pattern says, in which `*` stands for any text, also for none."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *between, last = rest
    at, end = len(first), len(name) - len(last)
    if at > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in between:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def pattern_fault(pattern: str) -> tuple[str, str] | None:
    """Rule and reason why this is no pattern of dataset names; None when it is one."""
    limit = DATASET["dataset_name"]
    if len(pattern) > limit:
        return "length", f"{len(pattern)} characters, the limit is {limit}"
    if not _PATTERN.fullmatch(pattern):
        return "format", "a dataset name: letters, digits and . _ : / - , and * for any text"
    return None


def check_grant(grant: Grant, ends_at: datetime | None, now: datetime) -> Iterator[Problem]:
    """What is wrong with a new grant by itself; whether its VOs and users exist is seen elsewhere."""
    if fault := pattern_fault(grant.pattern):
        yield problem("pattern", *fault)
    if grant.grantee_kind == "group":
        why = "grants to groups are not supported yet, as nothing says who is in a group; name a VO or a user"
        yield problem("grantee_kind", "not_supported_yet", why)
    elif grant.grantee_kind not in GRANTEE_KINDS:
        yield problem("grantee_kind", "choice", f"expected {' or '.join(GRANTEE_KINDS)}, found {found(grant.grantee_kind)}")
    elif (grant.grantee_kind, grant.grantee) == ("vo", grant.vo):
        yield problem("grantee", "contradiction", f"tasks of VO {grant.vo} may read its datasets without a grant")
    if ends_at is not None and ends_at <= now:
        yield problem("ends_at", "range", "the grant would have ended already")


@dataclass(frozen=True, slots=True)
class Writer:
    """For whom a task writes: its VO and its owner. `produces`: with the role production, for every dataset of the VO."""

    vo: str
    user_name: str
    produces: bool = False


def check_outputs(document: TaskDocument, writer: Writer, owners: Mapping[str, str]) -> Iterator[Problem]:
    """The outputs that would go to a dataset of somebody else; `owners`: of the datasets that exist in the VO."""
    for item in document.items if not writer.produces else ():
        for name in item.names if item.type in OUTPUT_TYPES else ():
            if owners.get(name, writer.user_name) != writer.user_name:
                yield problem(f"{item.path}.dataset", "owner", of_another(name, writer))


def of_another(name: str, writer: Writer) -> str:
    """Why the dataset is not written to."""
    return f"the dataset {name} of VO {writer.vo} belongs to another user than {writer.user_name}; choose another name"
