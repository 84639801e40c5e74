"""What a word or a number finds among tasks, jobs, datasets, files, queues and users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.rest import keyset
from broker_site.foundation.rest.paging import LARGEST_ID
from broker_site.foundation.sql.wildcards import named
from brokerage.models import ComputingQueue
from monitoring.queries.database import alias
from monitoring.queries.datasets import visible_datasets
from monitoring.queries.files import visible_files
from monitoring.queries.jobs import visible_jobs
from monitoring.queries.tasks import visible_tasks

MOST = 10
"""Finds of a kind that are shown."""
SHORTEST = 2
"""Letters that a text must have to be looked for."""


@dataclass(frozen=True, slots=True)
class Find:
    """Something that was found: its page, its name, what kind of thing it is and its state, where it has one."""

    kind: str
    address: str
    name: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class Finds:
    """All finds of one kind. `all_of_them`: the list with the rest; `partly`: only the newest rows were looked at."""

    kind: str
    found: Sequence[Find]
    all_of_them: str = ""
    partly: bool = False


def look_for(text: str, scope: VoScope) -> list[Finds]:
    """What a number or a part of a name finds; nothing for a text that is too short."""
    found = by_number(int(text), scope) if text.isascii() and text.isdigit() else []
    return found or (by_text(text, scope) if len(text) >= SHORTEST else [])


def by_number(number: int, scope: VoScope) -> list[Finds]:
    """Tasks, jobs, datasets and files of this number; four statements."""
    if not 0 < number <= LARGEST_ID:
        return []
    kinds: tuple[tuple[str, QuerySet[Any], str, str], ...] = (
        ("task", visible_tasks(scope), "task_id", "task_name"),
        ("job", visible_jobs(scope), "job_id", ""),
        ("dataset", visible_datasets(scope), "dataset_id", "dataset_name"),
        ("file", visible_files(scope), "file_id", "lfn"),
    )
    found = []
    for kind, table, argument, name in kinds:
        columns = ("status", name) if name else ("status",)
        for state, *named_so in table.filter(id=number).values_list(*columns):
            address = reverse(f"page-{kind}", kwargs={argument: number})
            found.append(Finds(kind, [Find(kind, address, " ".join([str(number), *named_so]), state)]))
    return found


def by_text(text: str, scope: VoScope) -> list[Finds]:
    """Queues, tasks, datasets and owners with the text anywhere in their names; of tasks and datasets among the newest."""
    queues = ComputingQueue.objects.using(alias()).filter(name__icontains=text).order_by("name")
    found = [
        Finds("queue", [Find("queue", reverse("page-queue", args=[q.name]), q.name, q.status) for q in queues[:MOST]]),
        _newest("task", visible_tasks(scope), "task_name", text),
        _newest("dataset", visible_datasets(scope), "dataset_name", text),
    ]
    owners = visible_tasks(scope).filter(user_name=text).order_by()[:1].values_list("user_name", flat=True)
    tasks_of = [Find("owner", reverse("page-user", args=[owner]), f"Tasks of {owner}") for owner in owners]
    return [finds for finds in (*found, Finds("owner", tasks_of)) if finds.found or finds.partly]


def _newest(kind: str, table: QuerySet[Any], column: str, text: str) -> Finds:
    """Those among the newest with the text in a column, in a bounded time."""
    anywhere = f"*{text}*"
    page = keyset.page(table.filter(named(column, anywhere)), list, MOST, None, narrow=False, counted=False)
    finds = [
        Find(kind, reverse(f"page-{kind}", args=[row.id]), f"{row.id} {getattr(row, column)}", row.status) for row in page.rows
    ]
    return Finds(kind, finds, _list(kind, **{column: anywhere.replace(",", "?")}), page.looked_down_to is not None)


def _list(kind: str, **filters: str) -> str:
    return f"{reverse(f'page-{kind}s')}?{urlencode(filters)}"
