"""Agent assign. Takes tasks assigning. Leaves them ready with a nucleus, or assigning with the reason. Next: generate."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.decision_cycle import Cycle, Decided, begin
from brokerage.queries.asks import Input, chunk_of
from brokerage.queries.chunks import CannotAsk
from brokerage.queries.usable_input import peek
from brokerage.rules.decision.policy_choice import NUCLEUS, Unusable
from brokerage.rules.facts.ask import Chunk
from brokerage.rules.facts.remaining_work import remaining_work
from brokerage.rules.facts.snapshot import Nuclei
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.feed import assign as assign_task
from workqueues.ledger.holds import stay
from workqueues.models import Task
from workqueues.splitters.check import BadPlan

BATCH = 50
NO_QUEUE = "job"
"""The criterion that skips a nucleus whose queues cannot run the jobs."""

LOOKED_AT = 1000
"""Files of a master that tell what its jobs will be like."""


@agent("assign")
def assign(run: Run) -> int:
    """Find a nucleus for every task that waits for one."""
    tasks = claim_tasks(run.id, run.claim_s, ["assigning"], BATCH)
    if not tasks:
        return 0
    cycle = begin(run, tasks, whole=True)
    try:
        return each(run, tasks, lambda run, task: assign_one(run, task, cycle))
    finally:
        cycle.store()


def assign_one(run: Run, task: Task, cycle: Cycle) -> bool:
    """Decide on the nucleus of one claimed task; in a grid without nuclei the outputs stay where they are made."""
    if not any(site.columns["nucleus"] for site in cycle.world.grid.sites):
        assign_task(run.id, task.id, "", run.who, "the grid has no nucleus: outputs stay where they are made")
        return True
    try:
        decided = _decide(task, cycle)
    except (Unusable, BadPlan, CannotAsk) as error:
        wait_s = gdpconfig.value("taskbrokerage", "PENDING_NUCLEUS", vo=task.vo)
        stay(run.id, task.id, str(error), wait_s)
        return True
    decision = decided.decision
    if decision.outcome == "assign":
        nucleus = decision.chosen[0].name
        cycle.store()
        assign_task(run.id, task.id, nucleus, run.who, f"nucleus {nucleus}")
        rw = _work(task, cycle)
        cycle.added.append({"nucleus": nucleus, "share": task.gshare, "priority": task.current_priority, "rw": rw})
    else:
        stay(run.id, task.id, _reason(task, cycle, decided), decision.wait_s)
    return True


def _reason(task: Task, cycle: Cycle, decided: Decided[Nuclei]) -> str:
    """Why a task has no nucleus; where that is for its jobs, what the queues say of them."""
    decision = decided.decision
    policy = cycle.policy(task, NUCLEUS)
    reason = cycle.shortfall(policy, decided)
    if any(policy.criteria[row].label == NO_QUEUE for row in decision.first.tolist() if row >= 0):
        reason += f"; {cycle.where_able(task, decided.ask, decided.own)}"
    return reason


def _decide(task: Task, cycle: Cycle) -> Decided[Nuclei]:
    """Raises NoPolicy, NoGenerator, BadPlan, CannotAsk."""
    policy = cycle.policy(task, NUCLEUS)
    inputs = cycle.batch.whole_input(task)
    own = cycle.batch.own(task, inputs, cycle.world.storages)
    ask = cycle.ask(task, _whole(task, cycle, inputs))
    return cycle.decide_nucleus(policy, ask, cycle.hinted(task, ask, own), f"{task.id}.{task.epoch}")


def _whole(task: Task, cycle: Cycle, inputs: list[Input]) -> Chunk:
    """All the input of a task, and jobs like those that will be made of its first files."""
    masters = cycle.batch.masters(task)
    there = peek(task, masters[0], LOOKED_AT) if masters else None
    jobs = there.smallest() if there else ()
    return chunk_of(inputs, jobs, there.files) if there and jobs else Chunk()


def _work(task: Task, cycle: Cycle) -> float:
    """What the task brings to its nucleus, HS06 s."""
    masters = cycle.batch.masters(task)
    events, used = (sum(n or 0 for n in column) for column in ([d.n_events for d in masters], [d.n_events_used for d in masters]))
    return remaining_work(events, used, task.cpu_time, task.cpu_time_unit)
