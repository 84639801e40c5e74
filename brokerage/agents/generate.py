"""Agent generate. Takes ready and running tasks with files to use. Leaves jobs activated, or the task pending with the reasons.
Next: pilots."""

from __future__ import annotations

from broker_site.foundation.agency.look import look, look_later
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.dataset_jobs import FULL_S, QUEUES_FULL, GenerateRun, finds_room, jobs_from, load
from brokerage.agents.decision_cycle import begin
from brokerage.agents.throttling import Throttle
from brokerage.ledger.placement_rounds import note_round
from brokerage.ledger.waits import wait_for_place
from brokerage.models import ComputingQueue
from brokerage.queries.feeds import stale_feeds
from brokerage.queries.placement_rounds import last_change
from brokerage.rules.placement.slots import JobGrants
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.claims_ahead import claim_ahead
from workqueues.ledger.elements.taking_back import take_back
from workqueues.ledger.holds import LONGEST_OF_REST, rest_together, retry_all_later
from workqueues.ledger.lost_claims import SUSPECT_AFTER
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.queries.tasks import shortest_rest_s
from workqueues.states import TASK

BATCH = 20
TAKEN_BACK = 1000
"""So many files that wait for child brokers own queues take back at a time, where they have room."""
LONGEST_FULL_S = 30.0
"""The longest that a task rests whose queues are full, s. Room that is made ends no such rest, but where it would go to tasks of
lower priority.
"""

SCOUTS_MADE = "its other jobs are made once its first ones, the scouts, have shown what they need"
SCOUTS_REST_S = 3600.0
"""So long a task rests whose scouts are all made; the agent assess ends that."""


class JobMoves:
    """Whether a job moved since the last run of this process: at rest no task whose queues are full is looked at again."""

    def __init__(self) -> None:
        self._last = -1

    def any_since(self) -> bool:
        """So it was asked the last time; at first there is one."""
        before, self._last = self._last, last_change()
        return before != self._last


MOVES = JobMoves()


class KeptSlots:
    """Whether the last run of this process kept idle slots for shares that then had no use for them: the next one keeps none."""

    def __init__(self) -> None:
        self._unused = False

    def unused(self) -> bool:
        """So it was; asked once."""
        unused, self._unused = self._unused, False
        return unused

    def note(self, grants: JobGrants) -> None:
        """At the end of a run: look at once where slots that were kept idle still."""
        self._unused = grants.kept and grants.any_idle()
        if self._unused:
            look("generate")


KEPT = KeptSlots()


@agent("generate")
def generate(run: Run) -> int:
    """Make jobs for every task that has files to use, as the throttler and the room at the queues allow."""
    if MOVES.any_since() and (rest_s := shortest_rest_s(TASK.generating, LONGEST_FULL_S)) is not None:
        look_later("generate", rest_s)  # what moved may have made room for a task that still rests
    throttle = Throttle.begin(run, BATCH)
    try:
        tasks = claim_tasks(run.id, run.claim_s, TASK.generating, BATCH, work="unused inputs", order="share", only=throttle.open)
        if not tasks:
            return 0
        if tasks[0].agent_faults < SUSPECT_AFTER:  # such a one is taken alone
            full = QUEUES_FULL.reason
            tasks = claim_ahead(run.id, run.claim_s, tasks, TASK.generating, full, LONGEST_FULL_S, BATCH)
        queue_ids = dict(ComputingQueue.objects.values_list("name", "id"))
        run_state = GenerateRun(run, tasks, begin(run.now), queue_ids, throttle, stale_feeds(run.now), KEPT.unused())
        try:
            return each(run, tasks, lambda run, task: in_turn(run, task, run_state))
        finally:
            run_state.cycle.decisions.store()
            KEPT.note(run_state.grants)
            if any(run_state.grants.queues()):
                note_round(run_state.last_change)
                look_later("generate", FULL_S)  # pilots take jobs meanwhile, and nobody tells of the room that this makes
            rest_together(run.id, run_state.full, QUEUES_FULL.reason, full_rest_s(tasks[0], throttle.claimable))
            if run_state.full and throttle.claimable > len(tasks) and run_state.grants.any_idle():
                look("generate")  # a slot idles, and other tasks may find room where these did not
    finally:
        throttle.end()


def in_turn(run: Run, task: Task, run_state: GenerateRun) -> int | None:
    """The turn of a claimed task, as `generate_for`; its share has had its own with it."""
    try:
        return generate_for(run, task, run_state)
    finally:
        run_state.grants.had_turn(task.gshare)


def generate_for(run: Run, task: Task, run_state: GenerateRun) -> int | None:
    """Make jobs for one claimed task and give it back: how many. It waits when there are none from any of its masters.

    None: it was not tried. One for which no queue has room is kept, to be given back with the others at the end.
    """
    if run_state.throttle.room(task) == 0:
        give_back_picked(run.id, task.id)
        release(task.id, run.id)
        return None
    if run_state.scouts.get(task.id) == 0:
        retry_all_later(run.id, [task.id], SCOUTS_MADE, SCOUTS_REST_S)
        return None
    if not finds_room(task, run_state):
        run_state.full.append(task.id)
        return None
    if not load(task, run_state):
        return None
    give_back_picked(run.id, task.id)
    if task.work_to == "first":
        take_back(run.id, task.id, TAKEN_BACK, run.who)
    jobs, delays = 0, []
    for dataset in run_state.cycle.requests.batch.masters(task):
        if dataset.status != "ready" or run_state.scouts.get(task.id) == 0:
            continue
        made, delay = jobs_from(task, dataset, run_state)
        run_state.throttle.made(task, made)
        jobs += made
        delays += [delay] if delay else []
        give_back_picked(run.id, task.id)  # the next master takes from the same secondary datasets
    if run_state.scouts.get(task.id) == 0:
        retry_all_later(run.id, [task.id], SCOUTS_MADE, SCOUTS_REST_S)
        return jobs
    delay = min(delays, key=lambda delay: delay.seconds, default=None)
    if jobs or delay is None:
        release(task.id, run.id)
    elif delay is QUEUES_FULL:
        run_state.full.append(task.id)
    else:
        world, decision = run_state.cycle.world, delay.decision
        wait_for_place(run, task.id, delay.reason, delay.seconds, world, decision=decision, pending=delay.pending)
    return None if run_state.stale else jobs


def full_rest_s(task: Task, claimable: int) -> float:
    """How long tasks rest for which no queue has room: the longer the more may be claimed beside them, so that each has its turn.

    `task`: the first of them. One that is suspected of killing runs is taken alone, and rests longest, since each needs a run.
    """
    rest_s, longest_s = FULL_S * max(1, claimable // BATCH), LONGEST_FULL_S / LONGEST_OF_REST
    return longest_s if task.agent_faults >= SUSPECT_AFTER else min(rest_s, longest_s)
