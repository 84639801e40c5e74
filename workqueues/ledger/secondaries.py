"""Files of secondary datasets for jobs: tracked ones are picked as those of the master are, the others only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from django.db import transaction
from django.db.models import F

from broker_site.foundation.sql.copying import copy_rows
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.picking import Partner, take_files, take_partners
from workqueues.models import Dataset, Task
from workqueues.queries.datasets import all_files, secondaries_of
from workqueues.rules.jobs.dataset_attributes import Attributes, read_attributes
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.pseudo_files import pseudo_files
from workqueues.splitters.pairs import binding_of, in_pairs
from workqueues.splitters.protocol import Files, Secondary, SecondaryFiles, SecondaryRow
from workqueues.states import INPUT_FILE

MOST_FILES = 20_000
"""Files of one tracked dataset that are picked at once."""


@dataclass(slots=True)
class LoadedSecondaries:
    """The secondary datasets for some files of their master.

    Of these master files no job is to be made: `waiting`, whose partner is held back, `short`, which find none while others do,
    and `lost`, whose partner is gone for good (file -> the partner).
    """

    secondaries: list[SecondaryFiles] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    short: set[int] = field(default_factory=set)
    lost: dict[int, str] = field(default_factory=dict)

    @property
    def left_out(self) -> set[int]:
        """All master files of which no job is to be made."""
        return self.waiting | self.short | self.lost.keys()


def load_secondaries(
    run_id: str, task: Task, master: Dataset, files: Sequence[InputFile], jobs: int, *, whole: bool, bound: bool
) -> LoadedSecondaries:
    """The secondary datasets of `master` for at most so many jobs on these files of it, in order of id.

    Of a tracked dataset the files that stand beside those of the master are picked for the holder of the claim, and as many more
    as the jobs can need; what no job takes goes back with `give_back_picked`. Of the others all files are read, and `at` is where
    the last round stopped. Held files are left out. `whole`: jobs get files of the master whole; `bound`: boundaries of files
    bind secondary datasets that have some. Raises Stale when the claim is gone.
    """
    loaded = LoadedSecondaries()
    for dataset in secondaries_of(master):
        rule = read_attributes(dataset.attributes)
        if rule.tracked:
            rows = _tracked(run_id, task.id, dataset, rule, files, jobs, loaded, whole=whole, bound=bound)
        else:
            rows = all_files(dataset.id)
        loaded.secondaries.append(SecondaryFiles(dataset.id, dataset.stream_name, _secondary(dataset, rule, rows), rows))
    return loaded


def _tracked(
    run_id: str, task_id: int, dataset: Dataset, rule: Attributes, files: Sequence[InputFile], jobs: int,
    loaded: LoadedSecondaries, *, whole: bool, bound: bool,
) -> list[SecondaryRow]:  # fmt: skip
    """The files of a tracked dataset for jobs on these files of the master; what of the master must wait is noted in `loaded`."""
    binding = binding_of(rule)
    partners = take_partners(run_id, task_id, dataset.id, [f.id for f in files]) if binding else []
    rows = [_row(p.file, p.beside_file, p.beside_event) for p in partners if p.status == "picked"]
    _note(dataset, rule, partners, loaded)
    wanted = _files_needed(rule, len(files) if whole else jobs) - (len(rows) if whole else 0)
    free = take_files(run_id, task_id, dataset.id, wanted) if wanted > 0 else []
    if len(free) < wanted and dataset.type == "pseudo_input" and "nr=" not in dataset.attributes:
        free += _more_records(run_id, task_id, dataset, wanted - len(free))
    rows += [_row(f) for f in free]
    if bound and any(row.boundary_id is not None for row in rows):
        return sorted(rows, key=lambda row: row.id)
    if binding == "file" and whole:
        able = [f.id for f in files if f.id not in loaded.left_out]
        rows, short = in_pairs(able, rows, int(rule.ratio))
        loaded.short |= set(short) if len(short) < len(able) else set()
        return rows
    # A file that no job could use is not to be the first one that the next job gets.
    return sorted(rows, key=lambda row: row.id if binding else (row.attempt_nr, row.id))


def _note(dataset: Dataset, rule: Attributes, partners: Sequence[Partner], loaded: LoadedSecondaries) -> None:
    """Master files whose partner cannot be read now, or never again. One that is gone for good may be replaced, but not where
    files belong together by their numbers.
    """
    for partner in partners:
        if partner.held:
            loaded.waiting.add(partner.beside_file)
        elif partner.status in INPUT_FILE.gone and rule.index_consistent:
            loaded.lost[partner.beside_file] = f"{partner.file.lfn} of {dataset.dataset_name}, which is {partner.status}"


def _row(file: InputFile, beside_file: int | None = None, beside_event: int | None = None) -> SecondaryRow:
    return SecondaryRow(
        file.id, file.dataset_id, file.lfn, file.fsize or 0, file.n_events or 0, file.attempt_nr, file.job_id, file.boundary_id,
        True, beside_file, beside_event,
    )  # fmt: skip


def _more_records(run_id: str, task_id: int, dataset: Dataset, n: int) -> list[InputFile]:
    """More records of a numbered sequence of no fixed length, picked: the others belong to files that are still to be used."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        locked = Dataset.objects.select_for_update(no_key=True).get(id=dataset.id)
        offset = next((int(w[3:]) for w in locked.attributes.split(",") if w.startswith("of=")), 0)
        records = pseudo_files(n, offset=offset + locked.n_files)
        copy_rows(
            "workqueues_file",
            ["dataset_id", "task_id", "lfn", "type", "status"],
            ((dataset.id, task_id, record.lfn, dataset.type, "ready") for record in records),
        )
        Dataset.objects.filter(id=dataset.id).update(n_files=F("n_files") + n, n_files_to_be_used=F("n_files_to_be_used") + n)
        return take_files(run_id, task_id, dataset.id, n)


def _files_needed(rule: Attributes, n_master_files: int) -> int:
    """Files that jobs on so many files of the master can need: each job takes one at least, and rounds up."""
    if rule.event_ratio is not None:
        return MOST_FILES
    return min(n_master_files * (rule.files_per_job or max(1, ceil(rule.ratio))), MOST_FILES)


def _secondary(dataset: Dataset, rule: Attributes, rows: list[SecondaryRow]) -> Secondary:
    boundaries = [r.boundary_id for r in rows] if any(r.boundary_id is not None for r in rows) else ()
    complete = not rule.tracked or dataset.n_files_to_be_used <= dataset.n_files_used + len(rows)
    files = Files(
        [r.id for r in rows], [r.size for r in rows], [r.n_events for r in rows], boundaries=boundaries, complete=complete
    )
    at = dataset.next_use % len(rows) if rows and not rule.tracked else 0
    return Secondary(rule, files, at, dataset.dataset_name)


def advance(dataset_id: int, n: int) -> None:
    """`n` files of an untracked secondary dataset were dealt out to jobs: the next round goes on behind them."""
    Dataset.objects.filter(id=dataset_id).update(next_use=F("next_use") + n)
