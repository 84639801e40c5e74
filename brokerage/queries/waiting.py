"""The task queues with waiting jobs, as this process knows them, for matching.

Kept for a moment: task queues come and go slowly, and what they require never changes. Reading takes a hundredth of the time of a
process at most, or, where what is kept would be older than some seconds, a twentieth.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from threading import RLock
from typing import NamedTuple

from django.db import connection

from broker_site.foundation.sql.prepared import Prepared, array_text
from brokerage.queries.serving_since import ServingSince
from brokerage.queries.task_queue_facts import OutputPlace, TaskQueueFacts, task_queue_facts
from brokerage.rules.dispatch.dispatch_policy import DispatchPolicy, JobWindow, PolicyOf, Turn, dispatch_order
from brokerage.rules.dispatch.requirement import NO_HITS, Hits, Resource
from brokerage.rules.dispatch.requirement_index import RequirementIndex
from brokerage.rules.dispatch.waiting_list import WaitingList, WaitingQueue
from brokerage.rules.dispatch.why_nothing import Nothing, why_nothing

FRESH_S = 0.5
"""How old what is kept may be, where reading it takes no time to speak of.

A match that finds nothing reads its queue again, so a new job waits no longer than the pilot's next ask.
"""
AT_MOST, AT_LEAST, OLD_S = 100, 20, 5.0
"""What is read is kept for so many times as long as reading took: for fewer where it would be older than so many seconds."""
MOST_KEPT = 20_000
"""Task queues that are known beside those that have waiting jobs, and as many as these."""
FIRST_JOB_OF = """
CROSS JOIN LATERAL (
    SELECT j.ready_priority, j.id FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL
    ORDER BY j.ready_priority, j.id LIMIT 1) best
"""
ALL = f"SELECT t.id, best.ready_priority, best.id, coalesce(t.priority, 1) FROM brokerage_taskqueue t {FIRST_JOB_OF}"
AT_QUEUE = f"""
SELECT t.id, best.ready_priority, best.id, coalesce(t.priority, 1) FROM (
    SELECT id, priority FROM brokerage_taskqueue WHERE computing_queue_id = %(queue)s
    UNION ALL
    SELECT q.id, q.priority FROM brokerage_requirementplace p
        JOIN brokerage_taskqueue q ON q.requirement_set_id = p.requirement_set_id
    WHERE p.computing_queue_id = %(queue)s AND q.computing_queue_id IS NULL
) t {FIRST_JOB_OF}
"""
PRIORITIES = """
WITH RECURSIVE class (priority) AS (
    SELECT min(ready_priority) FROM brokerage_job WHERE task_queue_id = %(queue)s AND ready_priority IS NOT NULL
    UNION ALL
    SELECT (SELECT min(j.ready_priority) FROM brokerage_job j
        WHERE j.task_queue_id = %(queue)s AND j.ready_priority > class.priority)
    FROM class WHERE class.priority IS NOT NULL
)
SELECT -class.priority, (SELECT count(*) FROM (
    SELECT FROM brokerage_job j WHERE j.task_queue_id = %(queue)s AND j.ready_priority = class.priority LIMIT %(most)s) counted)
FROM class WHERE class.priority IS NOT NULL
"""
WITH_JOBS = Prepared(
    "with_jobs",
    "int[], int[], bigint[]",
    """
    SELECT t.id FROM unnest($1, $2, $3) AS t(id, ready, job) WHERE EXISTS (
        SELECT FROM brokerage_job j
        WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL AND (j.ready_priority, j.id) >= (t.ready, t.job))
    """,
)
LOOKED_AT, MOST_LOOKED_AT = 16, 256
"""Where an ask has met a task queue without a job, so many of those behind it are looked at together, then twice as many: else it
would try hundreds one after the other that other processes have emptied since they were read.
"""
MOST_COUNTED = 5000
"""Jobs of each user priority that are counted in a task queue."""


_First = tuple[int, int, int, float]
"""A task queue with its first waiting job: id, ready priority, id of the job, weight. Plain tuples of numbers, since there are
thousands at each reading, and the collector of garbage looks at all others again and again.
"""


class AskedQueue(NamedTuple):
    """The computing queue of an ask, the dispatch policy of each VO there, and the component `dispatch` of the configuration."""

    id: int
    policy_of: PolicyOf
    options: Mapping[str, object]


@dataclass(slots=True)
class _KeptList:
    at: float
    waiting: WaitingList
    first: Mapping[int, _First]
    """The first jobs of its task queues as they were read then."""


@dataclass(slots=True)
class WaitingWork:
    """What this process knows of waiting jobs."""

    _facts: dict[int, TaskQueueFacts] = field(default_factory=dict)
    _first: dict[int, _First] = field(default_factory=dict)
    _at_queue: dict[int, list[int]] = field(default_factory=dict)
    _lists: dict[int, _KeptList] = field(default_factory=dict)
    _index: RequirementIndex = field(default_factory=RequirementIndex)
    _serving: ServingSince = field(default_factory=ServingSince)
    _until: float = 0.0
    _read_at: float = 0.0
    _took_s: float = 0.0
    _dice: Random = field(default_factory=Random)
    _lock: RLock = field(default_factory=RLock)

    def offers(
        self, asked: AskedQueue, resource: Resource, *, hits: Hits = NO_HITS, fresh: bool = False
    ) -> Iterator[tuple[WaitingQueue, JobWindow]]:
        """The task queues that suit what a pilot offers, in the order of the policy, and which of their jobs."""
        waiting = self.of(asked.id, fresh=fresh)
        turn = Turn(self._serving.order.place_of, self._dice, asked.options)
        order = dispatch_order(waiting.fitting(resource, hits), asked.policy_of, turn)
        for one, policy in order:
            yield one, policy.job_window(one, turn, self._user_priorities)
            # The list of now: another thread may have read the queue anew since the ask began.
            if (kept := self._lists.get(asked.id)) is None or not kept.waiting.waits(one):
                for other, of_other in self._with_jobs(one, order):
                    yield other, of_other.job_window(other, turn, self._user_priorities)

    def _with_jobs(
        self, tried: WaitingQueue, order: Iterator[tuple[WaitingQueue, DispatchPolicy]]
    ) -> Iterator[tuple[WaitingQueue, DispatchPolicy]]:
        """Those of the order that still have jobs. `tried`: one that had none for the ask."""
        asked, n = [tried], LOOKED_AT
        while some := [*islice(order, n)]:
            asked += [one for one, _ in some]
            there = self._looked_at(asked)
            yield from (each for each in some if each[0].id in there)
            asked, n = [], min(2 * n, MOST_LOOKED_AT)
        self._looked_at(asked)  # nothing came behind the one that was tried: the other queues are told of it all the same

    def _looked_at(self, asked: Sequence[WaitingQueue]) -> Collection[int]:
        """Which of them still have jobs. Those without are not offered at any queue until what waits is read again."""
        if not asked:
            return ()
        columns = zip(*((one.id, -one.priority, one.job_id) for one in asked), strict=True)
        there = {id_ for (id_,) in WITH_JOBS.run(*map(array_text, columns))}
        with self._lock:
            for one in asked:
                facts = self._facts.get(one.id) if one.id not in there else None
                for kept in filter(None, map(self._lists.get, facts.queues if facts else ())):
                    kept.waiting.drained(one)
        return there

    def drained(self, queue_id: int, one: WaitingQueue) -> None:
        """A task queue had no job for an ask: nobody is offered it here until what waits is read again."""
        with self._lock:
            if kept := self._lists.get(queue_id):
                kept.waiting.drained(one)

    def without_policy(self, asked: AskedQueue, resource: Resource) -> str:
        """The first VO with jobs that suit and whose dispatch policy is not there; empty: none."""
        fitting = self.of(asked.id).fitting(resource)
        waiting = fitting.only([vo for vo in fitting.vos if asked.policy_of(vo) is None])
        return next((one.unit.vo for one in waiting), "")

    def why(self, queue_id: int, resource: Resource, *, hits: Hits = NO_HITS, closely: bool) -> Nothing:
        """Why an ask found nothing; `closely`: with the task queue that it missed by least."""
        waiting = self.of(queue_id)
        held = waiting.fitting(resource, hits).held() if hits else []
        return why_nothing(waiting, resource, held, closely=closely)

    def of(self, queue_id: int, *, fresh: bool = False) -> WaitingList:
        """The task queues with at least one ready job at a computing queue."""
        with self._lock:
            if fresh:
                self._read_queue(queue_id)
            elif time.monotonic() >= self._until:
                self._read_all()
            kept = self._lists.get(queue_id)
            if kept is not None and kept.at >= self._read_at:
                return kept.waiting
            began = time.monotonic()
            waiting = self._list(queue_id, self._at_queue.get(queue_id, ()), self._first)
            self._keep(self._took_s + time.monotonic() - began)
            return waiting

    def handed_out(self, waiting: WaitingQueue, hs06: float) -> None:
        """A job of the task queue went to a pilot: its unit has so much more."""
        with self._lock:
            self._serving.handed_out(waiting.unit, hs06)

    def _user_priorities(self, task_queue: int) -> Mapping[float, int]:
        """How many jobs of a task queue wait with each user priority."""
        with connection.cursor() as cursor:
            cursor.execute(PRIORITIES, {"queue": task_queue, "most": MOST_COUNTED})
            return dict(cursor.fetchall())

    def forget(self) -> None:
        """Read anew at the next use."""
        with self._lock:
            self._until, self._serving, self._index = 0.0, ServingSince(), RequirementIndex()
            for kept in (self._facts, self._first, self._at_queue, self._lists):
                kept.clear()

    def _read_all(self) -> None:
        began = time.monotonic()
        with connection.cursor() as cursor:
            cursor.execute(ALL)
            self._first = {first[0]: first for first in cursor.fetchall()}
        self._learn(self._first)
        most = 2 * len(self._first) + MOST_KEPT
        if len(self._facts) > most:
            self._facts = {id_: facts for id_, facts in self._facts.items() if id_ in self._first}
            self._index = RequirementIndex()  # of no others: what is read again of one may be more
        # All at once: else each list makes it larger, and what suits is looked for again.
        new = [id_ for id_ in self._first if id_ not in self._index and id_ in self._facts]
        self._index.places({id_: self._facts[id_].requirement for id_ in new})
        at_queue: dict[int, list[int]] = defaultdict(list)
        for id_ in self._first:
            for queue in self._facts[id_].queues if id_ in self._facts else ():
                at_queue[queue].append(id_)
        self._at_queue = at_queue
        self._serving.read()
        self._read_at = time.monotonic()
        self._keep(self._read_at - began)

    def _keep(self, took_s: float) -> None:
        """What was read last, and took so long until now, is kept for as long as that is worth."""
        self._took_s = took_s
        self._until = self._read_at + max(FRESH_S, min(AT_MOST * took_s, OLD_S), AT_LEAST * took_s)

    def _read_queue(self, queue_id: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(AT_QUEUE, {"queue": queue_id})
            first = {first[0]: first for first in cursor.fetchall()}
        self._learn(first)
        self._learn_anew(queue_id, first)
        self._serving.read()
        self._list(queue_id, first, first)

    def _learn(self, ids: Collection[int]) -> None:
        """Read the facts of task queues that are not known yet."""
        if new := [id_ for id_ in ids if id_ not in self._facts]:
            self._facts.update(task_queue_facts(new))

    def _learn_anew(self, queue_id: int, ids: Collection[int]) -> None:
        """Read those again that are open to a queue of which is not known: it was removed, and came back with another id.

        What was known may have been read while it was gone, without its name: nothing that was made of that is used again.
        """
        known = [(id_, self._facts[id_]) for id_ in ids if id_ in self._facts]
        if moved := [id_ for id_, facts in known if queue_id not in facts.queues]:
            self._facts.update(task_queue_facts(moved))
            self._index = RequirementIndex()
            self._lists.clear()

    def _list(self, queue_id: int, ids: Iterable[int], first: Mapping[int, _First]) -> WaitingList:
        """The list, made of what is unchanged since the last one and of what is new."""
        kept = self._lists.get(queue_id)
        before, of_before = (kept.first, kept.waiting.row_of) if kept else ({}, {})
        here = {id_: first[id_] for id_ in ids}  # no others: a queue that is seldom asked keeps them for long
        rows: list[WaitingQueue] = []
        for id_, read in here.items():
            row = of_before.get(id_) if before.get(id_) == read else None
            if row is None and (facts := self._facts.get(id_)) is not None:
                _, ready, job_id, weight = read
                is_open, place = facts.queue_id is None, facts.places.get(queue_id, OutputPlace())
                row = WaitingQueue(
                    id_, facts.requirement, -ready, job_id, facts.unit, facts.label, weight, is_open, *place
                )  # fmt: skip
            if row is not None:
                rows.append(row)
        waiting = WaitingList(rows, self._index, kept.waiting if kept else None)
        self._lists[queue_id] = _KeptList(time.monotonic(), waiting, here)
        return waiting


WAITING = WaitingWork()
