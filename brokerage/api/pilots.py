"""What pilots call for themselves: register, match, and what became of the jobs of a pilot that died. Of jobs: `reports`.

Plain views, since every job passes here several times. Who may: enrolment secret -> pilot token -> job token bound to (job,
epoch).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn
from uuid import UUID, uuid4

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import PILOT_SECONDS, issue_pilot_token
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.pace import Pace
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.verdict import Problem
from brokerage.api import pilot_operations
from brokerage.api.joint_verbs import Joint, Wish, jointly
from brokerage.api.messages import BROKEN_RULES, job_token, json_answer, message
from brokerage.api.waiting_asks import WaitingAsk, asked_again, may_wait
from brokerage.ledger.handing_out import hand_out, handed_out_before
from brokerage.ledger.lease import Ask, HeldAtMost, register
from brokerage.ledger.pilots import end_idling, note_vain_ask
from brokerage.models import ComputingQueue, Pilot
from brokerage.queries.job_document import LeasedJob
from brokerage.queries.pilots import PILOT_CORES, QUEUES, PilotQueue, local_storages, outcomes
from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.matching import Resource
from brokerage.rules.dispatch.pilot_messages import JobRequest, PastLeases, Registration
from brokerage.rules.dispatch.timeouts import lease_s

ASKS = Joint(hand_out, key=lambda ask: ask.pilot)
REGISTERING, MATCHING, FINISHING, ASKING_FOR_OUTCOMES = Pace(), Pace(), Pace(), Pace()
"""A pilot whose job finished gets its ask back, as often as FINISHING allows: slots with very short jobs are kept busy."""


@pilot_operations.REGISTER
@require_POST
@requires("pilot:register")
def register_pilot(request: HttpRequest) -> HttpResponse:
    """A pilot begins: it gets its token and learns its storage. It serves one of the queues of its enrolment."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    REGISTERING.check(principal.key, gdpconfig.value("dispatch", "REGISTER_RATE"), gdpconfig.value("dispatch", "REGISTER_BURST"))
    registration = message(request, Registration)
    if registration.queue not in principal.queues:
        raise Refused(403, "Another queue", f"The enrolment is for {', '.join(principal.queues)}, not for {registration.queue}.")
    queue = ComputingQueue.objects.filter(name=registration.queue).first()
    if queue is None:
        missing = f"there is no computing queue {registration.queue}"
        raise Refused(422, BROKEN_RULES, missing, [Problem("queue", "exists", missing)])
    if principal.site not in ("", queue.site_id):
        raise Refused(403, "Another site", f"The enrolment is for {principal.site}; {queue.name} is at {queue.site_id}.")
    if 0 < queue.corecount < registration.cores:  # others give whole nodes
        _too_many_cores(registration.cores, queue.corecount, f"a slot of {queue.name} has")
    pilot_id = uuid4()
    with transaction.atomic():
        issued = issue_pilot_token(principal, pilot_id, queue=queue.name)
        register(
            Pilot(
                id=pilot_id,
                queue=queue,
                host=registration.host,
                slot=registration.slot,
                pid=registration.pid or None,
                core_count=registration.cores,
                memory_mb=registration.memory_mb,
                disk_mb=registration.disk_mb,
            )
        )
    answer = pilot_operations.Registered(
        pilot_id=str(pilot_id),
        token=issued.text,
        expires_in=PILOT_SECONDS,
        storages=[pilot_operations.LocalStorage(name=name, path=path) for name, path in local_storages(queue.id)],
        poll_s=gdpconfig.value("dispatch", "POLL"),
        long_poll_s=gdpconfig.value("dispatch", "LONG_POLL"),
    )
    return json_answer(answer, status=201)


@pilot_operations.MATCH
@require_POST
@requires("pilot:match")
def match(request: HttpRequest) -> HttpResponse:
    """A pilot asks for a job, or for several: 200 with what it gets, or 204 when nothing suits it."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    if (pilot_id := principal.subject) is None:
        raise Refused(403, "No pilot", "The token names no pilot.")
    if not asked_again(request):
        _check_pace(MATCHING, principal)
    ask, cores = message(request, JobRequest), PILOT_CORES.of(pilot_id)
    queue = QUEUES.named(principal.queue)
    if cores is not None and ask.cores > cores:
        _too_many_cores(ask.cores, cores, "the pilot registered with")
    if cores is None or queue is None:
        return _nothing()
    offer = Resource(queue.name, ask.cores, ask.memory_mb, ask.disk_mb, ask.walltime_s, principal.vo)

    def in_vain(seconds: float) -> None:
        """Nothing for the pilot, which may be answered so many seconds later."""
        again_s = seconds if ask.last else seconds + gdpconfig.value("dispatch", "POLL")
        note_vain_ask(pilot_id, queue.id, offer, again_s, leaves=ask.last)

    if not queue.hands_out:
        in_vain(0.0)
        return _nothing()
    most = HeldAtMost(cores, gdpconfig.value("dispatch", "LEASES_PER_SLOT"))
    asks = _asks(queue, pilot_id, ask, offer, most)

    def tell(jobs: list[LeasedJob]) -> HttpResponse:
        jobs = jobs or next(filter(None, (hand_out([other])[0] for other in asks)), [])
        jobs = jobs or handed_out_before(pilot_id, ask.request)
        if not jobs:
            seconds = min(ask.wait_s, gdpconfig.value("dispatch", "LONG_POLL"))
            in_vain(seconds)
            waits = WaitingAsk(queue.id, seconds, principal.credential or 0, partial(end_idling, [pilot_id]))
            return may_wait(_nothing(), waits) if seconds else _nothing()
        told = [_told(job, principal.credential or 0) for job in jobs]
        return json_answer({"job": told[0]} if ask.n is None else {"jobs": told})

    best = next(asks, None)
    return tell([]) if best is None else jointly(request, Wish(ASKS, best, tell))


@pilot_operations.SETTLED
@require_POST
@requires("pilot:settled")
def settled(request: HttpRequest) -> HttpResponse:
    """What became of jobs that an earlier pilot of the queue left: finished, live (its lease still runs), or gone.

    Jobs of other queues are not spoken of.
    """
    principal: Principal = request.principal  # type: ignore[attr-defined]
    _check_pace(ASKING_FOR_OUTCOMES, principal)
    return json_answer({"outcomes": outcomes(message(request, PastLeases).jobs, principal.queue)})


def ask_back(credential: int) -> None:
    """A job of the pilot with this credential finished: its ask does not count."""
    burst = gdpconfig.value("dispatch", "MATCH_BURST")
    if not FINISHING.wait_s(credential, burst, burst):
        MATCHING.give_back(credential)


def _check_pace(pace: Pace, principal: Principal) -> None:
    """Refused(429) where a pilot asks more often than MATCH_RATE and MATCH_BURST allow."""
    rate = max(gdpconfig.value("dispatch", "MATCH_RATE"), 2 / gdpconfig.value("dispatch", "POLL"))
    pace.check(principal.credential, rate, max(2 * rate, gdpconfig.value("dispatch", "MATCH_BURST")))


def _too_many_cores(wanted: int, most: int, whose: str) -> NoReturn:
    told = f"{wanted} cores, but {whose} {most}"
    raise Refused(422, BROKEN_RULES, told, [Problem("cores", "range", told)])


def _nothing() -> HttpResponse:
    """Nothing to hand out. Whole seconds are all that Retry-After can say; below one the pilot keeps the rest it was told."""
    answer = HttpResponse(status=204)
    if (rest := round(gdpconfig.value("dispatch", "POLL"))) >= 1:
        answer["Retry-After"] = str(rest)
    return answer


def _asks(queue: PilotQueue, pilot_id: UUID, ask: JobRequest, offer: Resource, most: HeldAtMost) -> Iterator[Ask]:
    """For each task queue that suits the pilot what it asks there, best first; who asks for the next says that one had no job."""
    watcher = gdpconfig.component("watcher", app="pandaserver")
    for fresh in (False, True):
        for waiting in WAITING.offers(queue.id, offer, fresh=fresh):
            yield Ask(waiting.id, pilot_id, ask.request, lease_s(waiting.label, queue.workflow, watcher), most, ask.n or 1)


def _told(job: LeasedJob, credential: int) -> dict[str, Any]:
    """A job as the pilot is told of it, with its token."""
    token = job_token(job.document["id"], job.epoch, job, credential)
    return job.document | {"epoch": job.epoch, "token": token, "lease_s": job.lease_s}
