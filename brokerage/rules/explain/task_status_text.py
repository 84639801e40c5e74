"""Where a task stands, in words, whatever state it is in: one line, and everything that it waits for.

The command line, REST and the pages say these same sentences. Pure: the facts come from `brokerage.queries.task_status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from broker_site.foundation.agency.duties import AgentDuty, Health
from workqueues.rules.elements.task_elements import NO_ELEMENTS, TaskElements
from workqueues.rules.jobs.open_inputs import still_open
from workqueues.rules.task.commands import COMMANDS
from workqueues.rules.task.state_sentences import TASK_SENTENCES
from workqueues.states import TASK

COMMANDED = {command.target: command.during for command in COMMANDS.values() if command.target in TASK.commanded}
"""States in which the command agent carries out what somebody asked for."""

AGENT_FAULTS = {"off": "is switched off", "failing": "fails at the moment", "late": "is late", "never": "has not run yet"}


@dataclass(frozen=True, slots=True)
class ParentTask:
    """The task whose outputs this one reads."""

    id: int
    task_name: str
    status: str


@dataclass(frozen=True, slots=True)
class SuspectFiles:
    """Ready input files that are not given to jobs: how many, and the reason of one of them."""

    n: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ThrottleCause:
    """A cause for which the task is throttled, its numbers, and when it ends by itself, if it does."""

    cause: str
    why: str
    until: datetime | None = None

    def sentence(self, now: datetime | None = None) -> str:
        """What holds, and until when; a time that is over by `now` is not told."""
        end = "while this holds"
        if self.until is not None and not _over(self.until, now):
            end = f"until {_stamp(self.until)}, or {end}"
        return f"It makes no new jobs {end}: {self.why.rstrip('.')}."


@dataclass(frozen=True, slots=True)
class PausedFiles:
    """Input files that are given to jobs later: how many (`more`: at least), and when the next is due."""

    n: int = 0
    due: datetime | None = None
    more: bool = False

    def sentence(self, wait: str, next_step: str) -> str:
        """How many wait (follows "waits" and "wait"), and when the next step is due; empty without any."""
        if not self.n or self.due is None:
            return ""
        files = f"{'At least ' if self.more else ''}{_count(self.n, 'input file waits', 'input files wait')}"
        return f"{files} {wait}; {next_step} due at {self.due.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC."


MOST_NAMED = 5
"""Queues that a sentence names."""


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Live jobs of a task at one computing queue, those that wait and those under a lease, and the pilots seen there lately.

    `delivering`: jobs whose outputs are on their way; `held`: those of the waiting that are held back, as their owner has enough
    running. `queues`: how many it stands for, where jobs are open to several; `status` is then online, or what keeps all of them.
    """

    queue: str
    status: str
    waiting: int
    leased: int
    pilots: int
    delivering: int = 0
    held: int = 0
    queues: int = 1


@dataclass(frozen=True, slots=True)
class SiteMerge:
    """Merging at one site: jobs whose outputs wait for it or are just being merged, live merge jobs, and other live jobs of the
    task there, which the waiting ones wait for. `block`: only those that were made together are waited for; `served`: whether a
    job can run there now.
    """

    site: str
    waiting: int
    merging: int = 0
    merges: int = 0
    others: int = 0
    block: bool = False
    served: bool = True

    def reasons(self) -> Iterator[Reason]:
        """What is waited for."""
        jobs = _count(self.waiting, "job waits", "jobs wait")
        if self.waiting and not self.served:
            yield Reason("merge", f"{jobs} to be merged at {self.site}, where no job can run now.", "bad")
        elif self.waiting and self.others:
            ends = "other job ends" if self.others == 1 else f"{self.others:,} other jobs end"
            until = f"those that were made with {'it' if self.waiting == 1 else 'them'} end" if self.block else f"its {ends}"
            yield Reason("merge", f"{jobs} to be merged at {self.site} until {until}.", "idle")
        elif self.waiting:
            yield Reason("merge", f"{jobs} to be merged at {self.site}; the merge job is made next.", "idle")
        if self.merging:
            merged = _count(self.merging, "job is", "jobs are")
            yield Reason("merge", f"{merged} being merged at {self.site}, by {_count(self.merges, 'job', 'jobs')}.", "idle")


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Jobs of a task that ended with one error code: how many, the commonest line of their messages, the newest of them, and
    of how many the files are not tried again, by a retry rule.
    """

    code: str
    n_jobs: int
    message: str
    job_id: int
    n_not_retried: int = 0

    @property
    def not_retried(self) -> str:
        """That a retry rule ended tries; empty where none did."""
        if not self.n_not_retried:
            return ""
        return f"the files of {_count(self.n_not_retried, 'job', 'jobs')} are not tried again, by a retry rule"


@dataclass(frozen=True, slots=True)
class JobErrors:
    """Errors among the newest ended jobs of a task, the most frequent code first; `n_ended`: how many jobs were looked at."""

    groups: Sequence[ErrorGroup] = ()
    n_ended: int = 0

    def sentences(self) -> list[str]:
        """One for each code."""
        return [
            f"{g.n_jobs:,} of {_count(self.n_ended, 'job', 'jobs')} ended with {g.code}{f': {g.message}' if g.message else ''}"
            f"{f'; {g.not_retried}' if g.not_retried else ''}"
            for g in self.groups
        ]


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """What is known of where a task stands. `reason`: what the last agent left with it; `throttle`: why no jobs are made for its
    share or work queue, where that is so; `agent`: who works on it next, with that agent's health; `errors` of its jobs;
    `merges`: what waits to be merged, by site; `open_inputs`: datasets of which new files are used, whether or
    not these are open where the task is `held_up`; `elements`: its parts that child brokers pull, or the part of the task of a
    parent that it does; `now`: when this was so.
    """

    status: str
    reason: str = ""
    old_status: str = ""
    next_look_at: datetime | None = None
    throttled_until: datetime | None = None
    throttles: Sequence[ThrottleCause] = ()
    command_by: str = ""
    throttle: str = ""
    parent: ParentTask | None = None
    suspect: SuspectFiles = SuspectFiles()
    failed: PausedFiles = PausedFiles()
    partnerless: PausedFiles = PausedFiles()
    loads: Sequence[QueueLoad] = ()
    agent: tuple[AgentDuty, Health] | None = None
    errors: JobErrors = JobErrors()
    merges: Sequence[SiteMerge] = ()
    open_inputs: Sequence[str] = ()
    held_up: bool = False
    elements: TaskElements = NO_ELEMENTS
    now: datetime | None = None

    @property
    def next_look(self) -> str:
        """When an agent looks at it again; from that time on it is due. Empty where no time is set."""
        if self.next_look_at is None:
            return ""
        at = _stamp(self.next_look_at)
        return f"next look due now, since {at}" if _over(self.next_look_at, self.now) else f"next look at {at}"

    def to_document(self) -> dict[str, Any]:
        """As JSON: the line, and what the task waits for."""
        return {
            "status": self.status,
            "headline": headline(self),
            "next_look_at": self.next_look_at,
            "next_look": self.next_look,
            "throttles": [asdict(cause) for cause in self.throttles],
            "reasons": [{"kind": r.kind, "message": r.message, "task_id": r.task_id} for r in reasons(self)],
            "job_errors": [asdict(group) for group in self.errors.groups],
            "elements": self.elements.to_document(),
        }


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that a task waits for. `kind`: what it is about; `task_id`: the task to look at, where it is another one."""

    kind: str
    message: str
    tone: str = "wait"
    task_id: int | None = None


def headline(task: TaskStatus) -> str:
    """The one line: why no jobs are made, else the reason that was left with the task, else what its state means.

    A task all of whose jobs wait does not run, whatever its state is called: then the line is what they wait for. So it is where
    some wait for what does not come by itself. One that ended badly tells with which error most of its jobs did.
    """
    if task.status == "paused":
        return f"Paused by {task.command_by or 'somebody'}: {task.reason or 'it goes on when it is resumed'}"
    leased = any(load.leased for load in task.loads)
    stuck = next((r.message for r in [*_jobs(task), *_paused(task)] if r.tone == "bad" or not leased), "")
    text = task.throttle or task.reason or stuck or _meaning(task)
    if task.status in TASK.incomplete and task.errors.groups:
        text = f"{text.rstrip('.')}; {task.errors.sentences()[0]}"
    return f"{task.status.capitalize()}: {text}"


def _meaning(task: TaskStatus) -> str:
    """What its state means, with jobs that ended badly not what it means without any; of one whose work child brokers do, how far
    its elements are.
    """
    if task.status in TASK.generating and (course := task.elements.course()):
        return f"{course}; jobs of its own have been made, too" if task.loads else course
    meaning = TASK_SENTENCES.get(task.status, "This state is not known.")
    if task.errors.groups:
        meaning = meaning.partition(". ")[0]
    return f"{meaning[0].lower()}{meaning[1:]}"


def reasons(task: TaskStatus) -> list[Reason]:
    """Everything that the task waits for, the most telling first; nothing once it has ended."""
    if task.status in TASK.final:
        return []
    of_elements = [Reason("elements", line, "idle") for line in task.elements.lines()]
    beside = [*_suspect(task), *_open(task), *_paused(task), *of_elements, *_jobs(task), *_agent(task)]
    return [*_task(task), *_parent(task), *beside]


def _task(task: TaskStatus) -> list[Reason]:
    """What the task's own columns say."""
    lines = []
    if task.throttle:
        lines.append(Reason("throttler", _sentence(task.throttle)))
    if task.status in COMMANDED:
        live = sum(load.waiting + load.leased + load.delivering for load in task.loads)
        jobs = f"; it waits until {_count(live, 'job is', 'jobs are')} gone" if live else ""
        who = task.command_by or "somebody"
        lines.append(Reason("command", f"It is {COMMANDED[task.status]}, as {who} asked{jobs}.", "off"))
    elif task.status == "paused":
        comment = f": {task.reason.rstrip('.')}" if task.reason else ""
        lines.append(Reason("command", f"{task.command_by or 'Somebody'} paused it{comment}.", "off"))
        lines.append(Reason("state", f"Once it is resumed, it is {task.old_status} again.", "idle"))
    elif task.status == "throttled" and task.throttles:
        lines += [Reason("throttled", cause.sentence(task.now)) for cause in task.throttles]
    elif task.status == "throttled" and task.throttled_until is not None:
        until = _stamp(task.throttled_until)
        if _over(task.throttled_until, task.now):
            lines.append(Reason("throttled", f"Too many of its tries failed; since {until} it may make new jobs again."))
        else:
            lines.append(Reason("throttled", f"It makes no new jobs until {until}, because too many of its tries failed."))
    elif task.reason:
        lines.append(Reason("reason", _sentence(task.reason)))
    if task.status == "pending" and task.old_status:
        lines.append(Reason("state", f"Once that is over, it is {task.old_status} again.", "idle"))
    return lines


def _parent(task: TaskStatus) -> list[Reason]:
    parent = task.parent
    if parent is None or parent.status in TASK.final:
        return []
    return [Reason("parent", f"Its parent, task {parent.id} ({parent.task_name}), is still {parent.status}.", "wait", parent.id)]


def _suspect(task: TaskStatus) -> list[Reason]:
    if not task.suspect.n:
        return []
    return [Reason("files", f"{_count(task.suspect.n, 'input file is', 'input files are')} held back: {task.suspect.reason}.")]


def _open(task: TaskStatus) -> list[Reason]:
    """Inputs to which files may still come, unless that is what the task says already."""
    said = still_open(task.open_inputs, held_up=task.held_up) if task.open_inputs else ""
    return [Reason("input", _sentence(said), "idle")] if said and said not in task.reason else []


def _paused(task: TaskStatus) -> list[Reason]:
    """Files whose last try failed, and files that go only with others that are held back."""
    if task.status in COMMANDED:
        return []
    sentences = {
        "retry": task.failed.sentence("for another try after one that failed", "the next is"),
        "partner": task.partnerless.sentence("for a partner in another dataset that is held back", "the next look is"),
    }
    return [Reason(kind, sentence) for kind, sentence in sentences.items() if sentence]


def _jobs(task: TaskStatus) -> list[Reason]:
    """Jobs that wait to be merged, site by site, and for pilots, queue by queue."""
    if task.status in COMMANDED:
        return []
    lines = [reason for merge in task.merges for reason in merge.reasons()]
    unmerged = sum(merge.waiting + merge.merging for merge in task.merges)
    if delivering := sum(load.delivering for load in task.loads) - unmerged:
        jobs = _count(delivering, "job has ended and waits", "jobs have ended and wait")
        lines.append(Reason("jobs", f"{jobs} until the outputs are where they are collected.", "idle"))
    for load in task.loads:
        if load.held:
            held = _count(load.held, "job is", "jobs are")
            lines.append(Reason("jobs", f"{held} held back at {load.queue} until fewer jobs of the owner run.", "wait"))
        free = load.waiting - load.held
        jobs = _count(free, "job waits", "jobs wait")
        if not free:
            continue
        if load.status != "online":
            which = "which is" if load.queues == 1 else "which are all"
            lines.append(Reason("jobs", f"{jobs} at {load.queue}, {which} {load.status}.", "bad"))
        elif load.pilots or load.leased:
            pilots = f"; {_count(load.pilots, 'pilot is', 'pilots are')} there" if load.pilots else ""
            suits = "it" if free == 1 else "them"
            lines.append(Reason("jobs", f"{jobs} at {load.queue} for a free pilot that suits {suits}{pilots}.", "idle"))
    return [*lines, *_unserved(task.loads)]


def _unserved(loads: Sequence[QueueLoad]) -> Iterator[Reason]:
    """Jobs that wait where no pilot was seen: those of single queues in one line, as there may be many such queues."""
    waiting = [load for load in loads if load.status == "online" and load.waiting > load.held]
    idle = [load for load in waiting if not load.pilots and not load.leased]
    for alike in ([load for load in idle if load.queues == 1], *([load] for load in idle if load.queues > 1)):
        if alike:
            jobs = _count(sum(load.waiting - load.held for load in alike), "job waits", "jobs wait")
            more = len(alike) - MOST_NAMED
            names = ", ".join(load.queue for load in alike[:MOST_NAMED])
            names += f" and {_count(more, 'more queue', 'more queues')}" if more > 0 else ""
            yield Reason("jobs", f"{jobs} at {names}, where no pilot was seen in the last minutes.", "bad")


def _agent(task: TaskStatus) -> list[Reason]:
    """Whose turn it is, and what is wrong with it. While jobs live it is theirs: there may be no file left for more."""
    if task.agent is None:
        return []
    duty, health = task.agent
    if fault := AGENT_FAULTS.get(health):
        return [Reason("agent", f"The agent {duty.name}, whose turn it is, {fault}.", "bad")]
    if task.status in TASK.generating and (task.loads or task.elements.taken):
        return []
    return [Reason("agent", f"The agent {duty.name} is next: it {duty.what_for}.", "idle")]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _over(at: datetime, now: datetime | None) -> bool:
    return now is not None and at <= now


def _stamp(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _count(n: int, one: str, many: str) -> str:
    return f"1 {one}" if n == 1 else f"{n:,} {many}"
