"""Whether there are the share and the work queue that a task names; without them it could only be broken once it is read."""

from __future__ import annotations

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.models import GlobalShare
from workqueues.queries.shares import trees
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.refine import TaskDocument


def check_divisions(document: TaskDocument) -> list[Problem]:
    """A problem with the rule `exists` for `gshare` and `workQueueName` where the VO has none of that name. No statement where
    the task names none.
    """
    task = document.parameters
    problems: list[Problem] = []
    if task.gshare and task.vo:
        tree = trees(GlobalShare.objects.filter(vo=task.vo)).get(task.vo)
        if tree is None or not tree.share_of({"gshare": task.gshare}):
            near = nearest(task.gshare, [leaf.name for leaf in tree.leaves] if tree else [])
            problems.append(_missing("gshare", f"the VO {task.vo} has no leaf share {task.gshare}", near))
    if task.workQueueName and task.vo:
        columns = {"vo": task.vo, "prod_source_label": task.prodSourceLabel}
        queues = WorkQueues.load()
        if queues.named(task.workQueueName, columns) is None:
            near = nearest(
                task.workQueueName,
                [row.queue_name for row in queues.rows.values() if row.vo in ("", "*", task.vo) and not row.is_partition],
            )
            what = f"the VO {task.vo} has no work queue {task.workQueueName} for the prodSourceLabel {task.prodSourceLabel}"
            problems.append(_missing("workQueueName", what, near))
    return problems


def _missing(field: str, what: str, near: str) -> Problem:
    return problem(field, "exists", what + (f"; the nearest name is {near}" if near else ""))
