"""What pilots call for themselves: register, and what became of jobs of a pilot that died. Asking: `matching`, jobs: `reports`.

Plain views, since every job passes here several times. Who may: enrolment secret -> pilot token -> job token bound to (job,
epoch).
"""

from __future__ import annotations

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
from brokerage.api.matching import check_pace
from brokerage.api.messages import BROKEN_RULES, json_answer, message
from brokerage.ledger.pilots import register
from brokerage.ledger.submission import Coming, claim
from brokerage.models import ComputingQueue, Pilot
from brokerage.queries.pilots import local_storages, outcomes
from brokerage.rules.dispatch.pilot_messages import PastLeases, Registration

REGISTERING, ASKING_FOR_OUTCOMES = Pace(), Pace()


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
        told = f"{registration.cores} cores, but a slot of {queue.name} has {queue.corecount}"
        raise Refused(422, BROKEN_RULES, told, [Problem("cores", "range", told)])
    pilot_id = registration.pilot_id or uuid4()
    with transaction.atomic():
        issued = issue_pilot_token(principal, pilot_id, queue=queue.name)
        if registration.pilot_id is None:
            register(_pilot(pilot_id, queue, registration))
        else:
            _claim(principal, pilot_id, queue, registration)
    answer = pilot_operations.Registered(
        pilot_id=str(pilot_id),
        token=issued.text,
        expires_in=PILOT_SECONDS,
        storages=[pilot_operations.LocalStorage(name=name, path=path) for name, path in local_storages(queue.id)],
        poll_s=gdpconfig.value("dispatch", "POLL"),
        long_poll_s=gdpconfig.value("dispatch", "LONG_POLL"),
    )
    return json_answer(answer, status=201)


def _pilot(pilot_id: UUID, queue: ComputingQueue, registration: Registration) -> Pilot:
    return Pilot(
        id=pilot_id,
        queue=queue,
        host=registration.host,
        slot=registration.slot,
        pid=registration.pid or None,
        core_count=registration.cores,
        memory_mb=registration.memory_mb,
        disk_mb=registration.disk_mb,
    )


def _claim(principal: Principal, pilot_id: UUID, queue: ComputingQueue, registration: Registration) -> None:
    """The process is the pilot that was submitted for a job, unless another is. Refused: it may not do that job, or cannot."""
    coming = Coming(registration.host, registration.slot, registration.pid, registration.memory_mb, registration.disk_mb)
    job = claim(pilot_id, queue.id, coming)
    if job is None:
        raise Refused(409, "Not its job", f"Pilot {pilot_id} is another process, or its job is over, or at another queue.")
    if principal.private or principal.vo not in ("", job.vo):
        raise Refused(403, "Another VO", "The enrolment is not for the work of the VO whose job this is.")
    if registration.cores < job.cores:
        told = f"{registration.cores} cores, but its job has {job.cores}"
        raise Refused(422, BROKEN_RULES, told, [Problem("cores", "range", told)])


@pilot_operations.SETTLED
@require_POST
@requires("pilot:settled")
def settled(request: HttpRequest) -> HttpResponse:
    """What became of jobs that an earlier pilot of the queue left: finished, live (its lease still runs), or gone.

    Jobs of other queues are not spoken of.
    """
    principal: Principal = request.principal  # type: ignore[attr-defined]
    check_pace(ASKING_FOR_OUTCOMES, principal)
    return json_answer({"outcomes": outcomes(message(request, PastLeases).jobs, principal.queue)})
