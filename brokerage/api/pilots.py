"""What pilots call: register, match, heartbeat, report, and what became of the jobs of a pilot that died.

Plain views, since every job passes here several times. Who may: enrolment secret -> pilot token -> job token bound to (job,
epoch).
"""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID, uuid4

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import PILOT_SECONDS, issue_pilot_token
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.jsonbody import read_object
from broker_site.foundation.access.principal import JobClaim, Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.ledger.lease import Lease, advance, lease, lease_again, note_seen, note_start, register, renew
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, Pilot
from brokerage.queries.job_document import job_document
from brokerage.queries.pilots import QUEUES, PilotQueue, local_storages, outcomes
from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.matching import Resource
from brokerage.rules.dispatch.pilot_messages import Heartbeat, JobRequest, PastLeases, Registration, read_message
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.dispatch.timeouts import lease_s
from brokerage.states import JOB
from workqueues.ledger.moves import Stale

T = TypeVar("T")
BROKEN_RULES = "The message breaks rules"
OVERLAP_S = 60.0
"""How much longer than its lease a job token lives: a late report is refused by its epoch, with a reason that says so."""
SOURCES = {status: JOB.sources(status) for status in JOB.heartbeat}


@require_POST
@requires("pilot:register")
def register_pilot(request: HttpRequest) -> HttpResponse:
    """A pilot begins: it gets its token and learns its storage. A pilot may only serve the queue of its enrolment."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    registration = _read(request, Registration)
    if principal.queue and registration.queue != principal.queue:
        raise Refused(403, "Another queue", f"The enrolment is for {principal.queue}, not for {registration.queue}.")
    queue = ComputingQueue.objects.filter(name=registration.queue).first()
    if queue is None:
        message = f"there is no computing queue {registration.queue}"
        raise Refused(422, BROKEN_RULES, message, [Problem("queue", "exists", message)])
    if principal.site not in ("", queue.site_id):
        raise Refused(403, "Another site", f"The enrolment is for {principal.site}; {queue.name} is at {queue.site_id}.")
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
    ask = _read(request, JobRequest)
    queue = QUEUES.named(principal.queue)
    if (pilot_id := principal.subject) is None:
        raise Refused(403, "No pilot", "The token names no pilot.")
    if queue is None or queue.storage_down or queue.status not in ("online", "brokeroff", "test"):
        return _nothing()
    job_lease = _lease(queue, pilot_id, ask, principal.vo) or lease_again(pilot_id, ask.request)
    if job_lease is None:
        note_seen(pilot_id)
        return _nothing()
    token = mint_job_token(job_lease.job_id, job_lease.epoch, job_lease.lease_s + OVERLAP_S, pilot=principal.credential or 0)
    lease_facts = {"epoch": job_lease.epoch, "token": token, "lease_s": job_lease.lease_s}
    return JsonResponse({"job": job_document(job_lease.job_id) | lease_facts})


@require_POST
@requires("job:report")
def heartbeat(request: HttpRequest, job_id: int) -> HttpResponse:
    """A sign of life prolongs the lease and carries the state; the answer carries the next token and a kill."""
    claim = _claim(request)
    status = _read(request, Heartbeat).status
    lease_state = renew(job_id, claim.epoch)
    if lease_state is not None and lease_state.status != status:
        moved = advance(job_id, claim.epoch, status, SOURCES[status], f"job:{job_id}")
        if moved is not None and status == "running":
            note_start(job_id)
        lease_state = moved or lease_state
    if lease_state is None:
        raise _over(job_id)
    token = mint_job_token(job_id, claim.epoch, lease_state.lease_s + OVERLAP_S, pilot=claim.pilot)
    return JsonResponse({"token": token, "lease_s": lease_state.lease_s, "command": "tobekilled" if lease_state.kill else None})


@require_POST
@requires("job:report")
def report(request: HttpRequest, job_id: int) -> HttpResponse:
    """The pilot's last word: the job ends. Said again, it gets the same answer."""
    claim = _claim(request)
    try:
        status = settle_job(job_id, claim.epoch, _read(request, Report), f"job:{job_id}")
    except Stale:
        raise _over(job_id) from None
    return JsonResponse({"status": status})


@require_POST
@requires("pilot:settled")
def settled(request: HttpRequest) -> HttpResponse:
    """What became of jobs that an earlier pilot of the queue left: finished, live (its lease still runs), or gone.

    Jobs of other queues are not spoken of.
    """
    principal: Principal = request.principal  # type: ignore[attr-defined]
    return JsonResponse({"outcomes": outcomes(_read(request, PastLeases).jobs, principal.queue)})


def _read(request: HttpRequest, kind: type[T]) -> T:
    try:
        return read_message(kind, read_object(request))
    except OutsideDataError as bad:
        raise Refused(422, BROKEN_RULES, str(bad), bad.problems) from None


def _over(job_id: int) -> Refused:
    return Refused(409, "The lease is over", f"Job {job_id} is not held under this token any more; stop its payload.")


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
    return principal.job


def _lease(queue: PilotQueue, pilot_id: UUID, ask: JobRequest, vo: str) -> Lease | None:
    """The first job of the best task queue that has one for the pilot; `vo`: the only one whose work it may do, if any."""
    offer = Resource(queue.name, ask.cores, ask.memory_mb, ask.disk_mb, ask.walltime_s, vo)
    watcher = gdpconfig.component("watcher", app="pandaserver")
    for fresh in (False, True):
        for waiting in WAITING.offers(queue.id, offer, fresh=fresh):
            seconds = lease_s(waiting.label, queue.workflow, watcher)
            if (job_lease := lease([waiting.id], pilot_id, ask.request, seconds)) is not None:
                return job_lease
    return None
