"""Lost outputs are made again: they are flagged, leave the catalogue, and a new task of what made them gives their names anew
(row J10; decisions D21, E1, F7).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import count

from django.db import transaction
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import Principal
from workqueues.ledger.output_names import OutputConflict, claim_outputs
from workqueues.ledger.submit import first_columns, hold_name, submit
from workqueues.models import CatalogueDataset, CatalogueFile, File, FileChange, Task
from workqueues.queries.lost_outputs import (
    BESIDE,
    Content,
    MadeOutput,
    contents,
    gone_inputs,
    made_by_jobs,
    made_outputs,
    parts_beside_files,
    recovering_tasks,
    template_of,
)
from workqueues.rules.refine import DatasetKey, InputWriterFacts, read_task
from workqueues.rules.task.recovery import cannot_recover, recovery_parameters

MOST_FILES = 1000
"""Files that are made again by one request."""

MOST_GENERATIONS = 10
"""How far back inputs that are gone too are made again."""


class CannotRecover(Exception):
    """Nothing is made again; the message is a sentence for whoever asked."""


def recover(key: DatasetKey, lfns: Collection[str], by: Principal, why: str = "") -> list[Task]:
    """Make these lost files of a dataset again, and before them inputs of theirs that are gone: the new tasks, that of the files
    last. Raises CannotRecover, and then nothing is done.
    """
    tasks: list[Task] = []
    with transaction.atomic():
        _recover(key, sorted(set(lfns)), by, why, tasks, MOST_GENERATIONS)
    return tasks


def _recover(key: DatasetKey, lfns: Sequence[str], by: Principal, why: str, tasks: list[Task], generations: int) -> None:
    """Add the tasks that make the files of one dataset again, behind those that make their inputs."""
    if not generations:
        raise CannotRecover(f"inputs of inputs are gone, {MOST_GENERATIONS} generations back; nothing is made again")
    list(CatalogueDataset.objects.select_for_update(no_key=True).filter(vo=key.vo, name=key.name))
    made = made_outputs(key.vo, key.name, lfns)
    if strange := [lfn for lfn in lfns if lfn not in made]:
        raise CannotRecover(f"no job has made a file {strange[0]} of {key.name}, so it cannot be made again")
    under_way = recovering_tasks(key.vo, key.name)
    if known := [lfn for lfn in lfns if lfn in under_way]:
        raise CannotRecover(f"task {under_way[known[0]].id} makes {known[0]} again already")
    by_task: dict[int, set[int]] = defaultdict(set)
    for output in made.values():
        by_task[output.task_id].add(output.job_id)
    for task_id, jobs in sorted(by_task.items()):
        old = Task.objects.select_related("params").get(id=task_id)
        had = contents(old.id, jobs)
        reason = cannot_recover(old.params.task_params) or (f"its jobs {BESIDE}" if parts_beside_files(had) else "")
        if reason:
            raise CannotRecover(f"files of task {old.id} cannot be made again: {reason}")
        writers = _recover_inputs(old, had, by, tasks, generations)
        tasks.append(_new_task(old, key, made_by_jobs(old.id, key.name, jobs), writers, by, why))


def _recover_inputs(
    old: Task, had: Sequence[Content], by: Principal, tasks: list[Task], generations: int
) -> list[InputWriterFacts]:
    """The tasks that make the inputs of these jobs again that are gone; those that do so already are waited for."""
    writers = []
    for key, lfns in gone_inputs(had).items():
        if key.vo != old.vo:
            raise CannotRecover(f"the input {lfns[0]} of {key.name} is gone too, which belongs to VO {key.vo}")
        under_way = recovering_tasks(key.vo, key.name)
        before = len(tasks)
        if missing := [lfn for lfn in lfns if lfn not in under_way]:
            try:
                _recover(key, missing, by, f"task {old.id} needs them", tasks, generations - 1)
            except CannotRecover as reason:
                raise CannotRecover(f"inputs are gone too: {reason}") from None
        parents = {task.id: task for task in (*tasks[before:], *(under_way[lfn] for lfn in lfns if lfn in under_way))}
        writers += [InputWriterFacts(task.id, task.status, key.name) for task in parents.values() if _writes(task, key)]
    return writers


def _writes(task: Task, key: DatasetKey) -> bool:
    """Whether the task makes files of this dataset again, and not those of an input of it."""
    return bool(task.params.task_params["oldDatasetName"] == key.name)


def _number(old: Task) -> int:
    """Which recovery of the task this is; nobody else gets this number."""
    hold_name(old.vo, old.user_name, f"{old.task_name}.recov")
    known = Task.objects.filter(vo=old.vo, user_name=old.user_name)
    return next(n for n in count(1) if not known.filter(task_name=f"{old.task_name}.recov{n}").exists())


def _new_task(
    old: Task, key: DatasetKey, lost: Sequence[MadeOutput], writers: Sequence[InputWriterFacts], by: Principal, why: str
) -> Task:
    """Flag the files, take them out of the catalogue, and register the task that makes them again."""
    number = _number(old)
    names = [output.lfn for output in lost]
    params = recovery_parameters(
        old.params.task_params, vo=key.vo, number=number, dataset=key.name, lost=names, template=template_of(old.id, key.name)
    )
    document = read_task(params)
    if document.problems:
        raise CannotRecover(f"files of task {old.id} cannot be made again: {document.problems[0].message}")
    columns = first_columns(params, old.user_name) | {"current_priority": old.current_priority, "reads_vos": old.reads_vos}
    task, _ = submit(params, columns, by.name, f"user:{by.name}", writers=writers)
    try:
        claim_outputs(task, document.outputs, shared=False, continues=key.name)
    except OutputConflict as conflict:
        raise CannotRecover(f"no task can write it again: {conflict}") from None
    said = "; ".join(filter(None, [why, f"task {task.id} makes it again"]))[:510]
    known = [output.file_id for output in lost if not output.lost]
    File.objects.filter(id__in=known, lost_at__isnull=True).update(lost_at=Now())
    FileChange.objects.bulk_create(
        FileChange(file_id=output.file_id, task_id=old.id, old="finished", new="lost", who=f"user:{by.name}"[:128], why=said)
        for output in lost
    )
    CatalogueFile.objects.filter(dataset__vo=key.vo, dataset__name=key.name, lfn__in=names).delete()
    audit(
        "dataset.recover", by, f"dataset {key.name}", vo=key.vo, reason=why,
        after={"task": task.id, "files": names[:20], "n_files": len(names)},
    )  # fmt: skip
    return task
