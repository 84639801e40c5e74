"""Who may write to a dataset (decision F7): one task, or those of one owner that all allow it, under names that never meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection

from workqueues.models import OutputTemplate, PlannedOutput, Task
from workqueues.rules.refine import OutputName
from workqueues.rules.refine.name_shapes import may_meet
from workqueues.states import WRITTEN_TYPES


class OutputClaim(NamedTuple):
    """An output that the task may not write, why, and which part of its item is wrong."""

    output: OutputName
    reason: str
    part: str = "dataset"


class OutputConflict(Exception):
    """Other tasks write to these datasets, or may write these names; nothing was claimed."""

    def __init__(self, claims: Sequence[OutputClaim]) -> None:
        super().__init__("; ".join(dict.fromkeys(claim.reason for claim in claims)))
        self.claims = claims


_KNOWN = """
INSERT INTO workqueues_datasetwriter (vo, dataset_name, user_name, shared)
SELECT %(vo)s, name, %(user)s, %(shared)s FROM unnest(%(names)s::text[]) AS v(name) ORDER BY name
ON CONFLICT (dataset_name, vo) DO NOTHING
"""
_LOCK = """
SELECT FROM workqueues_datasetwriter WHERE vo = %(vo)s AND dataset_name = ANY (%(names)s) ORDER BY dataset_name FOR NO KEY UPDATE
"""
_CLAIM = """
WITH claimed AS (
    UPDATE workqueues_datasetwriter w SET user_name = %(user)s, shared = %(shared)s
    WHERE w.vo = %(vo)s AND w.dataset_name = ANY (%(names)s) AND (
        EXISTS (SELECT FROM workqueues_plannedoutput p WHERE p.writer_id = w.id AND p.task_id = %(task)s)
        OR NOT EXISTS (SELECT FROM workqueues_plannedoutput p WHERE p.writer_id = w.id)
        OR %(shared)s AND w.user_name = %(user)s AND (w.shared OR NOT EXISTS (
            SELECT FROM workqueues_plannedoutput p JOIN workqueues_task t ON t.id = p.task_id
            WHERE p.writer_id = w.id AND t.status <> 'broken')))
    RETURNING w.id, w.dataset_name
), planned AS (
    INSERT INTO workqueues_plannedoutput (task_id, writer_id) SELECT %(task)s, id FROM claimed
    ON CONFLICT (writer_id, task_id) DO NOTHING
)
SELECT dataset_name FROM claimed
"""
"""The rows are locked, so that no other task gets one meanwhile. A broken task writes nothing any more: its dataset may be taken
over by one that says so (seed 001, allowTaskDuplication).
"""


_CONTINUE = """
INSERT INTO workqueues_plannedoutput (task_id, writer_id)
SELECT %(task)s, w.id FROM workqueues_datasetwriter w WHERE w.vo = %(vo)s AND w.dataset_name = %(continues)s
ON CONFLICT (writer_id, task_id) DO NOTHING
"""


def claim_outputs(task: Task, outputs: Sequence[OutputName], *, shared: bool, continues: str = "") -> None:
    """The datasets are the task's to write, in the caller's transaction; again for one that has them. Raises OutputConflict.

    `shared`: other tasks of the owner that say so too may write to them. `continues`: a dataset of another task, to which it
    gives files that are lost, and no others.
    """
    if continues:
        with connection.cursor() as cursor:
            cursor.execute(_CONTINUE, {"task": task.id, "vo": task.vo, "continues": continues})
        outputs = [output for output in outputs if output.dataset != continues]
    names = sorted({output.dataset for output in outputs})
    if not names:
        return
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"vo": task.vo, "user": task.user_name, "task": task.id, "shared": shared, "names": names}
        cursor.execute(_KNOWN, values)
        cursor.execute(_LOCK, values)
        cursor.execute(_CLAIM, values)
        claimed = {name for (name,) in cursor.fetchall()}
    refused = [output for output in outputs if output.dataset not in claimed]
    claims = [*_of_others(task.vo, refused, shared=shared), *(_meeting(task, outputs) if shared and not refused else ())]
    if claims:
        raise OutputConflict(claims)


def _of_others(vo: str, outputs: Sequence[OutputName], *, shared: bool) -> Iterable[OutputClaim]:
    planned = PlannedOutput.objects.filter(writer__vo=vo, writer__dataset_name__in={output.dataset for output in outputs})
    newest = dict(planned.order_by("task_id").values_list("writer__dataset_name", "task_id"))
    owners = dict(planned.values_list("writer__dataset_name", "writer__user_name"))
    hint = "it does not allow others" if shared else "several tasks of one owner may where all set allowTaskDuplication"
    for output in outputs:
        writer = f"task {newest[output.dataset]} of {owners[output.dataset]}"
        yield OutputClaim(output, f"{output.dataset} is written by {writer}; {hint}")


def _meeting(task: Task, outputs: Sequence[OutputName]) -> Iterable[OutputClaim]:
    """Outputs whose names could be those of files that another task writes to the same dataset.

    The same template is none: its serial numbers are dealt to all tasks together.
    """
    templates = OutputTemplate.objects.filter(
        dataset__vo=task.vo, dataset__dataset_name__in={output.dataset for output in outputs}, dataset__type__in=WRITTEN_TYPES
    ).exclude(task_id=task.id)
    others = set(templates.values_list("dataset__dataset_name", "filename_template"))
    for output in outputs:
        for dataset, other in sorted(others):
            if dataset == output.dataset and other != output.file_name and may_meet(other, output.file_name):
                why = f"{output.file_name} may give the name of a file of another task in {dataset}, where names are {other}"
                yield OutputClaim(output, f"{why}; use the same, or another beginning or end", "value")
                break
