"""Filling the input datasets of a task: the catalogue is asked, and the rows are written in the order in which jobs are cut."""

from __future__ import annotations

from broker_site.foundation.agency.run import Run
from workqueues.catalogue import DatasetKey, catalogue
from workqueues.ledger.feed import add_files
from workqueues.models import Dataset, OutputTemplate, Task
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.feeding import LoadedInputs
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import DatasetPlan, TaskPlan
from workqueues.rules.refine.input_files import InputFiles, usable_files
from workqueues.states import INPUT_TYPES, MASTER_TYPES


def load_inputs(run: Run, task: Task, planned: TaskPlan) -> LoadedInputs:
    """Fill every input dataset of a claimed task, masters first. Raises CannotFeed, and what the catalogue raises."""
    plans: dict[tuple[str, str], DatasetPlan] = {(p.name, p.type): p for p in planned.datasets}
    inputs = [p for p in planned.datasets if p.type == "input"]
    catalogued = usable_files({p.name: catalogue().files(DatasetKey(task.vo, p.name)) for p in inputs}, inputs)
    rules, templates = parse(task.split_rule), OutputTemplate.objects.filter(task_id=task.id).order_by("id")
    patterns = list(templates.values_list("filename_template", flat=True)) if rules.fields_of_file else []
    input_files = InputFiles(task.id, rules, catalogued, patterns)
    empty = []
    for dataset in Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES).order_by("id"):
        p = plans[dataset.dataset_name, dataset.type]
        files = input_files.of(p)
        if p.type == "input" and not (p.master or files):
            empty.append(p.name)
        tracked = p.master or p.type == "random_seed" or read_attributes(p.attributes).tracked
        limited = tracked and p.type != "random_seed"
        add_files(
            run.id,
            dataset.id,
            files,
            run.who,
            max_attempt=planned.max_attempt if limited else None,
            max_failure=planned.max_failure if limited else None,
            tracked=tracked,
        )
    masters = Dataset.objects.filter(task_id=task.id, type__in=MASTER_TYPES, master=None)
    return LoadedInputs(sum(masters.values_list("n_files_to_be_used", flat=True)), empty, input_files.without_events)
