"""A refined task: datasets, output templates and job parameters stored in one transaction with the move to defined."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from broker_site.foundation import gdpconfig
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.moves import datasets_born, move_task
from workqueues.ledger.output_names import claim_outputs
from workqueues.models import Dataset, JobParamsTemplate, OutputTemplate, PulledElement, Task, WorkQueue
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.lengths import LARGEST_NUMBERS
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import DatasetPlan, OutputName, TaskPlan
from workqueues.rules.refine.division import chosen
from workqueues.rules.refine.types import OutputTemplatePlan
from workqueues.states import WRITTEN_TYPES


def define(run_id: str, task_id: int, plan: TaskPlan, work_queue: WorkQueue, gshare: str, resource_type: str, who: str) -> None:
    """Store the plan of a claimed task and release it. Raises Stale (the claim is gone), OutputConflict."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        claim_outputs(task, _outputs(plan), shared=plan.shares_outputs, continues=plan.continues)
        datasets = _datasets(task_id, task.vo, plan)
        datasets_born(datasets, who, "defined with the task")
        if parse(task.split_rule).preprocessing:
            OutputTemplate.objects.filter(task_id=task_id).delete()  # that of the log of the step, of which no more jobs are made
        lot = PulledElement.objects.filter(task_id=task_id).values_list("work__serials", flat=True).first()
        add_templates(task_id, plan.templates, datasets, lot)
        JobParamsTemplate.objects.update_or_create(task_id=task_id, defaults={"job_params_template": plan.job_parameters})
        move_task(
            task,
            "defined",
            who,
            "refined",
            work_queue=work_queue,
            resource_type=resource_type,
            error_dialog="",
            **{**plan.columns, "gshare": gshare, "work_to": _work_to(task, plan)},
        )


def _work_to(task: Task, plan: TaskPlan) -> str:
    """Who does its work, from now on."""
    activity = activity_of(task.prod_source_label)
    of_activity = gdpconfig.value("elements", "WORK_TO_<activity>", vo=task.vo, activity=activity)
    key = of_activity or gdpconfig.value("elements", "WORK_TO", vo=task.vo)
    return chosen(str(plan.columns.get("work_to") or ""), key, plan.divided)


def add_templates(
    task_id: int, templates: Sequence[OutputTemplatePlan], datasets: Sequence[Dataset], lot: int | None = None
) -> None:
    """Store how the outputs of a task are named; `datasets`: the rows of those of its plan, in order. `lot`: serial numbers that
    its parent broker cut for it; None: all are its own.
    """
    largest = LARGEST_NUMBERS[0]
    OutputTemplate.objects.bulk_create(
        OutputTemplate(
            task_id=task_id,
            dataset=datasets[t.dataset_index],
            filename_template=t.filename_template,
            source_name=t.source_name,
            serial_nr=t.serial_nr,
            max_serial_nr=largest if lot is None else min(t.serial_nr + lot, largest),
            stream_name=t.stream_name,
            out_type=t.out_type,
            optional=t.optional,
        )
        for t in templates
    )


def _outputs(plan: TaskPlan) -> list[OutputName]:
    """What the jobs write to by name; templates of datasets are none."""
    written = [(plan.datasets[t.dataset_index], t.filename_template) for t in plan.templates]
    return [OutputName(dataset.name, file_name) for dataset, file_name in written if dataset.type in WRITTEN_TYPES]


def _datasets(task_id: int, vo: str, plan: TaskPlan) -> list[Dataset]:
    """Insert the datasets in the plan's order; one refers only to datasets that stand before it."""
    datasets: list[Dataset] = []
    for p in plan.datasets:
        datasets.append(insert_dataset(task_id, vo, p, datasets))
    return datasets


def insert_dataset(task_id: int, vo: str, p: DatasetPlan, before: Sequence[Dataset]) -> Dataset:
    """Insert one dataset of a plan; `before`: the rows of those that stand before it, in the plan's order."""
    return Dataset.objects.create(
        task_id=task_id,
        vo=vo,
        dataset_name=p.name,
        type=p.type,
        stream_name=p.stream_name,
        attributes=p.attributes,
        container_name=p.container,
        storage_token=p.storage_token,
        destination=p.destination,
        state=p.state,
        status="defined",
        n_files_wanted=p.n_files,
        master=None if p.master_index is None else before[p.master_index],
        provenance=None if p.provenance_index is None else before[p.provenance_index],
    )


def break_task(run_id: str, task_id: int, reason: str, who: str) -> None:
    """A claimed task that can never be done: tobroken, then broken by the agent finish."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        move_task(task, "tobroken", who, reason, error_dialog=reason[:510])
