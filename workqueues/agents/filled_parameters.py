"""What a submission asks of parameters besides their rules, asked again of those that a preprocessing step has filled in."""

from __future__ import annotations

from broker_site.foundation.agency.run import Run
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.catalogue import catalogue
from workqueues.ledger.preprocessing import infer_parents
from workqueues.models import Task
from workqueues.queries.place_wishes import check_places
from workqueues.queries.tasks import MOST_WRITERS, live_writers
from workqueues.queries.used_files import check_users
from workqueues.queries.writers import writer_of
from workqueues.rules.refine import TaskDocument, check_outputs


def faults_of_filled(run: Run, task: Task, document: TaskDocument) -> list[Problem]:
    """What is wrong with the outputs, places and other tasks that a claimed task names.

    The tasks that write its inputs become its parents. Raises Stale, and what the catalogue raises.
    """
    names = document.input_names
    known = {*task.input_writers.values_list("writer_id", flat=True), task.id, task.parent_tid}
    writers = [w for w in live_writers(task.vo, task.user_name, task.working_group, names) if w.task_id not in known]
    if len(writers) > MOST_WRITERS:
        return [problem("jobParameters", "range", f"more than {MOST_WRITERS} live tasks write its inputs")]
    infer_parents(run.id, task.id, writers)
    owners = catalogue().owners(task.vo, document.output_names)
    return [
        *check_outputs(document, writer_of(task), owners),
        *check_places(document),
        *check_users(task.vo, document.parameters.skipFilesUsedBy),
    ]
