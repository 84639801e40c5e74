"""What belongs to the jobs of one generator and to no others: job ids, serial numbers, seeds; and their outputs.

What is reserved and not used leaves a gap, never a twin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import F

from broker_site.foundation.sql.copying import copy_lines, take_ids
from brokerage.rules.placement.input_ways import NoPlace
from brokerage.rules.placement.new_job import JobOutput, Seed
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.outputs import concrete_datasets
from workqueues.models import Dataset, File, Task
from workqueues.rules.jobs.lengths import LARGEST_NUMBERS
from workqueues.rules.jobs.premerged import STREAM_PREFIX
from workqueues.rules.jobs.pseudo_files import choose_seeds
from workqueues.states import OUTPUT_TYPES, PREMERGED_TYPES, WRITTEN_TYPES


class _Template(NamedTuple):
    """A template of file names, with the name of the dataset that it is of; `serial_nr`: the last one that was dealt."""

    id: int
    task_id: int
    dataset_name: str
    pattern: str
    serial_nr: int
    max_serial_nr: int | None
    dataset_id: int
    type: str
    stream_name: str
    optional: bool

    @property
    def lot(self) -> bool:
        """Whether its numbers are a lot that the parent broker cut for its task alone."""
        return self.max_serial_nr is not None and self.max_serial_nr < LARGEST_NUMBERS[0]


class Reservation(NamedTuple):
    """Job ids, templates of outputs with the first serial number of each, and seeds in order; none where the task uses none."""

    job_ids: Sequence[int]
    outputs: Sequence[JobOutput]
    seeds: Sequence[Seed]


def reserve(run_id: str, task_id: int, n: int, *, merging: bool = False) -> Reservation:
    """Reserve ids, serial numbers and, where the task uses them, seeds for `n` jobs. Raises NoPlace where numbers are used up.

    `merging`: they merge what others of the task made, and need no seeds.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        seeds = [] if merging else _take_seeds(task_id, n)
        outputs = _take_serials(task_id, n, merging=merging)
        return Reservation(take_ids("brokerage_job", n), outputs, seeds)


_TEMPLATES = f"""
SELECT t.id, t.task_id, e.dataset_name, t.filename_template, t.serial_nr, t.max_serial_nr, t.dataset_id, t.out_type,
    t.stream_name, t.optional
FROM workqueues_outputtemplate t JOIN workqueues_dataset e ON e.id = t.dataset_id
WHERE t.dataset_id IN (
    SELECT e.id FROM workqueues_outputtemplate m JOIN workqueues_dataset d ON d.id = m.dataset_id
        JOIN workqueues_dataset e ON e.dataset_name = d.dataset_name AND e.vo = d.vo
            AND (e.id = d.id OR e.type IN ({WRITTEN_TYPES.sql}))
    WHERE m.task_id = %s)
ORDER BY t.id FOR NO KEY UPDATE OF t
"""
"""The templates of a task, and those of other tasks that write to the same datasets."""


def _take_serials(task_id: int, n: int, *, merging: bool) -> list[JobOutput]:
    """The outputs of each job, with the first of `n` serial numbers: they count in the dataset, whichever tasks write to it by
    the same template (decision F7). Where outputs are merged, other jobs write the files that are merged, by the same streams.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TEMPLATES, [task_id])
        templates = [_Template(*row) for row in cursor.fetchall()]
        largest: dict[tuple[str, str], int] = {}
        for t in templates:
            key = (t.dataset_name, t.pattern)
            largest[key] = max(largest.get(key, 0), t.serial_nr)
        mine = [
            t if t.lot else t._replace(serial_nr=largest[t.dataset_name, t.pattern]) for t in templates if t.task_id == task_id
        ]
        if not merging and (before := [t for t in mine if t.type in PREMERGED_TYPES]):
            mine = [t._replace(stream_name=t.stream_name.removeprefix(STREAM_PREFIX)) for t in before]
        elif merging:
            mine = [t for t in mine if t.type in OUTPUT_TYPES]
        _check_serial_numbers(mine, n)
        cursor.execute(
            "UPDATE workqueues_outputtemplate t SET serial_nr = v.nr + %s FROM unnest(%s::bigint[], %s::int[]) AS v(id, nr)"
            " WHERE t.id = v.id",
            [n, [t.id for t in mine], [t.serial_nr for t in mine]],
        )
    return [JobOutput(t.dataset_id, t.type, t.pattern, t.stream_name, t.serial_nr + 1, t.optional) for t in mine]


def _check_serial_numbers(templates: Iterable[_Template], n: int) -> None:
    """No serial number goes beyond the largest that its template may use."""
    for template in templates:
        if template.max_serial_nr is not None and template.serial_nr + n > template.max_serial_nr:
            left = max(template.max_serial_nr - template.serial_nr, 0)
            raise NoPlace(
                f"{n} serial numbers are needed for {template.pattern}, and {left} are left up to {template.max_serial_nr}, "
                "the largest one"
            )


def outputs_by_queue(task: Task, outputs: Sequence[JobOutput], queues: Collection[str], who: str) -> dict[str, list[JobOutput]]:
    """What jobs at each of these queues write: to datasets of its own where the task wishes for them."""
    templates = [output.dataset_id for output in outputs]
    written: dict[str, list[JobOutput]] = {}
    for queue in queues:
        datasets = concrete_datasets(task, templates, queue, who)
        written[queue] = [output._replace(dataset_id=datasets[output.dataset_id].id) for output in outputs]
    return written


def _take_seeds(task_id: int, n: int) -> list[Seed]:
    """The lowest free seeds, then new ones (decision of seed 001, "Random seed assignment"), picked for this run."""
    dataset = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type="random_seed").first()
    if dataset is None:
        return []
    # Task and type too: the index of a task's files has the newest seed last; by the dataset alone all seeds would be read.
    all_seeds = File.objects.filter(dataset_id=dataset.id, task_id=task_id, type="random_seed")
    largest = all_seeds.order_by("-id").values_list("first_event", flat=True).first() or 0
    free = all_seeds.filter(status="ready", held="").order_by("first_event").values_list("first_event", flat=True)[:n]
    reused, fresh = choose_seeds([number or 0 for number in free], largest, n)
    copy_lines(
        "workqueues_file",
        ["dataset_id", "task_id", "type", "status", "lfn", "first_event"],
        (f"{dataset.id}\t{task_id}\trandom_seed\tready\tpseudo_seed_{number}\t{number}" for number in fresh),
    )
    chosen = _pick_seeds(dataset.id, n)
    Dataset.objects.filter(id=dataset.id).update(
        n_files=F("n_files") + len(fresh),
        n_files_to_be_used=F("n_files_to_be_used") + len(fresh),
        n_files_used=F("n_files_used") + len(reused) + len(fresh),
    )
    return chosen


def _pick_seeds(dataset_id: int, n: int) -> list[Seed]:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE workqueues_file SET status = 'picked' WHERE id IN (
                SELECT id FROM workqueues_file WHERE dataset_id = %s AND status = 'ready' AND held = ''
                ORDER BY first_event LIMIT %s)
            RETURNING id, dataset_id, first_event, attempt_nr, job_id
            """,
            [dataset_id, n],
        )
        return sorted(map(Seed._make, cursor.fetchall()), key=lambda seed: seed.number)
