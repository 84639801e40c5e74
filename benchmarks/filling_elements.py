"""Elements that wait for child brokers, made inside the database by INSERT .. SELECT, as their ledger leaves them: each of a task
that runs, in a group of those that may run at the same sites.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from benchmarks.server import Bench

SITES, CHILDREN, SITES_OF_CHILD = 400, 200, 20
TASKS, GROUPS, GROUPS_OF_TASK = 1000, 2000, 4
PRIORITIES = 11
SHAPES = ((0.4, 1, 1), (0.4, 2, 4), (0.15, 5, 20), (0.05, SITES, SITES))
"""Part of the groups, and from how many to how many sites they have: data at one place, at a few, or read from anywhere."""
GUARDED = ("workqueues_task", "workqueues_dataset", "workqueues_element")
MADE_OF = ("workqueues_element", "workqueues_elementchange", "workqueues_childbroker")


class Child(NamedTuple):
    """A child broker: its token and the names of its sites."""

    token: str
    sites: list[str]


def fill_world() -> list[Child]:
    """Sites, tasks that run, groups, and the children; no elements yet."""
    from broker_site.foundation.access.principal import SYSTEM
    from brokerage.models import Site
    from workqueues.ledger.child_brokers import add_child
    from workqueues.ledger.elements.groups import GroupKey
    from workqueues.models import Dataset, ElementGroup, Task

    names = [f"SITE_{n:03}" for n in range(SITES)]
    Site.objects.bulk_create(Site(name=name) for name in names)
    tasks = Task.objects.bulk_create(
        Task(
            task_name=f"bench{n}", user_name="bench", vo="bench", status="running", trans_path="run.py", work_to="children",
            current_priority=500 + n * 7919 % PRIORITIES,
        )
        for n in range(TASKS)
    )  # fmt: skip
    Dataset.objects.bulk_create(
        Dataset(task=task, dataset_name=f"{task.task_name}.in", type="input", status="ready", vo="bench") for task in tasks
    )
    dice = Random(17)
    keys = {GroupKey("bench", "", _sites(names, dice)) for _ in range(GROUPS)}
    ElementGroup.objects.bulk_create(
        ElementGroup(digest=key.digest, vo=key.vo, team=key.team, sites=list(key.sites)) for key in sorted(keys)
    )
    step = SITES // CHILDREN
    return [
        Child(add_child(f"child{n}", "", "", SYSTEM).secret, [names[(n * step + i) % SITES] for i in range(SITES_OF_CHILD)])
        for n in range(CHILDREN)
    ]


def _sites(names: list[str], dice: Random) -> tuple[str, ...]:
    _, least, most = dice.choices(SHAPES, weights=[part for part, _, _ in SHAPES])[0]
    return tuple(sorted(dice.sample(names, dice.randint(least, most))))


ELEMENTS = f"""
INSERT INTO workqueues_element (task_id, dataset_id, group_id, status, priority, jobs, n_files)
SELECT t.ids[k], t.datasets[k], g.ids[1 + (k * 31 + n / {TASKS} % {GROUPS_OF_TASK} * 977) % g.size], 'Available', t.priorities[k],
    1 + n % 20, 100
FROM generate_series({{first}}, {{last}}) AS n, LATERAL (SELECT 1 + n % {TASKS} AS k) AS task, (
    SELECT array_agg(t.id ORDER BY t.id) AS ids, array_agg(d.id ORDER BY t.id) AS datasets,
        array_agg(t.current_priority ORDER BY t.id) AS priorities
    FROM workqueues_task t JOIN workqueues_dataset d ON d.task_id = t.id
) AS t, (SELECT array_agg(id ORDER BY id) AS ids, count(*) AS size FROM workqueues_elementgroup) AS g
"""
RETURNED = """
UPDATE workqueues_element SET status = 'Available', epoch = epoch + 1, child_id = NULL, lease_until = NULL, incarnation = NULL,
    site = ''
WHERE status = 'Negotiating'
"""
"""What was pulled waits again, so that every round begins with the same elements, and no child is kept from its next pull."""


def elements(bench: Bench, first: int, last: int) -> None:
    """Insert elements that wait: those with these numbers."""
    # The guards of states hold for what the system does; so many rows at once would take them minutes.
    bench.execute(
        *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in GUARDED),
        ELEMENTS.format(first=first, last=last),
        *(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in GUARDED),
        "ANALYZE",
    )
    bench.settle(*MADE_OF)


def fill_unguarded(bench: Bench) -> list[Child]:
    """`fill_world`, whose tasks were never anything but running."""
    bench.execute(*(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in GUARDED))
    children = fill_world()
    bench.execute(*(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in GUARDED))
    return children
