"""Filling the input datasets of a task: the catalogue is asked, and the rows are written in the order in which jobs are cut."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from workqueues.agents.recovered_inputs import recovered_files, recovered_records
from workqueues.agents.rounds import new_round
from workqueues.catalogue import catalogue
from workqueues.ledger.feed import CatalogueLook, add_files, bind_by_number
from workqueues.ledger.open_inputs import hold_absent, let_go_collected
from workqueues.models import Dataset, OutputTemplate, Task
from workqueues.queries.datasets import files_not_gone, files_of_masters, staging_blocks
from workqueues.queries.lost_outputs import Recovery, recovery_of, sound_outputs
from workqueues.queries.read_grants import reader_of
from workqueues.queries.tasks import input_writers, parent_facts
from workqueues.queries.used_files import used_files
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.feeding import LoadedInputs, NewFile
from workqueues.rules.jobs.open_inputs import bunch, followed, growing_blocks, held_at_first
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.jobs.staging import NOT_LOOKED_AT
from workqueues.rules.refine import (
    DatasetFacts,
    DatasetPlan,
    InputWriterFacts,
    Refined,
    TaskDocument,
    TaskPlan,
    dataset_key,
    plan,
    read_task,
)
from workqueues.rules.refine.chosen_files import absent_files, chosen_files
from workqueues.rules.refine.deleted_inputs import deleted_inputs
from workqueues.rules.refine.input_files import CannotFeed, InputFiles, usable_files
from workqueues.rules.refine.plan import being_written
from workqueues.splitters.pairs import binding_of
from workqueues.states import INPUT_TYPES, MASTER_TYPES, MUTABLE


def look_up_inputs(task: Task, document: TaskDocument) -> tuple[Mapping[str, DatasetFacts], Collection[str]]:
    """The inputs of a task that the catalogue has for it, or had and that it skips, and those of other VOs that it may not read
    any more.

    Of inputs that came with a change nobody has seen yet that it may read them: they are as if they did not exist.
    """
    reader = reader_of(task)
    known = catalogue().look_up(reader, document.input_names)
    absent = [name for name in document.input_names if name not in known]
    if absent and task.status == "rerefine":
        seen = Dataset.objects.filter(task_id=task.id, dataset_name__in=absent).values_list("dataset_name", flat=True)
        absent = list(seen.distinct())
    withheld = catalogue().withheld(reader, absent)
    deleted = deleted_inputs(document, known, _existed(task, document).difference(withheld))
    return {**known, **deleted}, withheld


def _existed(task: Task, document: TaskDocument) -> frozenset[str]:
    """The inputs of a task that skips deleted ones which the catalogue had: at the submission, or since they were refined."""
    rows = Dataset.objects.filter(task_id=task.id, type="input").values_list("dataset_name", "state")
    had = {name for name, state in rows if state != "missing"}
    if task.datasets.exists():
        return frozenset(had) if parse(task.split_rule).ignore_missing else frozenset()
    if not document.parameters.ignoreMissingInDS or document.parameters.waitInput:
        return frozenset()
    parent, writers = parent_facts(task), input_writers(task)
    written = {*(parent.outputs if parent else ()), *(writer.dataset_name for writer in writers)}
    return frozenset(document.input_names) - written


class InputsSeen(NamedTuple):
    """What the catalogue and the parents say of a task's inputs now: its plan, the parents that were inferred, and the datasets
    that live parents write.
    """

    planned: Refined
    writers: Sequence[InputWriterFacts]
    written: Collection[str]


def see_inputs(task: Task) -> InputsSeen:
    """Look at the inputs of a task, parents first: what one that has ended since has written is in its datasets."""
    document = read_task(task.params.task_params)
    parent, writers = parent_facts(task), input_writers(task)
    known, withheld = look_up_inputs(task, document)
    planned = plan(
        document, task_id=task.id, user_name=task.user_name, parent=parent, writers=writers, known=known, withheld=withheld
    )
    return InputsSeen(planned, writers, being_written(parent, writers))


def load_inputs(run: Run, task: Task, planned: TaskPlan, written: Collection[str] = ()) -> LoadedInputs:
    """Fill every input dataset of a claimed task, masters first, with what it does not have yet.

    `written`: the datasets that live parents write. Raises CannotFeed, and what the catalogue raises.
    """
    plans: dict[tuple[str, str], DatasetPlan] = {(p.name, p.type): p for p in planned.datasets}
    inputs = [p for p in planned.datasets if p.type == "input"]
    rules = parse(task.split_rule)
    recovery = recovery_of(task) if rules.recovery else None
    rows = Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, excluded=False)
    datasets = sorted(rows, key=lambda d: (d.master_id is not None, d.id))
    read = _catalogued(task, inputs)
    for dataset in datasets:
        if dataset.n_files and dataset.type == "input" and dataset.dataset_name in read:
            hold_absent(run.id, dataset, {f.lfn for f in read[dataset.dataset_name]}, run.who)
    growing = followed(rules, {p.name: p.state for p in inputs}, written)
    used, used_before = used_files(planned.skips_used_by, [p.name for p in planned.datasets]), 0
    if not recovery:  # which reads what the jobs before had
        deleted = {name for name, files in read.items() if not files} if rules.ignore_missing else set()
        fed = {dataset.dataset_name for dataset in datasets if dataset.n_files}
        _look_for_named(read, inputs, growing | fed | deleted, newer=planned.newer_attempts)
        taken = files_not_gone(task.id) if planned.newer_attempts else None
        read, used_before = chosen_files(read, inputs, used, taken), _used_before(read, inputs, used)
    catalogued = usable_files(_checked(task, planned, read), inputs)
    if recovery:
        catalogued = recovered_files(recovery.contents, catalogued)
    templates = OutputTemplate.objects.filter(task_id=task.id).order_by("id")
    patterns = list(templates.values_list("filename_template", flat=True)) if rules.fields_of_file else []
    known, events = files_of_masters(task.id)
    blocks = _growing_blocks(catalogued, known, growing) if rules.release_per_lb else {}
    input_files = InputFiles(task.id, rules, catalogued, patterns, known, events, used=used)
    empty, new = [], 0
    for dataset in datasets:
        p = plans.get((dataset.dataset_name, dataset.type))
        if p is None:
            continue  # all of it was processed before it was no input any more
        files, look = _files(run, task, dataset, p, input_files, growing=p.name in growing, recovery=recovery)
        if p.type == "input" and not (p.master or files or dataset.n_files):
            empty.append(p.name)
        tracked = p.master or p.type == "random_seed" or read_attributes(p.attributes).tracked
        limited = p.master  # tries of the others never end a file of a master (decision F6)
        new += add_files(
            run.id,
            dataset.id,
            files,
            run.who,
            max_attempt=planned.max_attempt if limited else None,
            max_failure=planned.max_failure if limited else None,
            tracked=tracked,
            data_vo=p.data_vo,
            look=look,
        )
    still = Dataset.objects.filter(task_id=task.id, state=MUTABLE, excluded=False)
    growing_names = list(still.order_by("id").values_list("dataset_name", flat=True))
    if rules.no_wait_parent or rules.release_per_lb:
        new += _let_go(run, task, rules, growing_names, blocks)
    _bind_numbers(run, task, rules)
    masters = Dataset.objects.filter(task_id=task.id, type__in=MASTER_TYPES, master=None, excluded=False)
    usable = sum(masters.values_list("n_files_to_be_used", flat=True))
    return LoadedInputs(usable, empty, input_files.without_events, new, growing_names, used_before)


def _growing_blocks(
    catalogued: Mapping[str, Sequence[NewFile]], known: Mapping[str, Sequence[NewFile]], growing: Collection[str]
) -> dict[str, Collection[int]]:
    """The lumi blocks of the inputs that grow to which files may still come; `known`: the files that the task has."""
    blocks: dict[str, Collection[int]] = {}
    for name in growing:
        had = {f.lfn for f in known.get(name, ())}
        fresh = {f.lumi_block_nr for f in catalogued[name] if f.lfn not in had}
        blocks[name] = growing_blocks({f.lumi_block_nr for f in catalogued[name]}, fresh)
    return blocks


def _let_go(run: Run, task: Task, rules: SplitRules, growing: Sequence[str], blocks: Mapping[str, Collection[int]]) -> int:
    """Let files go that were held until there were enough, or their lumi blocks were complete: how many."""
    size = bunch(rules, gdpconfig.value("feeder", "JOBS_TO_WAIT", vo=task.vo)) if rules.no_wait_parent else 1
    held_blocks = None
    if rules.release_per_lb:
        staged = staging_blocks(task.id)
        held_blocks = {name: {*staged.get(name, ()), *blocks.get(name, ())} for name in {*staged, *growing}}
    return let_go_collected(run.id, task.id, size, run.who, growing=bool(growing), blocks=held_blocks)


def _look_for_named(
    read: Mapping[str, Sequence[NewFile]], inputs: Sequence[DatasetPlan], known: Collection[str], *, newer: bool
) -> None:
    """Raises CannotFeed where a file is not there that an item names; datasets that are `known` were read, or still grow."""
    for lfn, name in absent_files(read, inputs, known, newer=newer).items():
        raise CannotFeed(f"{name} has no file {lfn}, which the task names in files")


def _used_before(
    read: Mapping[str, Sequence[NewFile]], inputs: Sequence[DatasetPlan], used: Mapping[str, Collection[str]]
) -> int:
    """How many files of the masters other tasks have used."""
    return sum(sum(f.lfn in used[p.name] for f in read[p.name]) for p in inputs if p.master and p.name in used)


def _catalogued(task: Task, inputs: Sequence[DatasetPlan]) -> dict[str, Sequence[NewFile]]:
    return {p.name: catalogue().files(dataset_key(task.vo, p.name, p.data_vo)) for p in inputs}


def _checked(task: Task, planned: TaskPlan, files: dict[str, Sequence[NewFile]]) -> dict[str, Sequence[NewFile]]:
    """The files, of inputs that are checked and that the parent wrote only those that it has finished and that are not lost.

    Masters of production tasks with a parent are checked always (facts on workflows 7.2).
    """
    parent = parent_facts(task)
    written = parent.outputs if parent else ()
    production = activity_of(task.prod_source_label) == "production"
    for p in planned.datasets:
        checked = read_attributes(p.attributes).checked or (production and p.master)
        if checked and p.type == "input" and p.name in written and not p.data_vo:
            sound = sound_outputs(task.vo, p.name)
            files[p.name] = [f for f in files[p.name] if f.lfn in sound]
    return files


def _files(
    run: Run, task: Task, dataset: Dataset, p: DatasetPlan, inputs: InputFiles, *, growing: bool, recovery: Recovery | None
) -> tuple[Iterable[NewFile], CatalogueLook]:
    """The files of one dataset, and what is kept of this look at it."""
    if p.master and inputs.rules.period_s:
        return new_round(run, task, dataset, p, inputs.rules)
    recovered = recovery is not None and p.type != "input"
    files = recovered_records(recovery.contents, p) if recovery and recovered else inputs.of(p)
    return files, _look(run, task, p, inputs.rules, growing=growing, fed=dataset.n_files > 0)


def _look(run: Run, task: Task, p: DatasetPlan, rules: SplitRules, *, growing: bool, fed: bool) -> CatalogueLook:
    """What is kept of this look at an input; `fed`: it has files already."""
    state = p.state or "closed"
    if p.type != "input" or not growing:
        return CatalogueLook(state, held=NOT_LOOKED_AT if fed and rules.pre_staging else "")
    again = run.now + timedelta(seconds=gdpconfig.value("feeder", "CHECK_INTERVAL", vo=task.vo))
    held = NOT_LOOKED_AT if fed and rules.pre_staging else held_at_first(rules) if p.master else ""
    return CatalogueLook(state, again, held, p.n_events)


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
