"""What pilots call for a job: the verb that matches. Plain view, since every job passes here."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.pace import Pace
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.gdpconfig.values import Config
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.sql.prepared import was_undone
from brokerage.api import pilot_operations
from brokerage.api.joint_verbs import Joint, Wish, jointly
from brokerage.api.messages import BROKEN_RULES, job_token, json_answer, message_of
from brokerage.api.waiting_asks import WaitingAsk, asked_again, may_wait
from brokerage.ledger.handing_out import hand_out, handed_out_before
from brokerage.ledger.last_asks import LAST_ASKS
from brokerage.ledger.lease import Ask, HeldAtMost
from brokerage.ledger.limited_handing_out import SiteTurn
from brokerage.ledger.pilots import end_idling, note_vain_ask
from brokerage.ledger.site_room import SITE_ROOM
from brokerage.queries.dispatch_policies import policy_fault, policy_of
from brokerage.queries.job_document import LeasedJob, Untold
from brokerage.queries.pilots import PILOT_CORES, QUEUES, PilotQueue, held_by
from brokerage.queries.submission import NONE
from brokerage.queries.waiting import WAITING, AskedQueue
from brokerage.rules.dispatch.dispatch_policy import FIRST_JOB, JobWindow
from brokerage.rules.dispatch.groups import Credential, served, sharing_groups_of
from brokerage.rules.dispatch.pilot_messages import FullAsk, JobRequest, read_ask
from brokerage.rules.dispatch.queue_asks import EndedAsk
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.resource import Amounts, Described, Description, is_any, place_of
from brokerage.rules.dispatch.timeouts import lease_s
from brokerage.rules.dispatch.waiting_list import WaitingQueue
from brokerage.rules.dispatch.why_nothing import Nothing
from brokerage.rules.facts.snapshot import CORE_POWER

ASKS = Joint(hand_out, key=lambda ask: ask.pilot)
MATCHING, FINISHING = Pace(), Pace()
"""A pilot whose job finished gets its ask back, as often as FINISHING allows: slots with very short jobs are kept busy."""
DESCRIBED = Described()
UNKNOWN_S = 2**31 - 1
"""CPU time of a resource of which nobody knows how much it has."""
NOTHING, UNKNOWN = "X-Nothing", "X-Unknown-Fields"
"""Headers of answers: why there is nothing, and fields of the ask that are not known."""
TRIES = ((False, False), (True, False), (False, True))
"""How task queues are gone through: as they are known, read anew, and then without choosing among the oldest jobs, where that was
done.
"""


@pilot_operations.MATCH
@require_POST
@requires("pilot:match")
def match(request: HttpRequest) -> HttpResponse:
    """A pilot asks for a job, or for several: 200 with what it gets, or 204 when nothing suits it."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    if (pilot_id := principal.subject) is None:
        raise Refused(403, "No pilot", "The token names no pilot.")
    if not (again := asked_again(request)):
        check_pace(MATCHING, principal)
    ask, cores = message_of(request, read_ask), PILOT_CORES.of(pilot_id)
    queue = QUEUES.named(principal.queue)
    if cores is not None and ask.request.cores > cores:
        _too_many_cores(ask.request.cores, cores)
    if cores is None or queue is None:
        return nothing_now(reason="queue" if queue is None else "")
    if ask.request.job is not None:
        return submitted_job(principal, pilot_id, ask.request)
    most = HeldAtMost(cores, gdpconfig.value("dispatch", "LEASES_PER_SLOT"))
    pilot_match = PilotMatch(principal, pilot_id, queue, ask, resource_of(principal, queue, ask), most)
    pilot_match.again = again
    if not queue.hands_out:
        note = "no storage that it writes to is there" if queue.storage_down else f"its status is {queue.status}"
        return pilot_match.in_vain(Nothing("queue", note=note), 0.0)
    if queue.submission != NONE:
        return pilot_match.in_vain(Nothing("queue", note="its jobs are submitted, each with a pilot of its own"), 0.0)
    if pilot_match.turn.by_kind or (best := pilot_match.best()) is None:
        return pilot_match.tell([])
    return jointly(request, Wish(ASKS, best, pilot_match.tell, pilot_match.failed))


def submitted_job(principal: Principal, pilot_id: UUID, request: JobRequest) -> HttpResponse:
    """The job that this pilot was submitted for, however often it asks; to any other pilot, and once it is over, nothing."""
    held = handed_out_before(pilot_id, request.request)
    told = next((_told(job, principal.credential or 0) for job in held if job.document["id"] == request.job), None)
    return nothing_now(reason="taken") if told is None else json_answer({"job": told})


class PilotMatch:
    """One ask of a pilot, from its resource to its jobs."""

    again = False
    """Whether it was held, and is asked anew."""

    def __init__(
        self, principal: Principal, pilot_id: UUID, queue: PilotQueue, ask: FullAsk, resource: Resource, most: HeldAtMost
    ) -> None:
        self.pilot_id, self.queue, self.ask, self.resource, self.most = pilot_id, queue, ask, resource, most
        self._credential = principal.credential or 0
        self._tried: WaitingQueue | None = None
        self._held: tuple[int, int] | None = None
        self._began = time.perf_counter()
        # Where no name is `any` the resource has just those that the pilot told.
        ces = resource.grid_ces if resource.grid_ces is not None else {ce for ce in ask.resource.grid_ce if not is_any([ce])}
        self.turn = SiteTurn(queue.site, ces)
        self.asks = self._asks()

    def _asks(self) -> Generator[Ask, None, None]:
        """For each task queue that suits what is asked there, best first; who asks for the next says that one had no job."""
        config, request = gdpconfig.current(), self.ask.request
        watcher, asked = config.component("watcher", app="pandaserver"), self._asked(config)
        for fresh, any_job in TRIES:
            for waiting, window in WAITING.offers(asked, self.resource, hits=self.turn.hits, fresh=fresh):
                if not (n := self.turn.allowed(request.n or 1)):
                    return
                if self.turn.hits and waiting.at_limit(self.turn.hits):
                    continue  # it was met since the list was made
                if (any_job and not window.size) or (waiting.is_open and self.queue.status != "online"):
                    continue  # open jobs are new work, which a queue that is drained or tested gets none of
                self._tried = waiting
                lease = lease_s(waiting.label, self.queue.workflow, watcher)
                yield self._ask(waiting, FIRST_JOB if any_job else window, lease, n)
                if not window.size and not self.turn.held and self._full(max(waiting.requirement.cores, 1)) is None:
                    WAITING.drained(self.queue.id, waiting)

    def _ask(self, waiting: WaitingQueue, window: JobWindow, lease: float, n: int) -> Ask:
        """For up to `n` jobs of a task queue."""
        first = (-waiting.priority, waiting.job_id) if not window.size else (-window.priority, 0)
        place = (self.queue.id, waiting.storage, waiting.own_datasets) if waiting.is_open else ()
        return Ask(waiting.id, self.pilot_id, self.ask.request.request, lease, self.most, n, first, window.size, *place)

    def _asked(self, config: Config) -> AskedQueue:
        return AskedQueue(self.queue.id, partial(policy_of, self.queue.name), config.component("dispatch"))

    def tell(self, got: list[LeasedJob] | Untold) -> HttpResponse:
        """The answer to the ask, with the jobs that it got; without, the other task queues are tried."""
        request, full = self.ask.request, None
        jobs = self._jobs_of(got)
        try:
            if self._tried is None and (best := next(self.asks, None)) is not None:
                jobs = self._hand_out(best)  # no other ask was carried out together with it
            before = [] if jobs else handed_out_before(self.pilot_id, request.request)
            if not jobs and not before:
                full = self._full(1) if self._tried is not None else None
                jobs = [] if full else next(filter(None, map(self._hand_out, self.asks)), [])
        finally:
            self.got(sum(job.is_new for job in jobs))
        if not (jobs := jobs or before):
            seconds = min(request.wait_s, gdpconfig.value("dispatch", "LONG_POLL"))
            return self.in_vain(full or self._why(), seconds)
        if self._tried is not None and any(job.task_queue != self._tried.id for job in jobs):  # got by the same request before
            self._tried = None
        self._note(jobs=[job.document["id"] for job in jobs])
        told = [_told(job, self._credential) for job in jobs]
        return self._answer({"job": told[0]} if request.n is None else {"jobs": told})

    def best(self) -> Ask | None:
        """The ask for the task queue that suits best. Its site has its room back where none is found for a fault."""
        try:
            return next(self.asks, None)
        except Exception:
            self._end(0)
            raise

    def failed(self, fault: Exception) -> None:
        """What was tried, alone or together with other asks, failed: the site has its room back, unless jobs may have been handed
        out all the same.
        """
        if not was_undone(fault):
            self.turn.keep()
        self._end(0)

    def _end(self, n: int) -> None:
        """Nothing more is asked for."""
        self._forget_asks()
        self.turn.end(n)

    def _forget_asks(self) -> None:
        """They hold what they are a part of: such a ring of thirty objects would stay until the collector of garbage comes."""
        self.asks.close()

    def _full(self, cores: int) -> Nothing | None:
        """What to say where the pilot holds so much that it gets no job with so many cores."""
        if self._held is None:
            self._held = held_by(self.pilot_id)
        n, held = self._held
        if self.most.leases and n >= self.most.leases:
            return Nothing("pilot_full", note=f"it holds {n} of at most {self.most.leases}")
        if self.most.cores - held < cores:
            return Nothing("pilot_full", note=f"its jobs have {held} of its {self.most.cores} cores")
        return None

    def _note(self, why: Nothing | None = None, jobs: Sequence[int] = ()) -> None:
        """The ask has ended so. One that waits has ended in vain before, and is told again only if it gets jobs."""
        if self.again and why is not None:
            return
        took_ms = (time.perf_counter() - self._began) * 1000
        tried = self._tried if jobs else None
        vo, task_queue = (tried.requirement.vo, tried.id) if tried else ("", 0)
        ended = EndedAsk(time.time(), self.pilot_id, self.resource, jobs, why, vo, task_queue, self.ask.unknown, took_ms)
        LAST_ASKS.note(self.queue.id, ended)

    def _answer(self, told: dict[str, Any]) -> HttpResponse:
        """With the fields of the ask that are not known."""
        return with_unknown(json_answer(told | {"unknown": list(unknown)} if (unknown := self.ask.unknown) else told), unknown)

    def got(self, n: int) -> None:
        """The task queue asked last gave so many jobs: its unit has them, and its site the room back that they do not take."""
        self._end(n)
        if n and self._tried is not None:
            power = self.queue.core_power or CORE_POWER
            WAITING.handed_out(self._tried, n * max(self._tried.requirement.cores, 1) * power)

    def _hand_out(self, ask: Ask) -> list[LeasedJob]:
        """What an ask gets of the task queue that it is about."""
        if self._tried is None:
            return []
        try:
            got = self.turn.hand_out(ask, self._tried)
        except Exception as fault:
            self.failed(fault)
            raise
        return self._jobs_of(got)

    def _jobs_of(self, got: list[LeasedJob] | Untold) -> list[LeasedJob]:
        """The jobs that it got; raises why they cannot be told, and room that they do not take goes back."""
        if not isinstance(got, Untold):
            return got
        if got.used:
            self.turn.keep()
        self._end(0)
        raise got.fault

    def _why(self) -> Nothing:
        """Why there was nothing, with the limits in words."""
        if self.turn.no_room:
            return Nothing("limits", limits=[self.turn.why_no_room()])
        why = WAITING.why(self.queue.id, self.resource, hits=self.turn.hits, closely=self.ask.request.explain)
        if why.reason == "taken" and self._tried is not None and (full := self._full(self._tried.requirement.cores)):
            return full
        if vo := self._without_policy(why):
            return Nothing("policy", note=policy_fault(self.queue.name, vo), vo=vo)
        if why.reason != "limits":
            return why
        told, wait_s = self.turn.limits(why.limits)
        return replace(why, limits=told, wait_s=wait_s)

    def _without_policy(self, why: Nothing) -> str:
        """The VO whose jobs would suit if its dispatch policy were there; empty: none."""
        asked = self._asked(gdpconfig.current())
        if why.reason == "limits":
            return why.vo if why.vo and asked.policy_of(why.vo) is None else ""
        return WAITING.without_policy(asked, self.resource) if why.reason == "taken" else ""

    def in_vain(self, why: Nothing, seconds: float) -> HttpResponse:
        """Nothing for the pilot, which may be answered so many seconds later."""
        self._forget_asks()
        request = self.ask.request
        again_s = seconds if request.last else seconds + gdpconfig.value("dispatch", "POLL")
        note_vain_ask(self.pilot_id, self.queue.id, self.resource, again_s, leaves=request.last)
        self._note(why)
        answer = self._nothing(why)
        waits = WaitingAsk(self.queue.id, seconds, self._credential, partial(end_idling, [self.pilot_id]))
        return may_wait(answer, waits) if seconds else answer

    def _nothing(self, why: Nothing) -> HttpResponse:
        """The answer to an ask in vain: 204, or 200 with the reason where the pilot asked for it."""
        if not self.ask.request.explain:
            return with_unknown(nothing_now(reason=why.reason), self.ask.unknown)
        told: dict[str, Any] = {"job": None} if self.ask.request.n is None else {"jobs": []}
        return nothing_now(self._answer({**told, "nothing": why.document()}), why.reason)


def resource_of(principal: Principal, queue: PilotQueue, ask: FullAsk) -> Resource:
    """What the pilot offers: what it says, within what its credential allows, and for what it leaves out its queue.

    It serves the queue and site of its enrolment, wherever it says that it is.
    """
    request, said, config = ask.request, ask.resource, gdpconfig.current()
    credential = credential_of(principal)
    groups = sharing_groups_of(config.component("dispatch", vo=principal.vo)["GROUPS"])
    if credential.private:
        groups &= frozenset((credential.owner_group,))  # it may run the jobs of its own group, not those of one that it names
    strict = config.component("dispatch")["STRICT_PLATFORM"]
    if (cpu_time_s := request.cpu_time_s) is None:
        cpu_time_s = (request.walltime_s or int(queue.maxtime)) * request.cores or UNKNOWN_S
    return DESCRIBED.resource(
        (said, request.cores, principal.vo, credential, groups, strict),
        lambda: _description(principal, ask, groups, strict=strict),
        Amounts(request.cores, request.memory_mb, request.disk_mb, request.walltime_s, cpu_time_s),
        place_of(queue.name, queue.site, SITE_ROOM.stations(queue.site)),
    )


def _description(principal: Principal, ask: FullAsk, groups: frozenset[str], *, strict: bool) -> Description:
    """What the pilot offers beside the amounts, wherever it is."""
    said, serves = ask.resource, served(credential_of(principal), ask.resource.owner, ask.resource.owner_group, groups)
    return Description(
        vo=principal.vo,
        grid_ces=said.grid_ce,
        platforms=said.platform,
        pilot_types=said.pilot_type,
        job_types=said.job_type,
        tags=said.tags,
        required_tags=said.required_tags,
        banned_sites=said.banned_sites,
        banned_grid_ces=said.banned_grid_ces,
        banned_platforms=said.banned_platforms,
        banned_job_types=said.banned_job_types,
        banned_tags=said.banned_tags,
        setup=said.setup,
        owners=serves.owners,
        owner_groups=serves.owner_groups,
        sharing_groups=groups,
        processors=ask.request.cores,
        whole_node=said.whole_node,
        strict_platform=strict,
    )


def credential_of(principal: Principal) -> Credential:
    """Whose work the credential of the pilot lets it do."""
    return Credential(principal.private, principal.owner, principal.owner_group)


def ask_back(credential: int) -> None:
    """A job of the pilot with this credential finished: its ask does not count."""
    burst = gdpconfig.value("dispatch", "MATCH_BURST")
    if not FINISHING.wait_s(credential, burst, burst):
        MATCHING.give_back(credential)


def check_pace(pace: Pace, principal: Principal) -> None:
    """Refused(429) where a pilot asks more often than MATCH_RATE and MATCH_BURST allow."""
    rate = max(gdpconfig.value("dispatch", "MATCH_RATE"), 2 / gdpconfig.value("dispatch", "POLL"))
    pace.check(principal.credential, rate, max(2 * rate, gdpconfig.value("dispatch", "MATCH_BURST")))


def _too_many_cores(wanted: int, most: int) -> NoReturn:
    told = f"{wanted} cores, but the pilot registered with {most}"
    raise Refused(422, BROKEN_RULES, told, [Problem("cores", "range", told)])


def nothing_now(told: HttpResponse | None = None, reason: str = "") -> HttpResponse:
    """Nothing to hand out: 204, or the answer that tells more; the reason is a header. Whole seconds are all that Retry-After can
    say; below one the pilot keeps the rest it was told.
    """
    answer = told or HttpResponse(status=204)
    if reason:
        answer[NOTHING] = reason
    if (rest := round(gdpconfig.value("dispatch", "POLL"))) >= 1:
        answer["Retry-After"] = str(rest)
    return answer


def with_unknown(answer: HttpResponse, unknown: Sequence[str]) -> HttpResponse:
    """The answer, with a header that names the fields of the ask that are not known."""
    if unknown:
        answer[UNKNOWN] = " ".join(", ".join(unknown).encode("ascii", "replace").decode().split())
    return answer


def _told(job: LeasedJob, credential: int) -> dict[str, Any]:
    """A job as the pilot is told of it, with its token."""
    token = job_token(job.document["id"], job.epoch, job, credential)
    return job.document | {"epoch": job.epoch, "token": token, "lease_s": job.lease_s}
