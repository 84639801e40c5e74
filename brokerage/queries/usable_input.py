"""What of an input dataset can be cut into jobs now: from rows to what a splitter takes, and the generator at work on the task.

Not here: picking files (`workqueues.ledger.picking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from brokerage.rules.decision.policy_choice import generator_chosen
from brokerage.rules.placement.usable_input import UsableInput, columns_of, cuts_events
from brokerage.states import INPUT_MISSING, PILOT_CLOSED, STORAGE_DOWN
from workqueues.models import Dataset, File, Task, TaskParams
from workqueues.queries.lost_outputs import wanted_parts
from workqueues.queries.ranges import free_pieces, parts_made_again
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.split_rule import parse
from workqueues.splitters.generation import STANDARD, Generation
from workqueues.splitters.generator import GeneratorTask
from workqueues.states import INPUT_FILE, MUTABLE


def max_files_of(task: Task) -> int:
    """Most files of a job where the task says nothing."""
    return int(gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))


def usable_input(
    task: Task,
    dataset: Dataset,
    files: Sequence[InputFile],
    *,
    taken: int | None = None,
    apart: bool = False,
    drained: bool = False,
) -> UsableInput:
    """What these files of a task give; where events are cut, their free events are looked up. Raises NoGenerator.

    `taken`: how many were picked with them; `apart`: none that comes later may join them; `drained`: none is left that could be
    used now, so that whole lumi blocks, where these are released, wait for no others.
    """
    rules, generation = parse(task.split_rule).cutting, generation_of(task)
    taken = len(files) if taken is None else taken
    more_come = dataset.state == MUTABLE and rules.respect_split_rule
    complete = (
        apart
        or (drained and rules.release_per_lb)
        or (dataset.n_files_to_be_used <= dataset.n_files_used + taken and not more_come)
    )
    jobs: list[int | None] | None = None
    if rules.recovery and dataset.type == "input" and (wanted := wanted_parts(task)):
        parts = parts_made_again(files, wanted)
        pieces, jobs = [part.piece for part in parts], [part.job_id for part in parts]
    else:
        pieces = free_pieces(files) if cuts_events(dataset.type, rules) else []
    columns = columns_of(files, pieces or None, complete=complete, named=not generation.standard, boundaries=jobs)
    return UsableInput(dataset, rules, max_files_of(task), files, pieces, columns, generation)


def peek(task: Task, dataset: Dataset, most: int) -> UsableInput:
    """What the files that would be used next, not picked, give.

    Each state is read in the order of the index by state: in the order of ids alone the planner would rather leaf through all
    files that are older than those of the dataset.
    """
    due = Q(retry_due__isnull=True) | Q(retry_due__lte=Now())
    usable = File.objects.filter(due, dataset_id=dataset.id, held="").values_list(*InputFile._fields)
    of_states = [usable.filter(status__range=(state, state)).order_by("status", "id")[:most] for state in INPUT_FILE.usable]
    files = sorted(map(InputFile._make, of_states[0].union(*of_states[1:], all=True)))
    return usable_input(task, dataset, files[:most], drained=len(files) < most)


_FAILED_AT = """
SELECT j.id, q.name FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
WHERE j.id = ANY (%s) AND (j.status = 'failed' OR j.sub_status = ANY (%s))
"""


def queues_of_failures(files: Sequence[InputFile]) -> dict[int, str]:
    """The computing queue of the last job of each of these files, where that job failed, its pilot broke off, or it could
    not read its input or reach its storage.
    """
    jobs = {f.job_id for f in files if f.job_id}
    if not jobs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_AT, [list(jobs), [INPUT_MISSING, STORAGE_DOWN, PILOT_CLOSED]])
        queues = dict(cursor.fetchall())
    return {f.id: queues[f.job_id] for f in files if f.job_id in queues}


def generation_of(task: Task) -> Generation:
    """The generator at work on a task. Raises NoGenerator.

    Ours is told nothing more than the number of the task: it looks at nothing else, and the parameters are a row to read.
    """
    generator = generator_chosen(task.vo, activity_of(task.prod_source_label), gdpconfig.component("core", vo=task.vo))
    return Generation(generator, GeneratorTask(task.id) if generator is STANDARD else _generator_task(task))


def _generator_task(task: Task) -> GeneratorTask:
    submitted = TaskParams.objects.filter(task_id=task.id).values_list("task_params", flat=True).first() or {}
    return GeneratorTask(
        id=task.id,
        vo=task.vo,
        label=task.prod_source_label,
        processing_type=task.processing_type,
        working_group=task.working_group,
        user=task.user_name,
        priority=task.current_priority,
        share=task.gshare,
        transformation=task.trans_path,
        parameters=MappingProxyType(submitted),
    )
