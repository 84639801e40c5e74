"""What the agent submits, cycle after cycle, is what the document says job by job, for random slots, priorities and kinds."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from django.db import connection

from broker_site.foundation.gdpconfig import set_override
from brokerage.agents.submit import CACHE
from brokerage.ledger.submission import forget_ended
from brokerage.models import ComputingQueue, Job, Site, SubmittedJob
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, run_agents
from tests.flow.test_submission import run, submit

pytestmark = pytest.mark.django_db
QUEUES, CYCLES = ("ALPHA", "BETA"), 6
MERGE = int(JobKind.MERGE)


class Counted:
    """The jobs at a site as the document counts them, and the conditions of the next one: the oracle, one job at a time."""

    def __init__(self, cpu: int, io: int, site: str, above: float) -> None:
        self.above = above
        held = list(
            Job.objects.filter(computing_queue__site=site, status__in=JOB.leased).values_list("kind", "status", "priority")
        )
        self.pending = Counter({True: 0, False: 0}) + Counter(k == MERGE for k, s, _ in held if s in JOB.starting)
        self.running = Counter(k == MERGE for k, s, _ in held if s not in JOB.starting)
        self.first = +self.pending
        self.highest = max((p for k, _, p in held if k != MERGE), default=None)
        self.site = (cpu * 50 // 100, cpu)
        self.kinds = {False: (cpu * 45 // 100, cpu), True: (io * 45 // 100, io)}

    def takes(self, merges: bool, priority: int) -> bool:
        """Whether the next job of the kind may go; then it is counted."""
        exceeds = not merges and self.highest is not None and priority > self.highest
        mine, all_there = self.pending[merges], sum(self.pending.values())
        slots, of_site = self.kinds[merges], self.site
        if not slots[0]:
            return False
        most_mine, most = float(slots[0]), float(of_site[0])
        if exceeds:
            most_mine = max(most_mine, self.first[merges]) + self.above * slots[0]
            most = max(most, sum(self.first.values())) + self.above * of_site[0]
        if all_there >= most or mine >= most_mine:
            return False
        if all_there + sum(self.running.values()) >= most + of_site[1]:
            return False
        if mine + self.running[merges] >= most_mine + slots[1]:
            return False
        self.pending[merges] += 1
        return True


def expected(sites: dict[str, tuple[int, int]], above: float, room: int) -> set[int]:
    """The jobs that a cycle submits."""
    counted = {site: Counted(*slots, site, above) for site, slots in sites.items()}
    waiting = Job.objects.filter(status="activated").values_list("id", "kind", "priority", "computing_queue__site")
    chosen: set[int] = set()
    for id_, kind, priority, site in sorted(waiting, key=lambda job: (job[1] != MERGE, -job[2], job[0])):
        if len(chosen) < room and counted[site].takes(kind == MERGE, priority):
            chosen.add(id_)
    return chosen


@pytest.mark.parametrize("seed", range(3))
def test_the_agent_submits_what_the_document_says_and_never_more(seed: int) -> None:
    dice = Random(seed)
    grid(*QUEUES)
    ComputingQueue.objects.update(submission="local")
    sites = {f"SITE_{name}": (dice.choice([0, 3, 8, 20]), dice.choice([0, 2, 5])) for name in QUEUES}
    for site, (cpu, io) in sites.items():
        Site.objects.filter(name=site).update(cpu_slots=cpu, io_slots=io)
    above, limit = dice.choice([0.0, 0.2, 0.5]), dice.choice([6, 40])
    keys = {"FEWEST_CPU_SLOTS": 0, "FEWEST_IO_SLOTS": 0, "HIGHER_PRIORITY_PART": above, "MAX_JOBS": limit, "MAX_JOBS_PART": 1}
    for key, value in keys.items():
        set_override("submission", key, value, who="test", why="random")
    CACHE.forget()
    for n in range(3):
        submitted(parameters(f"t{n}", nEvents=150, nEventsPerJob=10, taskPriority=dice.randrange(100, 900)))
    run_agents()
    total = 0
    for _ in range(CYCLES):
        shuffle(dice)
        held = Job.objects.filter(status__in=JOB.leased).count()
        wanted = expected(sites, above, limit - held)
        before = set(SubmittedJob.objects.values_list("job_id", flat=True))
        n = submit()
        now = set(SubmittedJob.objects.values_list("job_id", flat=True)) - before
        assert now == wanted, (seed, sorted(now ^ wanted))
        assert n == len(now)
        assert Job.objects.filter(status__in=JOB.leased).count() <= max(limit, held)
        total += n
        for row in SubmittedJob.objects.filter(claimed_by=""):
            if dice.random() < 0.5:
                leased = run(row)
                if dice.random() < 0.4 and not Job.objects.filter(id=row.job_id, kind=MERGE).exists():
                    end(leased)
        forget_ended()
    assert total or not any(cpu for cpu, _ in sites.values())


def shuffle(dice: Random) -> None:
    """Some of the jobs that wait have another priority, some merge."""
    with connection.cursor() as cursor:
        for id_ in Job.objects.filter(status="activated").order_by("id").values_list("id", flat=True):
            if dice.random() < 0.3:
                kind = MERGE if dice.random() < 0.2 else int(JobKind.NORMAL)
                priority = dice.choice([100, 300, 500, 900])
                cursor.execute(
                    "UPDATE brokerage_job SET kind = %s, priority = %s, ready_priority = %s WHERE id = %s",
                    [kind, priority, -priority, id_],
                )
