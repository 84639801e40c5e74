"""Who may write to a dataset (decision F7): one task, or those of one owner that all allow it, under names that never meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import connection

from workqueues.models import DatasetWriter, OutputTemplate, Task
from workqueues.rules.refine import OutputName
from workqueues.rules.refine.templates import may_meet
from workqueues.states import OUTPUT_TYPES


class OutputClaim(NamedTuple):
    """An output that the task may not write, why, and which part of its item is wrong."""

    output: OutputName
    reason: str
    part: str = "dataset"


class OutputsTaken(Exception):
    """Other tasks write to these datasets, or may write these names; nothing was claimed."""

    def __init__(self, claims: Sequence[OutputClaim]) -> None:
        super().__init__("; ".join(dict.fromkeys(claim.reason for claim in claims)))
        self.claims = claims


_CLAIM = """
WITH claimed AS (
    INSERT INTO workqueues_datasetwriter AS w (vo, dataset_name, user_name, task_id, shared)
    SELECT %(vo)s, name, %(user)s, %(task)s, %(shared)s FROM unnest(%(names)s::text[]) AS v(name) ORDER BY name
    ON CONFLICT (dataset_name, vo) DO UPDATE SET task_id = greatest(w.task_id, EXCLUDED.task_id), shared = EXCLUDED.shared
    WHERE w.task_id = EXCLUDED.task_id OR EXCLUDED.shared AND w.user_name = EXCLUDED.user_name
        AND (w.shared OR (SELECT status FROM workqueues_task WHERE id = w.task_id) = 'broken')
    RETURNING dataset_name
), planned AS (
    INSERT INTO workqueues_plannedoutput (task_id, dataset_name) SELECT %(task)s, dataset_name FROM claimed
    ON CONFLICT (dataset_name, task_id) DO NOTHING
)
SELECT dataset_name FROM claimed
"""
"""A broken task writes nothing any more: its dataset may be taken over by one that says so (seed 001, allowTaskDuplication)."""


def claim_outputs(task: Task, outputs: Sequence[OutputName], *, shared: bool) -> None:
    """The datasets are the task's to write, in the caller's transaction; again for one that has them. Raises OutputsTaken.

    `shared`: other tasks of the owner that say so too may write to them.
    """
    names = sorted({output.dataset for output in outputs})
    if not names:
        return
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"vo": task.vo, "user": task.user_name, "task": task.id, "shared": shared, "names": names})
        claimed = {name for (name,) in cursor.fetchall()}
    refused = [output for output in outputs if output.dataset not in claimed]
    claims = [*_taken(task.vo, refused, shared=shared), *(_meeting(task, outputs) if shared and not refused else ())]
    if claims:
        raise OutputsTaken(claims)


def _taken(vo: str, outputs: Sequence[OutputName], *, shared: bool) -> Iterable[OutputClaim]:
    rows = DatasetWriter.objects.filter(vo=vo, dataset_name__in={output.dataset for output in outputs})
    writers = {row.dataset_name: row for row in rows}
    hint = "it does not allow others" if shared else "several tasks of one owner may where all set allowTaskDuplication"
    for output in outputs:
        writer = writers[output.dataset]
        yield OutputClaim(output, f"{output.dataset} is written by task {writer.task_id} of {writer.user_name}; {hint}")


def _meeting(task: Task, outputs: Sequence[OutputName]) -> Iterable[OutputClaim]:
    """Outputs whose names could be those of files that another task writes to the same dataset.

    The same template is none: its serial numbers are dealt to all tasks together.
    """
    templates = OutputTemplate.objects.filter(
        dataset__vo=task.vo, dataset__dataset_name__in={output.dataset for output in outputs}, dataset__type__in=OUTPUT_TYPES
    ).exclude(task_id=task.id)
    others = set(templates.values_list("dataset__dataset_name", "filename_template"))
    for output in outputs:
        for dataset, other in sorted(others):
            if dataset == output.dataset and other != output.file_name and may_meet(other, output.file_name):
                why = f"{output.file_name} may give the name of a file of another task in {dataset}, where names are {other}"
                yield OutputClaim(output, f"{why}; use the same, or another beginning or end", "value")
                break
