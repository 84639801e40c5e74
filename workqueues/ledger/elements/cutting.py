"""Elements are made of files that were picked for them (row W1): the files keep waiting, picked, until a child has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection, transaction

from broker_site.foundation.sql.copying import take_ids
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.elements.groups import GroupKey, groups
from workqueues.ledger.elements.inboxes import open_inbox
from workqueues.ledger.elements.moves import elements_born
from workqueues.ledger.moves import Stale
from workqueues.models import Element
from workqueues.rules.elements.cuts import Cut


class NewElement(NamedTuple):
    """An element to be made: its files and their places, who may have it, how many jobs it will be, and why no site may have it
    (empty: one may).
    """

    cut: Cut
    group: GroupKey
    jobs: int
    why_waiting: str = ""


_GIVE = """
UPDATE workqueues_file f SET element_id = v.element_id
FROM unnest(%(files)s::bigint[], %(elements)s::bigint[]) AS v(id, element_id)
WHERE f.id = v.id AND f.status = 'picked' AND f.element_id IS NULL
"""


def make_elements(run_id: str, task_id: int, dataset_id: int, new: Sequence[NewElement], who: str) -> None:
    """Make elements of files that this run has picked of a dataset of a claimed task. Raises Stale, having written nothing, where
    claim or files are no longer this run's.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        group_ids = groups({element.group for element in new})
        ids = take_ids("workqueues_element", len(new))
        rows = [
            Element(
                id=id_,
                task_id=task_id,
                dataset_id=dataset_id,
                group_id=group_ids[element.group],
                status="Available",
                priority=task.current_priority,
                jobs=element.jobs,
                n_files=len(element.cut.files),
                n_events=element.cut.n_events or None,
                places=list(element.cut.storages),
                why_waiting=element.why_waiting[:255],
            )
            for id_, element in zip(ids, new, strict=True)
        ]
        elements_born(rows, who, "cut from the input of its task")
        pairs = [(file.id, id_) for id_, element in zip(ids, new, strict=True) for file in element.cut.files]
        with connection.cursor() as cursor:
            cursor.execute(_GIVE, {"files": [file for file, _ in pairs], "elements": [id_ for _, id_ in pairs]})
            if cursor.rowcount != len(pairs):
                raise Stale(f"{len(pairs) - cursor.rowcount} of {len(pairs)} files are no longer picked")
        if new:
            open_inbox(task_id)
