"""The files of each input dataset of a planned task, in the order in which jobs are cut from them.

Here: what each kind of dataset gives. Not here: asking the catalogue, the rows, and the rules of one dataset (`jobs.feeding`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from broker_site.foundation.kernel.dice import dice
from workqueues.rules.jobs import feeding
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.file_names import bad_middle_name, fields_of
from workqueues.rules.jobs.pseudo_files import pseudo_files
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.rules.refine.datasets import unknown_events
from workqueues.rules.refine.types import DatasetPlan

Files = Sequence[NewFile]


class CannotFeed(Exception):
    """The inputs are not as the task needs them; the message is why it can never run."""


def usable_files(catalogued: dict[str, Files], inputs: Iterable[DatasetPlan]) -> dict[str, Files]:
    """The files of the catalogue by dataset, without those whose number a partner of indexConsistent lacks."""
    partners = [p.name for p in inputs if read_attributes(p.attributes).index_consistent]
    if not partners:
        return catalogued
    shared = feeding.shared_indexes([catalogued[name] for name in partners])
    return catalogued | {name: [f for f in catalogued[name] if feeding.index_of(f.lfn) in shared] for name in partners}


@dataclass(slots=True)
class InputFiles:
    """The inputs of one task, asked for one after the other, masters first.

    `catalogued`: files of inputs that were not asked for yet: there may be a million in each. `patterns`: of the names of
    outputs. `known`: files that the task has of its masters from a reading before; new ones come behind them. `events`, `jobs`:
    what the masters so far come to: events (None: not known), and the most jobs of them at one time.
    `without_events`: files of masters that are left out, because nothing can be cut of them. `used`: records by dataset that
    other tasks had and this one leaves out.
    """

    task_id: int
    rules: SplitRules
    catalogued: dict[str, Files]
    patterns: Sequence[str] = ()
    known: Mapping[str, Files] = field(default_factory=dict)
    events: int | None = 0
    jobs: int = 0
    without_events: int = 0
    used: Mapping[str, Collection[str]] = field(default_factory=dict)

    def of(self, p: DatasetPlan) -> Iterable[NewFile]:
        """The files of the dataset: from the catalogue, or numbered records; seeds are made as jobs need them.

        Those of a master of files are numbered one by one as they are asked for. Raises CannotFeed.
        """
        if p.type == "random_seed":
            return []
        if p.type == "pseudo_input":
            count = p.n_files if p.master or p.n_files else self.jobs
            passed = self.used.get(p.name, ())
            records = pseudo_files(
                count or 0, offset=p.offset, n_events=p.n_events, events_per_file=p.events_per_file, used=passed
            )
            files = list(records)
        else:
            files = self._of_master(p) if p.master else self._of_secondary(p)
        if not p.master:
            return files
        self.jobs += feeding.most_jobs(files, self.rules)
        if p.type != "input":
            return files
        before, new = self.events, self._new(p, files)
        self.events = feeding.events_after(new, before)
        if self.rules.recovery:  # events have the numbers that they had for the jobs of before
            return new
        return feeding.numbered(new, before)

    def _of_master(self, p: DatasetPlan) -> list[NewFile]:
        """The part of the dataset that the task asked for, in the order of its use, with the events that count."""
        known = self.known.get(p.name, ())
        every = self.catalogued.pop(p.name)  # of a recovery with the events that jobs had
        files = self._new(p, every if self.rules.recovery else feeding.counted(every, p.events_per_file, p.real_events))
        if self.rules.fields_of_file:
            self._check_names(files)
        if self.rules.fields_of_file and not self.rules.recovery:  # there a boundary is a job of before, which kept to one name
            files = feeding.by_name_fields(files, self.rules, known)
        files = [*known, *feeding.ordered(files, self.rules, self._shuffle(p))]
        used = feeding.used_part([f.n_events for f in files], p.n_files, p.n_events)
        if used is None:
            raise CannotFeed(f"nEvents is asked for, but the events of some files of {p.name} are not known")
        cut = self.rules.events_per_job or self.rules.target_events
        files = feeding.cut_to(files[:used], p.n_events) if cut and p.n_events is not None else files[:used]
        _check_counted(files, p, "; give nEventsPerInputFile")
        if cut:
            wanted = files
            files = feeding.with_events(wanted)
            self.without_events += len(wanted) - len(files)
        if self.rules.skip_short_input and self.rules.events_per_job:
            files = feeding.whole_jobs(files, self.rules.events_per_job)
        return files

    def _new(self, p: DatasetPlan, files: Files) -> Files:
        """Those of the files that the task does not have yet."""
        known = {f.lfn for f in self.known.get(p.name, ())}
        return [f for f in files if f.lfn not in known] if known else files

    def _of_secondary(self, p: DatasetPlan) -> list[NewFile]:
        """All files; boundaries of the catalogue mean nothing where those of the master are fields of names."""
        files = list(self.catalogued.pop(p.name))
        _check_counted(files, p)
        if self.rules.fields_of_file and not self.rules.recovery:
            files = [f._replace(boundary_id=None) for f in files]
        return feeding.ordered(files, self.rules, self._shuffle(p))

    def _shuffle(self, p: DatasetPlan) -> Random | None:
        """Seeded by task and dataset: feeding again gives the same order."""
        return dice(self.task_id, p.name) if read_attributes(p.attributes).random else None

    def _check_names(self, files: Files) -> None:
        """Every file gives a middle name with which the names of outputs are good."""
        samples = {fields_of(f.lfn, self.rules.name_fields): f.lfn for f in files}
        samples |= {"": min((f.lfn for f in files), key=lambda lfn: lfn.count("."))} if files else {}
        for pattern in self.patterns:
            for lfn in samples.values():
                if wrong := bad_middle_name(pattern, lfn, self.rules.name_fields):
                    raise CannotFeed(f"addNthFieldToLFN: {wrong}")


def _check_counted(files: Files, p: DatasetPlan, hint: str = "") -> None:
    if p.needs_events and (unknown := next((f.lfn for f in files if f.n_events is None), "")):
        raise CannotFeed(f"{unknown_events(p.needs_events, p.name)} ({unknown}){hint}")
