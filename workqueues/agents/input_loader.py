"""Filling the input datasets of a task: the catalogue is asked, and the rows are written in the order in which jobs are cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker_site.foundation.agency.run import Run
from workqueues.catalogue import catalogue
from workqueues.ledger.feed import add_files, bind_by_number
from workqueues.models import Dataset, OutputTemplate, Task
from workqueues.queries.datasets import files_of_masters
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.feeding import LoadedInputs
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.refine import DatasetFacts, DatasetPlan, Reader, TaskDocument, TaskPlan, dataset_key
from workqueues.rules.refine.input_files import InputFiles, usable_files
from workqueues.splitters.pairs import binding_of
from workqueues.states import INPUT_TYPES, MASTER_TYPES


def look_up_inputs(task: Task, document: TaskDocument) -> tuple[Mapping[str, DatasetFacts], Collection[str]]:
    """The inputs of a task that the catalogue has for it, and those of other VOs that it may not read any more."""
    reader = Reader(task.vo, task.user_name)
    known = catalogue().look_up(reader, document.input_names)
    return known, catalogue().withheld(reader, [name for name in document.input_names if name not in known])


def load_inputs(run: Run, task: Task, planned: TaskPlan) -> LoadedInputs:
    """Fill every input dataset of a claimed task, masters first. Raises CannotFeed, and what the catalogue raises."""
    plans: dict[tuple[str, str], DatasetPlan] = {(p.name, p.type): p for p in planned.datasets}
    inputs = [p for p in planned.datasets if p.type == "input"]
    catalogued = usable_files({p.name: catalogue().files(dataset_key(task.vo, p.name, p.data_vo)) for p in inputs}, inputs)
    rules, templates = parse(task.split_rule), OutputTemplate.objects.filter(task_id=task.id).order_by("id")
    patterns = list(templates.values_list("filename_template", flat=True)) if rules.fields_of_file else []
    known, events = files_of_masters(task.id)
    input_files = InputFiles(task.id, rules, catalogued, patterns, known, events)
    empty = []
    rows = Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, excluded=False)
    for dataset in sorted(rows, key=lambda d: (d.master_id is not None, d.id)):
        p = plans.get((dataset.dataset_name, dataset.type))
        if p is None:
            continue  # all of it was processed before it was no input any more
        files = input_files.of(p)
        if p.type == "input" and not (p.master or files):
            empty.append(p.name)
        tracked = p.master or p.type == "random_seed" or read_attributes(p.attributes).tracked
        limited = p.master  # tries of the others never end a file of a master (decision F6)
        add_files(
            run.id,
            dataset.id,
            files,
            run.who,
            max_attempt=planned.max_attempt if limited else None,
            max_failure=planned.max_failure if limited else None,
            tracked=tracked,
            data_vo=p.data_vo,
        )
    _bind_numbers(run, task, rules)
    masters = Dataset.objects.filter(task_id=task.id, type__in=MASTER_TYPES, master=None)
    return LoadedInputs(sum(masters.values_list("n_files_to_be_used", flat=True)), empty, input_files.without_events)


def _bind_numbers(run: Run, task: Task, rules: SplitRules) -> None:
    """Files of secondary datasets that belong to files of a master by their numbers (indexConsistent) stand beside these in every
    job, from the first on. Where events are cut, several jobs have a file, and each takes the next one.
    """
    datasets = list(Dataset.objects.filter(task_id=task.id, type="input", excluded=False).order_by("id"))
    partners = [d for d in datasets if read_attributes(d.attributes).index_consistent]
    masters = [d.id for d in partners if d.master_id is None]
    if not masters or rules.events_per_job or rules.target_events:
        return
    for dataset in partners:
        rule = read_attributes(dataset.attributes)
        if dataset.master_id is not None and binding_of(rule) == "file" and rule.ratio == 1:
            bind_by_number(run.id, task.id, dataset.id, masters)
