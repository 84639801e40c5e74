"""Names of places that the parameters of a task wish for, and that nobody has: share, work queue, nucleus, computing queue.

The agent refine looks once more: what is there may change until then. Not here: whether the place suits the task (the brokerage).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.models import GlobalShare
from workqueues.queries.shares import trees
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.task_parameters import TaskParameters

GridCheck = Callable[[str, str], Mapping[str, str]]
_grid_checks: list[GridCheck] = []


def check_grid_with(check: GridCheck) -> None:
    """Say who knows the queues and nuclei of the grid, which is above this app."""
    _grid_checks[:] = [check]


def check_places(task: TaskParameters) -> list[Problem]:
    """A problem with the rule `exists` for each name that is not there, with the nearest one that is."""
    return [problem(field, "exists", message) for field, message in _faults(task)]


def no_share(name: str, leaves: Iterable[str] = ()) -> str:
    return _with_nearest(f"the VO has no leaf share {name}", name, leaves)


def no_work_queue(name: str, queues: Iterable[str] = ()) -> str:
    return _with_nearest(f"no work queue {name} for this VO and prodSourceLabel", name, queues)


def _faults(task: TaskParameters) -> Iterator[tuple[str, str]]:
    if task.gshare:
        tree = trees(GlobalShare.objects.filter(vo=task.vo)).get(task.vo)
        if tree is None or not tree.share_of({"gshare": task.gshare}):
            yield "gshare", no_share(task.gshare, (leaf.name for leaf in tree.leaves) if tree else ())
    if task.workQueueName:
        columns = {"vo": task.vo, "prod_source_label": task.prodSourceLabel}
        queues = WorkQueues.load()
        if queues.named(task.workQueueName, columns) is None:
            yield "workQueueName", no_work_queue(task.workQueueName, (row.queue_name for row in queues.open_to(columns)))
    if (task.site or task.nucleus) and _grid_checks:
        yield from _grid_checks[0](task.site, task.nucleus).items()


def _with_nearest(fault: str, name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"{fault}; the nearest name is {near}" if near else fault
