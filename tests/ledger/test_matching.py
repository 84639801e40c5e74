"""Matching on real tables: what is read of a requirement is what was given, and processes that ask at once get each job once.

The oracle is `fits` on the requirement as the test gave it; the database is asked through what matching reads.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Set
from functools import partial
from random import Random
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.db import connection, connections

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.sql.prepared import run_together
from brokerage.api.matching import PilotMatch, resource_of
from brokerage.ledger.lease import HeldAtMost, leasing
from brokerage.ledger.task_queues import open_task_queues, task_queues
from brokerage.models import ComputingQueue, Job
from brokerage.queries.dispatch_policies import policy_of
from brokerage.queries.pilots import QUEUES
from brokerage.queries.waiting import WAITING, AskedQueue
from brokerage.rules.dispatch.pilot_messages import read_ask
from brokerage.rules.dispatch.requirement import Requirement, Resource, fits, with_sets
from brokerage.rules.dispatch.resource import Description, described
from brokerage.rules.placement.slots import Slot
from tests.builders import grid
from workqueues.models import Task, TaskParams

pytestmark = pytest.mark.django_db(transaction=True)

SITES = ("SITE_ALPHA", "SITE_BETA", "SITE_GAMMA")
NAMES = ("a", "b", "c", "d")
OWNERS, GROUPS, SETUPS = ("ada", "bob"), ("", "higgs", "top"), ("", "Production", "Test")
AMOUNTS = (0, 1000, 2000, 4000)
SETS = {
    "stations": "stations",
    "grid_ces": "gridCEs",
    "pilot_types": "pilotTypes",
    "job_types": "jobTypes",
    "tags": "tags",
    "banned_sites": "bannedSites",
}
PLATFORMS = ("", "x86_64-el9-gcc13-opt", "aarch64-el9-gcc13-opt")


def some(dice: Random, names: tuple[str, ...], likely: float = 0.3) -> frozenset[str]:
    return frozenset(name for name in names if dice.random() < likely)


def waits(task_queue: int, queue: ComputingQueue | None, n: int = 1) -> None:
    """So many jobs wait in a task queue."""
    columns = {"task_id": 1, "status": "activated", "priority": 1000, "ready_priority": -1000}
    Job.objects.bulk_create([Job(task_queue_id=task_queue, computing_queue=queue, **columns) for _ in range(n)], batch_size=2000)


def required(dice: Random, queues: list[ComputingQueue]) -> tuple[int, Requirement]:
    """A random requirement, written as when jobs are made: its task queue, in which a job waits, and the requirement as given."""
    slot = Slot(dice.randint(1, 4), dice.choice(AMOUNTS), dice.choice(AMOUNTS), dice.choice(AMOUNTS))
    sets = {name: some(dice, SITES if name == "banned_sites" else NAMES, 0.2) for name in SETS}
    owner, group, setup, platform = (dice.choice(each) for each in (OWNERS, GROUPS, SETUPS, PLATFORMS))
    task = Task(vo="demo", prod_source_label="user", user_name=owner, working_group=group, architecture=platform)
    said = {SETS[name]: sorted(values) for name, values in sets.items() if values}
    TaskParams(task=task, task_params={**said, **({"setup": setup} if setup else {})})
    places = dice.sample(queues, dice.randint(1, len(queues))) if dice.random() < 0.5 else []
    bound = None if places else dice.choice(queues)
    if bound is None:
        task_queue = open_task_queues(task, [slot], {queue.id: (queue.name, "DISK") for queue in places})[slot]
    else:
        task_queue = task_queues(task, [(bound.id, slot)])[bound.id, slot]
    waits(task_queue, bound)
    need = Requirement(
        bound.name if bound else "", *slot, "demo", slot.walltime_s * slot.core_count, owner, group, setup,
        queues=frozenset(queue.name for queue in places), platforms=frozenset({platform} - {""}),
    )  # fmt: skip
    return task_queue, with_sets(need, sets)


def offered(dice: Random, queue: ComputingQueue) -> Resource:
    """A random resource at a queue."""
    tags = some(dice, NAMES, 0.7)
    return described(
        Description(
            queue=queue.name,
            sites={queue.site_id},
            cpu_time_s=dice.choice((0, 3000, 10_000, 100_000)),
            cores=dice.randint(1, 4),
            memory_mb=dice.choice(AMOUNTS),
            disk_mb=dice.choice(AMOUNTS),
            walltime_s=dice.choice(AMOUNTS),
            vo=dice.choice(("", "demo", "demo", "demo", "other")),
            grid_ces=some(dice, ("any", *NAMES)),
            platforms=some(dice, PLATFORMS[1:], 0.5),
            pilot_types=some(dice, ("any", *NAMES)),
            job_types=some(dice, NAMES),
            stations=some(dice, NAMES, 0.6),
            tags=tags,
            required_tags=some(dice, tuple(sorted(tags)), 0.1),
            banned_sites=some(dice, SITES, 0.1),
            banned_tags=some(dice, NAMES, 0.1),
            banned_job_types=some(dice, NAMES, 0.1),
            setup=dice.choice(SETUPS),
            owners=some(dice, OWNERS, 0.2),
            owner_groups=some(dice, GROUPS[1:], 0.2),
            sharing_groups=some(dice, GROUPS[1:], 0.2),
        )
    )


def vain(queue: ComputingQueue, with_jobs: Set[int] = frozenset(), *, read_anew: bool = False) -> list[int]:
    """The task queues that an ask tries at a queue, up to the first of these. `read_anew`: for another ask meanwhile."""
    asked = AskedQueue(queue.id, partial(policy_of, queue.name), gdpconfig.component("dispatch"))
    tried = []
    for one, _ in WAITING.offers(asked, Resource(queue.name, cores=0, tags=None, grid_ces=None)):
        tried.append(one.id)
        if one.id in with_jobs:
            break
        if read_anew:
            WAITING.of(queue.id, fresh=True)
        WAITING.drained(queue.id, one)
    return tried


@pytest.mark.parametrize("read_anew", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_task_queues_that_others_emptied_are_not_tried_one_after_the_other(late: bool, read_anew: bool) -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task, slots = Task(vo="demo", prod_source_label="user"), [Slot(1, ram_mb, 0, 0) for ram_mb in range(100)]
    TaskParams(task=task, task_params={})
    if late:
        made = open_task_queues(task, slots, {queue.id: (queue.name, "DISK") for queue in (alpha, beta)})
        ids = [made[slot] for slot in slots]
    else:
        ids = [*task_queues(task, [(alpha.id, slot) for slot in slots]).values()]
    for id_ in ids:
        waits(id_, None if late else alpha)
    WAITING.forget()
    assert len(WAITING.of(alpha.id).rows) == 100
    assert len(WAITING.of(beta.id).rows) == (100 if late else 0)
    Job.objects.filter(task_queue_id__in=ids[:90]).delete()
    assert vain(alpha, {*ids[90:]}, read_anew=read_anew) == [ids[0], ids[90]]
    assert vain(beta, {*ids[90:]}) == ([ids[90]] if late else []), "who asks at another of its queues does not try them again"


def test_open_jobs_that_a_queue_cannot_take_are_tried_at_the_others() -> None:
    """As where the storage endpoint for their outputs is gone at one of them."""
    alpha, beta = grid("ALPHA", "BETA")
    task = Task(vo="demo", prod_source_label="user")
    TaskParams(task=task, task_params={})
    places = {queue.id: (queue.name, "DISK") for queue in (alpha, beta)}
    (id_,) = open_task_queues(task, [Slot(1, 0, 0, 0)], places).values()
    waits(id_, None)
    WAITING.forget()
    assert len(WAITING.of(beta.id).rows) == 1
    assert (vain(alpha), vain(alpha), vain(beta)) == ([id_], [], [id_])


def test_a_job_that_was_read_since_an_ask_found_none_is_still_offered() -> None:
    """The ask of another thread, which reads the queue anew before the one in vain says so."""
    (alpha,) = grid("ALPHA")
    task = Task(vo="demo", prod_source_label="user")
    TaskParams(task=task, task_params={})
    slot = Slot(1, 0, 0, 0)
    id_ = task_queues(task, [(alpha.id, slot)])[alpha.id, slot]
    waits(id_, alpha)
    WAITING.forget()
    (found_empty,) = WAITING.of(alpha.id).rows
    Job.objects.all().delete()
    waits(id_, alpha)
    WAITING.of(alpha.id, fresh=True)
    WAITING.drained(alpha.id, found_empty)
    assert vain(alpha) == [id_]


def test_of_a_reading_a_queue_keeps_no_more_than_its_own_task_queues() -> None:
    """Else a queue that is seldom asked, or gone, would keep the first jobs of all of them."""
    alpha, beta = grid("ALPHA", "BETA")
    task = Task(vo="demo", prod_source_label="user")
    TaskParams(task=task, task_params={})
    slots = [Slot(1, ram_mb, 0, 0) for ram_mb in range(3)]
    ids = task_queues(task, [(alpha.id, slots[0]), *((beta.id, slot) for slot in slots)])
    for (queue_id, _), id_ in ids.items():
        waits(id_, alpha if queue_id == alpha.id else beta)
    WAITING.forget()
    for queue in (alpha, beta):
        WAITING.of(queue.id)
    assert {queue: len(kept.first) for queue, kept in WAITING._lists.items()} == {alpha.id: 1, beta.id: 3}


def compare_with_oracle(seed: int, requirements: int, resources: int) -> None:
    dice, queues = Random(seed), grid("ALPHA", "BETA", "GAMMA")
    needs = dict(required(dice, queues) for _ in range(requirements))
    WAITING.forget()
    found = 0
    for number in range(resources):
        queue = queues[number % len(queues)]
        resource = offered(dice, queue)
        read = {one.id for one in WAITING.of(queue.id).fitting(resource)}
        assert read == {id_ for id_, need in needs.items() if fits(need, resource)}, resource
        found += len(read)
    assert found > resources / 2, "most resources suit something"
    assert len(needs) > requirements / 2, "most requirements differ"


def test_what_the_database_holds_of_requirements_suits_the_resources_that_they_suit_as_given() -> None:
    compare_with_oracle(seed=15, requirements=150, resources=300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_the_same_of_many(seed: int) -> None:
    compare_with_oracle(seed, requirements=2000, resources=3000)


PROCESSES, TASK_QUEUES = 8, 40
KINDS = [frozenset(NAMES[: n % 4 + 1]) for n in range(4)]
"""Tags of pilots: each kind suits what the one before it suits, and more."""


class Nothing(NamedTuple):
    """When (seconds since 1970) an ask of a kind of pilot had been answered with nothing."""

    kind: int
    at: float


def drain(number: int) -> tuple[list[int], list[Nothing]]:
    """One process: pilots of all kinds ask until each kind is told that there is nothing."""
    WAITING.forget()
    queue = QUEUES.named("ALPHA")
    assert queue is not None
    principal = Principal("pilot", "test", site=queue.site, queues=("ALPHA",), vo="demo", credential=1)
    dice, got, nothing = Random(number), list[int](), list[Nothing]()
    left = list(range(len(KINDS)))
    while left:
        kind = dice.choice(left)
        said = {"request": str(uuid4()), "cores": 4, "cpu_time_s": dice.randint(10**6, 10**7), "tags": sorted(KINDS[kind])}
        ask = read_ask(said)
        match = PilotMatch(principal, uuid4(), queue, ask, resource_of(principal, queue, ask), HeldAtMost(4, 1))
        rows = next(filter(None, (run_together(leasing([one])) for one in match.asks)), [])
        match.got(len(rows))
        got += [row[0] for row in rows]
        if not rows:
            nothing.append(Nothing(kind, time.time()))
            left.remove(kind)
    connection.close()
    return got, nothing


def check_drained(policy: str, jobs: int) -> None:
    """Processes drain task queues: no job goes out twice, and nobody is told `nothing` while a job waits that suits."""
    (queue,) = grid("ALPHA")
    set_override("dispatch", "DISPATCH_POLICY", policy, who="ada", why="test")
    dice, tags_of = Random(jobs), dict[int, frozenset[str]]()
    for number in range(TASK_QUEUES):
        task = Task(vo="demo", prod_source_label="user", user_name=f"user{number}")
        tags = some(dice, NAMES, 0.4)
        TaskParams(task=task, task_params={"tags": sorted(tags)} if tags else {})
        slot = Slot(1, 0, 0, 600)
        tags_of[(id_ := task_queues(task, [(queue.id, slot)])[queue.id, slot])] = tags
        waits(id_, queue, jobs // TASK_QUEUES)
    connections.close_all()  # a forked process must not share them
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        told = pool.map(drain, range(PROCESSES), chunksize=1)
    given = Counter(job for got, _ in told for job in got)
    assert [job for job, n in given.items() if n > 1] == []
    columns = ("id", "status", "epoch", "task_queue_id", "status_since")
    rows: list[tuple[Any, ...]] = list(Job.objects.values_list(*columns))
    assert {(status, epoch) for _, status, epoch, _, _ in rows} == {("sent", 1)}, "the last kind suits all"
    assert given.keys() == {row[0] for row in rows}
    last = {
        kind: max((since.timestamp() for *_, id_, since in rows if tags_of[id_] <= KINDS[kind]), default=0.0)
        for kind in (0, 1, 2, 3)
    }
    false = [nothing for _, some_nothing in told for nothing in some_nothing if last[nothing.kind] > nothing.at]
    assert false == [], f"jobs that suited were handed out later: {last}"


@pytest.mark.parametrize("policy", ["panda", "dirac"])
def test_no_job_goes_out_twice_and_nobody_is_told_nothing_while_one_waits(policy: str) -> None:
    check_drained(policy, 1200)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["panda", "dirac"])
def test_the_same_in_a_hundred_thousand_matches(policy: str) -> None:
    check_drained(policy, 100_000)
