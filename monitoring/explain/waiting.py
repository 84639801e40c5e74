"""What a task waits for, in words, whatever state it is in. Pure: the facts come from the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from monitoring.queries.agents import AgentRow
from monitoring.queries.decisions import DecisionRow
from monitoring.queries.task import Relative
from monitoring.queries.waiting import HeldFiles, QueueLoad
from monitoring.wording import NEXT_AGENT, TASK
from workqueues.states import TASK as MACHINE

AFTER = timedelta(seconds=30)
"""Longest time between a decision and the task being put aside for it."""
SEE_WHY = "; see why"
"""How reasons end that agents write where a decision tells more."""

COMMANDED = {"aborting": "killed", "finishing": "finished", "toretry": "retried"}


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that a task waits for. `kind`: what it is about; `task_id`: the task to look at, where it is another one."""

    kind: str
    said: str
    tone: str = "wait"
    task_id: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a task: its own columns, its parent, what is held, where its jobs are, and who works on its state next.

    `verdict`: that of the newest decision, where it is why the task waits. `throttled`: why no jobs are made for its share or
    work queue, where that is so.
    """

    status: str
    error_dialog: str
    old_status: str
    throttled_time: datetime | None
    command_by: str
    parent: Relative | None
    held: HeldFiles
    loads: Sequence[QueueLoad]
    agent: AgentRow | None
    verdict: str = ""
    throttled: str = ""


def headline(standing: Standing) -> str:
    """The one line: the verdict of a decision where the task waits for one, else its reason, else what its state means."""
    if standing.verdict:
        return standing.verdict
    if standing.throttled:
        return f"{standing.status.capitalize()}: {standing.throttled}"
    if standing.error_dialog:
        return f"{standing.status.capitalize()}: {standing.error_dialog}"
    said = TASK[standing.status].help
    return f"{standing.status.capitalize()}: {said[0].lower()}{said[1:]}"


def speaks_for(status: str, status_since: datetime, decision: DecisionRow) -> bool:
    """Whether the newest decision is why the task waits: it found nobody, and the task was put aside right after it."""
    if decision.outcome != "pending" or status not in MACHINE.undecided:
        return False
    return status != "pending" or abs(status_since - decision.last_at) < AFTER


def reasons(standing: Standing) -> list[Reason]:
    """Everything that the task waits for, the most telling first."""
    if standing.status in MACHINE.final:
        return []
    return [*_own(standing), *_parent(standing), *_held(standing), *_jobs(standing), *_agent(standing)]


def _own(standing: Standing) -> list[Reason]:
    said = []
    if standing.throttled:
        said.append(Reason("throttler", _sentence(standing.throttled)))
    if standing.status in COMMANDED:
        who = standing.command_by or "somebody"
        live = sum(load.waiting + load.held for load in standing.loads)
        jobs = f"; it waits until {_jobs_said(live)} gone" if live else ""
        said.append(Reason("command", f"{who} asked that the task be {COMMANDED[standing.status]}{jobs}.", "off"))
    elif standing.verdict:
        said.append(Reason("brokerage", f"{_sentence(standing.error_dialog.removesuffix(SEE_WHY))} The decision below says why."))
    elif standing.status == "throttled" and standing.throttled_time is not None:
        until = f"{standing.throttled_time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        said.append(Reason("throttled", f"It makes no new jobs until {until}, because too many of its tries failed."))
    elif standing.error_dialog:
        said.append(Reason("reason", _sentence(standing.error_dialog)))
    if standing.status == "pending" and standing.old_status:
        said.append(Reason("state", f"Once that is over, it is {standing.old_status} again.", "idle"))
    return said


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else "No candidate fits."


def _jobs_said(n: int) -> str:
    return "1 job is" if n == 1 else f"{n:,} jobs are"


def _parent(standing: Standing) -> list[Reason]:
    parent = standing.parent
    if parent is None or parent.status in MACHINE.final:
        return []
    return [Reason("parent", f"Its parent, task {parent.id} ({parent.task_name}), is still {parent.status}.", "wait", parent.id)]


def _held(standing: Standing) -> list[Reason]:
    if not standing.held.n:
        return []
    files = "1 input file is" if standing.held.n == 1 else f"{standing.held.n:,} input files are"
    return [Reason("files", f"{files} held back: {standing.held.example}.")]


def _jobs(standing: Standing) -> list[Reason]:
    """Jobs that wait for pilots at queues where none asks."""
    if standing.status in COMMANDED:
        return []
    said = []
    for load in standing.loads:
        if not load.waiting:
            continue
        jobs = "1 job waits" if load.waiting == 1 else f"{load.waiting:,} jobs wait"
        if not load.pilots:
            said.append(Reason("jobs", f"{jobs} at {load.queue}, where no pilot has asked for work in the last minutes.", "bad"))
        elif load.status != "online":
            said.append(Reason("jobs", f"{jobs} at {load.queue}, which is {load.status}."))
        else:
            pilots = "1 pilot is" if load.pilots == 1 else f"{load.pilots:,} pilots are"
            said.append(Reason("jobs", f"{jobs} at {load.queue} for a pilot to be free; {pilots} there.", "idle"))
    return said


def _agent(standing: Standing) -> list[Reason]:
    """The agent whose turn it is, where something is wrong with it."""
    agent = standing.agent
    if agent is None or agent.health == "well":
        return []
    fault = {
        "off": "is switched off",
        "failing": "fails at the moment",
        "late": "is late",
        "never": "has not run yet",
    }[agent.health]
    return [Reason("agent", f"The agent {agent.name}, whose turn it is, {fault}.", "bad")]


def agent_in_turn(status: str, agents: Sequence[AgentRow]) -> AgentRow | None:
    """The agent that works on a task in this state next."""
    name = NEXT_AGENT.get(status)
    return next((agent for agent in agents if agent.name == name), None)
