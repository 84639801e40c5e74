"""What pilots call: register, match, heartbeat, report, and what became of the jobs of a pilot that died.

Plain views, since every job passes here several times. Who may: enrolment secret -> pilot token -> job token bound to (job,
epoch).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar
from uuid import UUID, uuid4

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.alerts import alert
from broker_site.foundation.access.credentials import PILOT_SECONDS, issue_pilot_token
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.jsonbody import read_object
from broker_site.foundation.access.pace import Pace
from broker_site.foundation.access.principal import JobClaim, Principal
from broker_site.foundation.access.problems import Refused, not_authenticated
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.ledger.lease import (
    ROTATE_S,
    HeldAtMost,
    Lease,
    LeaseState,
    advance,
    is_replaced,
    lease,
    lease_again,
    register,
    renew,
)
from brokerage.ledger.pilots import note_vain_ask
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, Job, Pilot
from brokerage.queries.job_document import job_document
from brokerage.queries.pilots import PILOT_CORES, QUEUES, STATUSES, PilotQueue, local_storages, outcomes
from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.matching import Resource
from brokerage.rules.dispatch.pilot_messages import Heartbeat, JobRequest, PastLeases, Registration, read_message, read_report
from brokerage.rules.dispatch.timeouts import lease_s
from brokerage.states import JOB
from workqueues.ledger.moves import Stale

T = TypeVar("T")
BROKEN_RULES = "The message breaks rules"
MARGIN_S = 60.0 + ROTATE_S
"""How much longer than its lease a job token lives: a late report is refused by its epoch, with a reason that says so."""
REGISTERING, MATCHING, REPORTING, FINISHING, ASKING_FOR_OUTCOMES = Pace(), Pace(), Pace(), Pace(), Pace()
"""Heartbeats and reports have a budget of their own, so that no ask for work takes it away. A pilot whose job finished gets its
ask back, as often as FINISHING allows, so that slots with very short jobs are kept busy.
"""
SOURCES = {status: JOB.sources(status) for status in JOB.heartbeat}


@require_POST
@requires("pilot:register")
def register_pilot(request: HttpRequest) -> HttpResponse:
    """A pilot begins: it gets its token and learns its storage. A pilot may only serve the queue of its enrolment."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    REGISTERING.check(principal.key, gdpconfig.value("dispatch", "REGISTER_RATE"), gdpconfig.value("dispatch", "REGISTER_BURST"))
    registration = _message(request, Registration)
    if principal.queue and registration.queue != principal.queue:
        raise Refused(403, "Another queue", f"The enrolment is for {principal.queue}, not for {registration.queue}.")
    queue = ComputingQueue.objects.filter(name=registration.queue).first()
    if queue is None:
        message = f"there is no computing queue {registration.queue}"
        raise Refused(422, BROKEN_RULES, message, [Problem("queue", "exists", message)])
    if principal.site not in ("", queue.site_id):
        raise Refused(403, "Another site", f"The enrolment is for {principal.site}; {queue.name} is at {queue.site_id}.")
    if 0 < queue.corecount < registration.cores:  # others give whole nodes
        _too_many_cores(registration.cores, queue.corecount, f"a slot of {queue.name} has")
    pilot_id = uuid4()
    with transaction.atomic():
        issued = issue_pilot_token(principal, pilot_id)
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
    return JsonResponse(
        {
            "pilot_id": str(pilot_id),
            "token": issued.text,
            "expires_in": PILOT_SECONDS,
            "storages": local_storages(queue.id),
            "poll_s": gdpconfig.value("dispatch", "POLL"),
        },
        status=201,
    )


@require_POST
@requires("pilot:match")
def match(request: HttpRequest) -> HttpResponse:
    """A pilot asks for a job: 200 with one, or 204 when nothing suits it."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    if (pilot_id := principal.subject) is None:
        raise Refused(403, "No pilot", "The token names no pilot.")
    _check_pace(MATCHING, principal)
    ask, cores = _message(request, JobRequest), PILOT_CORES.of(pilot_id)
    queue = QUEUES.named(principal.queue)
    if cores is not None and ask.cores > cores:
        _too_many_cores(ask.cores, cores, "the pilot registered with")
    if cores is None or queue is None:
        return _nothing()
    offer = Resource(queue.name, ask.cores, ask.memory_mb, ask.disk_mb, ask.walltime_s, principal.vo)
    if not queue.hands_out:
        note_vain_ask(pilot_id, queue.id, offer)
        return _nothing()
    most = HeldAtMost(cores, gdpconfig.value("dispatch", "LEASES_PER_SLOT"))
    job_lease = _lease(queue, pilot_id, ask.request, offer, most) or lease_again(pilot_id, ask.request)
    if job_lease is None:
        note_vain_ask(pilot_id, queue.id, offer)
        return _nothing()
    token = _job_token(job_lease.job_id, job_lease.epoch, job_lease, principal.credential or 0)
    lease_facts = {"epoch": job_lease.epoch, "token": token, "lease_s": job_lease.lease_s}
    return JsonResponse({"job": job_document(job_lease.job_id) | lease_facts})


@require_POST
@requires("job:report")
def heartbeat(request: HttpRequest, job_id: int) -> HttpResponse:
    """A sign of life prolongs the lease and carries the state; the answer carries the token that counts and a kill."""
    claim = _claim(request)
    status = _message(request, Heartbeat).status
    if STATUSES.of(job_id, claim.epoch) == status:
        lease_state = renew(job_id, claim.epoch, claim.issued)
    else:
        lease_state = advance(job_id, claim.epoch, status, SOURCES[status], f"job:{job_id}", claim.issued)
    if lease_state is None:
        raise _over(claim)
    STATUSES.note(job_id, claim.epoch, lease_state.status)
    shown = request.META["HTTP_AUTHORIZATION"].split()[-1]
    token = shown if claim.issued == lease_state.issued else _job_token(job_id, claim.epoch, lease_state, claim.pilot)
    return JsonResponse({"token": token, "lease_s": lease_state.lease_s, "command": "tobekilled" if lease_state.kill else None})


@require_POST
@requires("job:report")
def report(request: HttpRequest, job_id: int) -> HttpResponse:
    """The pilot's last word: the job ends. Said again, it gets the same answer.

    A part that breaks a rule is left out and noted with the job; only without a status there is no end.
    """
    claim = _claim(request)
    message, notes = _in_words(read_report, read_object(request))
    try:
        status = settle_job(job_id, claim.epoch, message, f"job:{job_id}", notes, claim.issued)
    except Stale:
        raise _over(claim) from None
    burst = gdpconfig.value("dispatch", "MATCH_BURST")
    if status == "finished" and not FINISHING.wait_s(claim.pilot, burst, burst):
        MATCHING.give_back(claim.pilot)
    return JsonResponse({"status": status})


@require_POST
@requires("pilot:settled")
def settled(request: HttpRequest) -> HttpResponse:
    """What became of jobs that an earlier pilot of the queue left: finished, live (its lease still runs), or gone.

    Jobs of other queues are not spoken of.
    """
    principal: Principal = request.principal  # type: ignore[attr-defined]
    _check_pace(ASKING_FOR_OUTCOMES, principal)
    return JsonResponse({"outcomes": outcomes(_message(request, PastLeases).jobs, principal.queue)})


def _check_pace(pace: Pace, principal: Principal) -> None:
    """Refused(429) where a pilot asks more often than MATCH_RATE and MATCH_BURST allow."""
    rate = max(gdpconfig.value("dispatch", "MATCH_RATE"), 2 / gdpconfig.value("dispatch", "POLL"))
    pace.check(principal.credential, rate, max(2 * rate, gdpconfig.value("dispatch", "MATCH_BURST")))


def _message(request: HttpRequest, kind: type[T]) -> T:
    return _in_words(partial(read_message, kind), read_object(request))


def _in_words(read: Callable[[dict[str, Any]], T], body: dict[str, Any]) -> T:
    """The body as `read` reads it. Refused with all that is wrong."""
    try:
        return read(body)
    except OutsideDataError as bad:
        raise Refused(422, BROKEN_RULES, str(bad), bad.problems) from None


def _over(claim: JobClaim) -> Refused:
    """Why a job token is worth nothing: it was replaced, or its lease is over."""
    if is_replaced(claim.job_id, claim.epoch, claim.issued):
        return not_authenticated("The job token was replaced by a newer one, which the answer to a heartbeat brought.")
    if Job.objects.filter(id=claim.job_id, epoch__lt=claim.epoch).exists():
        reason = f"job {claim.job_id} is behind the epoch {claim.epoch} of a token of ours: was the database set back?"
        alert("future_epoch", "job tokens", reason)
    detail = f"Job {claim.job_id} is not held under this token any more; stop its payload."
    return Refused(409, "The lease is over", detail)


def _too_many_cores(wanted: int, most: int, whose: str) -> NoReturn:
    message = f"{wanted} cores, but {whose} {most}"
    raise Refused(422, BROKEN_RULES, message, [Problem("cores", "range", message)])


def _job_token(job_id: int, epoch: int, lease: Lease | LeaseState, pilot: int) -> str:
    return mint_job_token(job_id, epoch, lease.lease_s + MARGIN_S, pilot=pilot, issued=lease.issued)


def _nothing() -> HttpResponse:
    """Nothing to hand out. Whole seconds are all that Retry-After can say; below one the pilot keeps the rest it was told."""
    answer = HttpResponse(status=204)
    if (rest := round(gdpconfig.value("dispatch", "POLL"))) >= 1:
        answer["Retry-After"] = str(rest)
    return answer


def _claim(request: HttpRequest) -> JobClaim:
    principal: Principal = request.principal  # type: ignore[attr-defined]
    if principal.job is None:
        raise Refused(403, "No job", "The token names no job.")
    rate = gdpconfig.value("dispatch", "REPORT_RATE")
    claim = principal.job
    REPORTING.check((claim.job_id, claim.epoch), rate, 4 * rate)  # who held the job before takes nothing from who holds it now
    return claim


def _lease(queue: PilotQueue, pilot_id: UUID, request: UUID, offer: Resource, most: HeldAtMost) -> Lease | None:
    """The first job of the best task queue that has one for the pilot."""
    watcher = gdpconfig.component("watcher", app="pandaserver")
    for fresh in (False, True):
        for waiting in WAITING.offers(queue.id, offer, fresh=fresh):
            seconds = lease_s(waiting.label, queue.workflow, watcher)
            if (job_lease := lease([waiting.id], pilot_id, request, seconds, most)) is not None:
                return job_lease
    return None
