"""Filling the input datasets of a task: the files of each, in the order in which jobs are cut from them.

Here: asking the catalogue, and what each kind of dataset gives. Not here: the rules themselves (`rules.feeding`), the rows
(`ledger.feed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from broker_site.foundation.agency.run import Run
from broker_site.foundation.kernel.dice import dice
from workqueues.catalogue import catalogue
from workqueues.ledger.feed import add_files
from workqueues.models import Dataset, OutputTemplate, Task
from workqueues.rules.jobs import feeding
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.middle_names import bad_middle_name, fields_of
from workqueues.rules.jobs.pseudo_files import pseudo_files
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.refine import DatasetPlan, TaskPlan, unknown_events
from workqueues.states import INPUT_TYPES, MASTER_TYPES

Files = Sequence[NewFile]


class CannotFeed(Exception):
    """The inputs are not as the task needs them; the message is why it can never run."""


class Filled(NamedTuple):
    """Files of the masters that may be used, and the names of secondary datasets without any."""

    usable: int
    empty: Sequence[str] = ()


@dataclass(slots=True)
class _Masters:
    """What the masters filled so far come to: events (None: not known), and the most jobs of them at one time."""

    events: int | None = 0
    jobs: int = 0


@dataclass(slots=True)
class _Filling:
    """One task being filled. `read`: files of its inputs that are not filled yet: there may be a million in each."""

    task: Task
    rules: SplitRules
    read: dict[str, Files]
    masters: _Masters = field(default_factory=_Masters)

    def files(self, p: DatasetPlan) -> Iterable[NewFile]:
        """The files of the dataset: from the catalogue, or numbered records; seeds are made as jobs need them.

        Those of a master of files are numbered one by one as they are asked for.
        """
        if p.type == "random_seed":
            return []
        if p.type == "pseudo_input":
            count = p.n_files if p.master or p.n_files else self.masters.jobs
            records = pseudo_files(count or 0, offset=p.offset, n_events=p.n_events, events_per_file=p.events_per_file)
            made = [NewFile(r.lfn, n_events=r.n_events or None, first_event=r.first_event or None) for r in records]
        else:
            made = self._of_master(p) if p.master else self._of_secondary(p)
        before = self.masters.events
        if p.master:
            self.masters.events = feeding.events_after(made, before)
            self.masters.jobs += feeding.most_jobs(made, self.rules)
        return feeding.numbered(made, before) if p.master and p.type == "input" else made

    def _of_master(self, p: DatasetPlan) -> list[NewFile]:
        """The part of the dataset that the task asked for, in the order of its use, with the events that count."""
        files = feeding.counted(self.read.pop(p.name), p.events_per_file, p.real_events)
        if self.rules.fields_of_file:
            _check_names(self.task, files, self.rules)
            files = feeding.by_name_fields(files, self.rules)
        files = feeding.ordered(files, self.rules, self._shuffle(p))
        used = feeding.used_part([f.n_events for f in files], p.n_files, p.n_events)
        if used is None:
            raise CannotFeed(f"nEvents is asked for, but the events of some files of {p.name} are not known")
        files = files[:used]
        _check_counted(files, p, "; give nEventsPerInputFile")
        if self.rules.events_per_job or self.rules.target_events:
            files = feeding.with_events(files if p.n_events is None else feeding.cut_to(files, p.n_events))
        if self.rules.skip_short_input and self.rules.events_per_job:
            files = feeding.whole_jobs(files, self.rules.events_per_job)
        return files

    def _of_secondary(self, p: DatasetPlan) -> list[NewFile]:
        """All files; boundaries of the catalogue mean nothing where those of the master are fields of names."""
        files = list(self.read.pop(p.name))
        _check_counted(files, p)
        if self.rules.fields_of_file:
            files = [f._replace(boundary_id=None) for f in files]
        return feeding.ordered(files, self.rules, self._shuffle(p))

    def _shuffle(self, p: DatasetPlan) -> Random | None:
        """Seeded by task and dataset: feeding again gives the same order."""
        return dice(self.task.id, p.name) if read_attributes(p.attributes).random else None


def fill_inputs(run: Run, task: Task, planned: TaskPlan) -> Filled:
    """Fill every input dataset of a claimed task, masters first. Raises CannotFeed, and what the catalogue raises."""
    plans: dict[tuple[str, str], DatasetPlan] = {(p.name, p.type): p for p in planned.datasets}
    filling = _Filling(task, parse(task.split_rule), _read(planned))
    empty = []
    for dataset in Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES).order_by("id"):
        p = plans[dataset.dataset_name, dataset.type]
        files = filling.files(p)
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
    return Filled(sum(masters.values_list("n_files_to_be_used", flat=True)), empty)


def _read(planned: TaskPlan) -> dict[str, Files]:
    """The files of all inputs by dataset, without those whose number a partner of indexConsistent lacks."""
    inputs = [p for p in planned.datasets if p.type == "input"]
    read = {p.name: catalogue().files(p.name) for p in inputs}
    if partners := [p.name for p in inputs if read_attributes(p.attributes).index_consistent]:
        shared = feeding.shared_indexes([read[name] for name in partners])
        read |= {name: [f for f in read[name] if feeding.index_of(f.lfn) in shared] for name in partners}
    return read


def _check_counted(files: Files, p: DatasetPlan, hint: str = "") -> None:
    if p.needs_events and (unknown := next((f.lfn for f in files if f.n_events is None), "")):
        raise CannotFeed(f"{unknown_events(p.needs_events, p.name)} ({unknown}){hint}")


def _check_names(task: Task, files: Files, rules: SplitRules) -> None:
    """Every file gives a middle name with which the names of outputs are good."""
    samples = {fields_of(f.lfn, rules.name_fields): f.lfn for f in files}
    samples |= {"": min((f.lfn for f in files), key=lambda lfn: lfn.count("."))} if files else {}
    for template in OutputTemplate.objects.filter(task_id=task.id).order_by("id"):
        for lfn in samples.values():
            if wrong := bad_middle_name(template.filename_template, lfn, rules.name_fields):
                raise CannotFeed(f"addNthFieldToLFN: {wrong}")
