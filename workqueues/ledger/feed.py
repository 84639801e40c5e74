"""The files of a task's datasets: inserted as the catalogue has them; the task goes on when all its inputs are ready."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from math import inf

from django.db import connection, transaction
from django.db.models import F, Q, Sum, Value
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.copying import copy_rows
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.events import mark_partial
from workqueues.ledger.moves import move_dataset, move_task
from workqueues.ledger.staging import hold_until_staged
from workqueues.models import Dataset, File, FileChange, Task
from workqueues.rules.jobs.feeding import NewFile, index_of
from workqueues.rules.jobs.held_files import FileVerdict
from workqueues.rules.jobs.split_rule import NO_SCOUTS, changed, parse
from workqueues.rules.task.scouts import expected_jobs, worth_while
from workqueues.states import INPUT_DATASET, INPUT_FILE, INPUT_TYPES, MASTER_TYPES, MUTABLE, PREMERGED_TYPES, WRITTEN_TYPES


@dataclass(frozen=True, slots=True)
class CatalogueLook:
    """What a look at the catalogue says of an input: its state, when it is read again (None: it is not), why its new files are
    held (empty: they are not), and how many events of it the task wants.
    """

    state: str = "closed"
    again_at: datetime | None = None
    held: str = ""
    n_events: int | None = None

    def columns(self, *, sated: bool) -> dict[str, object]:
        """Of a dataset that was looked at; `sated`: it has all that the task wants of it."""
        follow = self.again_at is not None and not sated
        state = MUTABLE if follow else "open" if self.state == MUTABLE else self.state
        return {"state": state, "state_check_expiration": self.again_at if follow else None}


CLOSED = CatalogueLook()

FEW = 1000
"""So many names are looked up one by one; a dataset may have a million."""


def add_files(
    run_id: str,
    dataset_id: int,
    files: Iterable[NewFile],
    who: str,
    *,
    max_attempt: int | None = None,
    max_failure: int | None = None,
    tracked: bool = True,
    data_vo: str = "",
    look: CatalogueLook = CLOSED,
) -> int:
    """Insert the files that the dataset does not have yet, as many as the task wants, and make it ready: how many are new.

    `tracked`: each is used once (decision F1). `look`: what the catalogue says of the dataset; one whose files are read again
    (toupdate) keeps its state, as the task may go on waiting. `data_vo`: the VO that has the dataset, where that is not the
    task's; once there are files, those of another VO's dataset of this name are not added. Running it again adds nothing.
    """
    with transaction.atomic():
        seen = Dataset.objects.values("task_id", "task__pulled_element").get(id=dataset_id)
        lock_claimed(seen["task_id"], run_id)
        dataset = Dataset.objects.select_for_update(no_key=True).get(id=dataset_id)
        if dataset.n_files and dataset.data_vo != data_vo:
            if dataset.status in INPUT_DATASET.unread:
                move_dataset(dataset, "ready", who, "no new files: the dataset of this name belongs to another VO now")
            return 0
        known = _known(dataset, files)
        room = None if dataset.n_files_wanted is None else max(dataset.n_files_wanted - dataset.n_files, 0)
        new = _Counted(islice((f for f in files if f.lfn not in known), room))
        pulled = bool(seen["task__pulled_element"])
        told = pulled and dataset.master_id is None and dataset.type in MASTER_TYPES  # their ends are the parent's too
        columns = (max_attempt, max_failure, tracked, look.held, told)
        copy_rows(
            "workqueues_file",
            ["dataset_id", "task_id", "lfn", "type", "status", "fsize", "checksum", "guid", "n_events", "boundary_id",
             "lumi_block_nr", "first_event", "max_attempt", "max_failure", "keep_track", "held", "report_due"],
            ((dataset_id, dataset.task_id, f.lfn, dataset.type, "ready", *f[1:], *columns) for f in new),
        )  # fmt: skip
        n_events = (dataset.n_events or 0) + new.events or None
        counts = {
            "n_files": dataset.n_files + new.files,
            "n_files_to_be_used": dataset.n_files_to_be_used + new.files,
            "n_events": n_events,
            "state_check_time": Now(),
            "data_vo": data_vo,
            **look.columns(sated=room == new.files or (n_events or 0) >= (look.n_events or inf)),
        }
        if dataset.status == "defined":
            move_dataset(dataset, "ready", who, f"{new.files} files", **counts)
        else:
            Dataset.objects.filter(id=dataset_id).update(**counts)
        return new.files


def _known(dataset: Dataset, files: Iterable[NewFile]) -> set[str]:
    """The names of files that the dataset has; of these few only, where they are."""
    rows = File.objects.filter(dataset_id=dataset.id)
    if isinstance(files, list) and len(files) <= FEW:
        rows = rows.filter(lfn__in=[f.lfn for f in files])
    return set(rows.values_list("lfn", flat=True)) if dataset.n_files else set()


def bind_by_number(run_id: str, task_id: int, dataset_id: int, master_ids: Sequence[int]) -> None:
    """Each file of a secondary dataset stands beside the file of these masters that has its number (indexConsistent)."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        list(Dataset.objects.select_for_update(no_key=True).filter(id=dataset_id))
        numbered: dict[str, list[int]] = defaultdict(list)
        for file_id, lfn in File.objects.filter(dataset_id__in=master_ids).order_by("id").values_list("id", "lfn"):
            numbered[index_of(lfn)].append(file_id)
        partners: dict[str, list[int]] = defaultdict(list)
        for file_id, lfn in File.objects.filter(dataset_id=dataset_id).order_by("id").values_list("id", "lfn"):
            partners[index_of(lfn)].append(file_id)
        pairs = [pair for number, files in partners.items() for pair in zip(files, numbered[number], strict=False)]
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE workqueues_file f SET beside_file = v.master, beside_event = 0"
                " FROM unnest(%s::bigint[], %s::bigint[]) AS v(id, master) WHERE f.id = v.id AND f.beside_file IS NULL",
                [[file for file, _ in pairs], [master for _, master in pairs]],
            )


class _Counted:
    """Files that pass by once, without being kept: how many, and their events."""

    def __init__(self, files: Iterator[NewFile]) -> None:
        self._passing = files
        self.files = self.events = 0

    def __iter__(self) -> Iterator[NewFile]:
        for file in self._passing:
            self.files += 1
            self.events += file.n_events or 0
            yield file


def open_outputs(run_id: str, task_id: int, who: str) -> None:
    """The output datasets of a claimed task are in the catalogue: defined -> ready."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        outputs = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=WRITTEN_TYPES, status="defined")
        for dataset in outputs.order_by("id"):
            move_dataset(dataset, "ready", who, "registered in the catalogue")


def finish_feeding(run_id: str, task_id: int, target: str, who: str) -> None:
    """All inputs of a claimed task are ready, or wait to be staged from tape first: on to assigning or ready, and release.

    Those that were read again (toupdate) are ready too.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        read_again = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, status="toupdate")
        for dataset in read_again.order_by("id"):
            move_dataset(dataset, "ready", who, "read again")
        if parse(task.split_rule).pre_staging:
            hold_until_staged(task_id)
            look_after_commit("stage")
        frozen_time = Now() if target == "assigning" else None
        columns = {"error_dialog": "", "frozen_time": frozen_time, "split_rule": without_useless_scouts(task)}
        move_task(task, target, who, "all inputs are fed", **columns)


def without_useless_scouts(task: Task) -> str:
    """The split rule of a task whose input is known: without scouts where too few jobs would come after them."""
    rules = parse(task.split_rule)
    if not rules.scouting:
        return task.split_rule
    if task.work_to == "children":
        return changed(task.split_rule, "US", NO_SCOUTS)
    max_files = int(gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))
    masters = Dataset.objects.filter(task_id=task.id, type__in=MASTER_TYPES, master=None, excluded=False)
    sized = rules.sized or not masters.filter(type="input").exists()
    jobs = 0
    for dataset in masters:
        n_bytes = 0 if sized else File.objects.filter(dataset_id=dataset.id).aggregate(total=Sum("fsize"))["total"] or 0
        files, events, numbered = dataset.n_files_to_be_used, dataset.n_events or 0, dataset.type == "pseudo_input"
        jobs += expected_jobs(rules, files, events, n_bytes, max_files, numbered=numbered)
    return task.split_rule if worth_while(rules, jobs) else changed(task.split_rule, "US", NO_SCOUTS)


def finish_empty(run_id: str, task_id: int, why: str, who: str) -> None:
    """A claimed task whose input is empty, and may be: on to finishing, which finds nothing to stop; release."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        move_task(task, "finishing", who, why)


def assign(
    run_id: str, task_id: int, nucleus: str, who: str, why: str, places: Callable[[str], Sequence[str]] = lambda _: ()
) -> None:
    """The brokerage chose a nucleus for a claimed task (or the grid has none): ready, and release.

    `places`: token of an output -> the storage endpoints where the outputs are collected; none: they stay where they are made.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        outputs = Dataset.objects.filter(task_id=task_id).exclude(type__in=INPUT_TYPES | PREMERGED_TYPES)
        for token in sorted(set(outputs.values_list("storage_token", flat=True))):
            first, *further = places(token) or [""]
            outputs.filter(storage_token=token).update(collected_at=first, also_at=further)
        move_task(task, "ready", who, why, nucleus=nucleus, frozen_time=None, error_dialog="")


def put_off(run_id: str, task_id: int, seconds: float) -> None:
    """Files of a claimed task that are due to be looked for are due again in so many seconds, whatever becomes of this look."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        File.objects.filter(task_id=task_id, look_due__lte=Now()).update(look_due=Now() + Value(timedelta(seconds=seconds)))


def resolve_held(run_id: str, task_id: int, verdicts: Mapping[int, FileVerdict], who: str) -> bool:
    """What becomes of inputs that were looked for on storage (decisions D9, D16), by file id: whether any of them moved.

    Lost and broken files stay files of their dataset, to be used no more until they reappear; others are ready for another try,
    or held on.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        ids = sorted(verdicts)
        dataset_ids = set(File.objects.filter(id__in=ids).values_list("dataset_id", flat=True))
        list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(dataset_ids)).order_by("id").values_list("id"))
        looked_for = Q(status="ready") & ~Q(held="") | Q(status__in=INPUT_FILE.gone)
        files = list(File.objects.select_for_update(no_key=True).filter(looked_for, id__in=ids).order_by("id"))
        notes, gone = list[FileChange](), Counter[int]()
        for file in files:
            verdict, was = verdicts[file.id], "held" if file.held else file.status
            file.absent_since, file.look_due = verdict.absent_since, verdict.look_due
            if verdict.status == "held":
                file.held = verdict.why[:255] if was == "held" else ""
                continue
            notes.append(
                FileChange(file_id=file.id, task_id=task_id, old=was, new=verdict.status, who=who, why=verdict.why[:510])
            )
            gone[file.dataset_id] += (verdict.status != "ready") - (was != "held")
            file.held, file.held_storage, file.status = "", "", verdict.status
        for dataset_id, n in gone.items():
            Dataset.objects.filter(id=dataset_id).update(
                n_files_to_be_used=F("n_files_to_be_used") - n, n_files_missing=F("n_files_missing") + n
            )
        File.objects.bulk_update(files, ["status", "held", "held_storage", "absent_since", "look_due"], batch_size=1000)
        mark_partial([f.id for f in files])
        FileChange.objects.bulk_create(notes, batch_size=1000)
        if notes:
            Task.objects.filter(id=task_id).update(next_look_at=None)  # what it rests for may be these
            look_after_commit("generate", "finish", "wake")
        return bool(notes)
