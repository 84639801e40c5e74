"""Agent submit. Takes activated jobs of computing queues with submission, and jobs that were submitted. Leaves jobs sent to
pilots of their own, these pilots started, and jobs whose pilots are over, or that can go nowhere, ended. Next: the pilots.

Jobs that wait are kept in a list of this process, which is read anew now and then: only what still waits is sent of it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from django.db import transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.submission import (
    NewSubmission,
    alone,
    close_nowhere,
    end_killed,
    end_lost,
    end_unstartable,
    forget_ended,
    note_started,
    pilots_to_start,
    renew,
    submit_jobs,
    wait_at,
)
from brokerage.ledger.submission_caps import note_submitted, site_caps
from brokerage.models import Job
from brokerage.queries.submission import (
    HeldJob,
    SiteFacts,
    cycle_rules,
    held_jobs,
    lease_at,
    site_facts,
    still_waiting,
    waiting_jobs,
)
from brokerage.queries.task_queue_facts import task_queue_facts
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.submission.submission_cycle import CachedJob, CyclePlan, plan_cycle
from brokerage.submitters.choice import SUBMITTERS
from brokerage.submitters.port import NotStarted, Submitter


class JobCache:
    """The first jobs that wait to be submitted, in order, as they were read last."""

    def __init__(self) -> None:
        self._jobs: list[CachedJob] = []
        self._read_at = float("-inf")
        self._shape: object = None
        self._whole = False

    def jobs(self, facts: SiteFacts) -> list[CachedJob]:
        """Those that still wait: what was aborted or handed out is dropped, and what came since is seen when it is due.

        Read anew where it held all that waited, where its time is over, and at once where other queues or sites take jobs.
        """
        period_s, size = (gdpconfig.value("submission", key) for key in ("CACHE_PERIOD", "CACHE_SIZE"))
        if self._whole or self._shape != facts.shape or time.monotonic() - self._read_at >= period_s:
            self._jobs = waiting_jobs(facts, size)
            self._read_at, self._shape, self._whole = time.monotonic(), facts.shape, len(self._jobs) < size
            return self._jobs
        still = still_waiting([job.id for job in self._jobs])
        self._jobs = [job for job in self._jobs if job.id in still]
        return self._jobs

    def forget(self) -> None:
        """Read anew at the next use."""
        self._read_at = float("-inf")


CACHE = JobCache()


@agent("submit")
def submit(run: Run) -> int:
    """Submit what may be, and start the pilots of what was: how many jobs were submitted or ended."""
    handled = forget_ended()
    facts = site_facts()
    submitters: dict[str, Submitter] = {}
    for name in sorted({queue.submitter for queue in facts.queues.values()}):
        if fault := SUBMITTERS[name].fault():
            run.left.append(f"jobs to submit by {name}: {fault}")
        else:
            submitters[name] = SUBMITTERS[name]
    handled += tend(run)
    if submitters:
        handled += cycle(run, submitters)
    for submitter in submitters.values():
        start(submitter, run)
    return handled


def cycle(run: Run, submitters: dict[str, Submitter]) -> int:
    """Decide by what is at the sites now, and send: how many jobs were sent or closed. Nothing where another process does so.

    What is there is counted under the lock that holds until what is sent counts too: thresholds hold, whoever runs this twice.
    """
    with transaction.atomic():
        if not alone():
            return 0
        facts = site_facts()
        mine = {id_: queue for id_, queue in facts.queues.items() if queue.submitter in submitters}
        jobs = CACHE.jobs(SiteFacts(facts.sites, mine))
        caps = site_caps({queue.site for queue in mine.values()}) if jobs else {}
        plan = plan_cycle(jobs, facts.sites, cycle_rules(), caps)
        new = _submissions(plan, jobs, SiteFacts(facts.sites, mine))
        sent = submit_jobs(new, run.who)
        if caps:
            values = {job.id: job.values for job in jobs}
            note_submitted(caps, ((one.site, values[one.job_id]) for one in new if one.job_id in sent))
    return len(sent) + _close(plan, run)


def _submissions(plan: CyclePlan, jobs: Sequence[CachedJob], facts: SiteFacts) -> list[NewSubmission]:
    """The jobs of a plan, each with its queue at its site."""
    by_id = {job.id: job for job in jobs}
    chosen = [(by_id[id_], site) for id_, site in plan.submitted]
    known = task_queue_facts({job.task_queue for job, _ in chosen})
    places = {
        (task_queue, queue.site): (queue, storage, lease_at(queue, of.label))
        for task_queue, of in known.items()
        for queue, storage in reversed(list(facts.open_queues(of)))
    }
    found = ((job, site, places.get((job.task_queue, site))) for job, site in chosen)
    return [
        NewSubmission(job.id, site, job.kind, place[0].id, place[1], place[0].submitter, place[2])
        for job, site, place in found
        if place is not None
    ]


def _close(plan: CyclePlan, run: Run) -> int:
    codes = dict(plan.failed)
    rows = Job.objects.filter(id__in=list(codes), status="activated").values_list("id", "epoch", "status", "task_id")
    return close_nowhere([(JobVersion(*row), codes[row[0]]) for row in rows], run.who) if codes else 0


def tend(run: Run) -> int:
    """Prolong the leases of jobs whose pilots may yet come, and end those whose pilots will not: how many ended."""
    jobs = held_jobs()
    there, gone = _pilots(jobs)
    if gone:  # what a pilot told before it was gone has been heard by now
        jobs = held_jobs()
    ended = end_lost(gone, jobs, run.who)
    others = [job for job in jobs if job.job_id not in gone]
    ended += end_unstartable(others, run.who) + end_killed(others, run.who)
    for name in {job.submitter for job in others if job.submitter in SUBMITTERS}:
        if not SUBMITTERS[name].fault():
            mine = [job for job in others if job.submitter == name and not job.claimed and not job.kill_requested]
            wait_at(name, mine, run.who)
            renew([job for job in mine if not job.handle or job.job_id in there])
    return ended


def _pilots(jobs: Sequence[HeldJob]) -> tuple[set[int], dict[int, str]]:
    """As their submitters say: jobs whose pilots are there, and those whose pilots are over, with why."""
    handles: dict[str, dict[int, str]] = defaultdict(dict)
    for job in jobs:
        if job.handle and job.submitter in SUBMITTERS:
            handles[job.submitter][job.job_id] = job.handle
    there, gone = set[int](), dict[int, str]()
    for name, of in handles.items():
        if not SUBMITTERS[name].fault():
            found = SUBMITTERS[name].look(of)
            there |= set(found.there)
            gone |= found.gone
    return there, gone


def start(submitter: Submitter, run: Run) -> None:
    """Start the pilots for which there is room. Killed in between, they are started again, and the second ones get nothing."""
    with transaction.atomic():
        orders = pilots_to_start(submitter.name, gdpconfig.value("submission", "MOST_PER_CYCLE"))
        if not orders:
            return
        results = submitter.start(orders)
        started = {job_id: handle for job_id, handle in results.items() if isinstance(handle, str)}
        note_started(started, results.keys() - started.keys())
    for job_id, fault in results.items():
        if isinstance(fault, NotStarted):
            run.leave(f"the pilot of job {job_id}", fault)
