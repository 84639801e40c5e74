"""What of an input dataset can be cut into jobs now: from rows to what a splitter takes.

Not here: picking files (`workqueues.ledger.picking`).
"""

from __future__ import annotations

from collections.abc import Sequence

from broker_site.foundation import gdpconfig
from brokerage.queries.generation import generation_of
from brokerage.rules.placement.usable_input import UsableInput, columns_of, cuts_events
from workqueues.models import Dataset, File, Task
from workqueues.queries.ranges import free_pieces
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.split_rule import parse
from workqueues.states import INPUT_FILE


def max_files_of(task: Task) -> int:
    """Most files of a job where the task says nothing."""
    return int(gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))


def usable_input(task: Task, dataset: Dataset, files: Sequence[InputFile]) -> UsableInput:
    """What these files of a task give; where events are cut, their free events are looked up. Raises NoGenerator."""
    rules, generation = parse(task.split_rule), generation_of(task)
    complete = dataset.n_files_to_be_used <= dataset.n_files_used + len(files) and dataset.state != "open"
    pieces = free_pieces(files) if cuts_events(dataset.type, rules) else None
    columns = columns_of(files, pieces, complete=complete, named=not generation.standard)
    return UsableInput(dataset, rules, max_files_of(task), files, pieces or (), columns, generation)


def peek(task: Task, dataset: Dataset, most: int) -> UsableInput:
    """What the files that would be used next, not picked, give.

    Each state is read in the order of the index by state: in the order of ids alone the planner would rather leaf through all
    files that are older than those of the dataset.
    """
    usable = File.objects.filter(dataset_id=dataset.id, held="").values_list(*InputFile._fields)
    of_states = [usable.filter(status__range=(state, state)).order_by("status", "id")[:most] for state in INPUT_FILE.usable]
    files = sorted(map(InputFile._make, of_states[0].union(*of_states[1:], all=True)))
    return usable_input(task, dataset, files[:most])
