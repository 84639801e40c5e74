"""The preprocessing step of a task: its rows made before all others, and what its job found filled in (row J26).

Between both it is a task like any other, of one pseudo file. Not here: what is filled in (`rules.refine.filling`).
"""

from __future__ import annotations

from django.db import transaction

from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.define import add_templates, insert_dataset
from workqueues.ledger.feed import add_files
from workqueues.ledger.moves import datasets_born, move_dataset, move_task
from workqueues.ledger.output_names import claim_outputs
from workqueues.ledger.outputs import register_datasets
from workqueues.models import Dataset, InputWriter, JobParamsTemplate, TaskParams, WorkQueue
from workqueues.queries.writers import writer_of
from workqueues.rules.jobs.pseudo_files import pseudo_files
from workqueues.rules.jobs.split_rule import PREPROCESSED, STEP, changed
from workqueues.rules.refine import InputWriterFacts, OutputName, TaskPlan
from workqueues.rules.refine.filling import Filled
from workqueues.states import INPUT_DATASET, INPUT_TYPES


def begin_step(
    run_id: str, task_id: int, plan: TaskPlan, work_queue: WorkQueue, gshare: str, resource_type: str, who: str
) -> None:
    """Store the plan of the step of a claimed task, with its file, and release the task: topreprocess.

    What is left of an earlier step, which was not carried to its end, does not count any more. Raises Stale, OutputConflict,
    DatasetOfAnother.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        leave_out_inputs(task_id, who, "the preprocessing step begins anew")
        pseudo, *logs = plan.datasets
        dataset = insert_dataset(task_id, task.vo, pseudo, [])
        datasets_born([dataset], who, "stands for the preprocessing job")
        add_files(run_id, dataset.id, list(pseudo_files(1)), who, max_attempt=plan.max_attempt)
        for log in logs:
            claim_outputs(task, [OutputName(log.name, "")], shared=False)
            register_datasets([log.name], writer_of(task))
            if not Dataset.objects.filter(task_id=task_id, dataset_name=log.name).exists():
                row = insert_dataset(task_id, task.vo, log, [dataset])
                datasets_born([row], who, "for the log of the preprocessing job")
                add_templates(task_id, plan.templates, [dataset, row])
                move_dataset(row, "ready", who, "registered in the catalogue")
        JobParamsTemplate.objects.update_or_create(task_id=task_id, defaults={"job_params_template": plan.job_parameters})
        columns = {**plan.columns, "gshare": gshare, "work_queue": work_queue, "resource_type": resource_type}
        move_task(task, "topreprocess", who, "a job fills in its parameters first", error_dialog="", **columns)


def leave_out_inputs(task_id: int, who: str, why: str) -> None:
    """Whatever was input of a locked task is none any more."""
    rows = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES, excluded=False)
    for row in rows.order_by("id"):
        if row.status in INPUT_DATASET.accepting("close"):
            move_dataset(row, "done", who, why)
        Dataset.objects.filter(id=row.id).update(excluded=True)


def finish_step(run_id: str, task_id: int, job_id: int, filled: Filled) -> None:
    """The job of the step has finished, and its task, claimed, is registered with what it filled in; tobroken where it may not.

    The history names the job, whose word that is.
    """
    who = f"job:{job_id}"
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        leave_out_inputs(task_id, who, "the preprocessing job has finished")
        rule = changed(task.split_rule, STEP, PREPROCESSED)
        if not filled.problems:
            TaskParams.objects.filter(task_id=task_id).update(task_params=dict(filled.params))
        move_task(task, "registered", who, filled.sentence(), split_rule=rule, error_dialog="", frozen_time=None)
        if filled.problems:
            reason = "; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in filled.problems)
            move_task(task, "tobroken", who, reason, error_dialog=reason[:510])


def infer_parents(run_id: str, task_id: int, writers: list[InputWriterFacts]) -> None:
    """These write what a claimed task reads by the parameters that were filled in, as is found at a submission otherwise."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        InputWriter.objects.bulk_create(
            [InputWriter(task_id=task_id, writer_id=w.task_id, dataset_name=w.dataset_name) for w in writers],
            ignore_conflicts=True,
        )
