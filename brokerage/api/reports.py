"""What is told of jobs by the pilots that hold them: signs of life and last words, of one job or of several in one request.

Plain views, since every job passes here several times. Who may: a job token, bound to (job, epoch); for several jobs the pilot's
own token, and that of each job in its entry.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.alerts import alert
from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.jsonbody import read_object
from broker_site.foundation.access.pace import Pace
from broker_site.foundation.access.principal import JobClaim, Principal
from broker_site.foundation.access.problems import Refused, not_authenticated
from broker_site.foundation.access.tokens import BadToken
from brokerage.api.messages import in_words, job_token, message
from brokerage.api.pilots import ask_back
from brokerage.ledger.joint_ends import JointEnds
from brokerage.ledger.lease import advance, is_replaced, renew
from brokerage.ledger.settle import LastWord
from brokerage.models import Job
from brokerage.queries.pilots import STATUSES
from brokerage.rules.dispatch.pilot_messages import Heartbeat, Reports, read_message, read_report
from brokerage.states import JOB
from workqueues.ledger.moves import Stale

REPORTING = Pace()
"""Heartbeats and reports have a budget of their own, so that no ask for work takes it away."""
ENDS = JointEnds()
SOURCES = {status: JOB.sources(status) for status in JOB.heartbeat}
Answer = dict[str, Any]


@require_POST
@requires("job:report")
def heartbeat(request: HttpRequest, job_id: int) -> HttpResponse:
    """A sign of life prolongs the lease and carries the state; the answer carries the token that counts and a kill."""
    claim = _claim(request.principal)  # type: ignore[attr-defined]
    shown = request.META["HTTP_AUTHORIZATION"].split()[-1]
    return JsonResponse(_heartbeat(claim, message(request, Heartbeat), shown))


@require_POST
@requires("job:report")
def report(request: HttpRequest, job_id: int) -> HttpResponse:
    """The pilot's last word: the job ends. Said again, it gets the same answer.

    A part that breaks a rule is left out and noted with the job; only without a status there is no end.
    """
    claim = _claim(request.principal)  # type: ignore[attr-defined]
    return JsonResponse(_ends([(claim, _last_word(claim, read_object(request)))])[0])


@require_POST
@requires("pilot:report")
def reports(request: HttpRequest) -> HttpResponse:
    """Signs of life and last words of several jobs of a pilot, each under the job's own token; jobs that finish end together.

    The answer has an entry for each, in their order: what the verb of one job answers, or the problem.
    """
    principal: Principal = request.principal  # type: ignore[attr-defined]
    entries = message(request, Reports).jobs
    answers: list[Answer] = [{} for _ in entries]
    words: dict[int, tuple[JobClaim, LastWord]] = {}
    for i, entry in enumerate(entries):
        try:
            shown = entry.get("token")
            claim = _claim_of_pilot(principal, shown)
            said = {name: value for name, value in entry.items() if name != "token"}
            if said.get("status") in JOB.heartbeat:
                answers[i] = _heartbeat(claim, in_words(partial(read_message, Heartbeat), said), str(shown))
            else:
                words[i] = (claim, _last_word(claim, said))
        except Refused as refused:
            answers[i] = _problem(refused)
    for i, answer in zip(words, _ends(list(words.values()), each=True), strict=True):
        answers[i] = answer
    return JsonResponse({"jobs": answers})


def _heartbeat(claim: JobClaim, said: Heartbeat, shown: str) -> Answer:
    """The answer to a sign of life under the token `shown`. Refused where the lease is over."""
    job_id, epoch, status = claim.job_id, claim.epoch, said.status
    if STATUSES.of(job_id, epoch) == status:
        lease_state = renew(job_id, epoch, claim.issued)
    else:
        lease_state = advance(job_id, epoch, status, SOURCES[status], f"job:{job_id}", claim.issued)
    if lease_state is None:
        raise _over(claim)
    STATUSES.note(job_id, epoch, lease_state.status)
    token = shown if claim.issued == lease_state.issued else job_token(job_id, epoch, lease_state, claim.pilot)
    return {"token": token, "lease_s": lease_state.lease_s, "command": "tobekilled" if lease_state.kill else None}


def _last_word(claim: JobClaim, body: dict[str, Any]) -> LastWord:
    said, notes = in_words(read_report, body)
    return LastWord(claim.job_id, claim.epoch, said, f"job:{claim.job_id}", notes, claim.issued)


def _ends(words: list[tuple[JobClaim, LastWord]], *, each: bool = False) -> list[Answer]:
    """How the jobs ended. Where a lease is over: Refused, or, for `each` by itself, the problem in its place."""
    answers = []
    for (claim, _), end in zip(words, ENDS.end([word for _, word in words]), strict=True):
        if isinstance(end, Stale):
            if not each:
                raise _over(claim)
            answers.append(_problem(_over(claim)))
            continue
        if end == "finished":
            ask_back(claim.pilot)
        answers.append({"status": end})
    return answers


def _claim(principal: Principal) -> JobClaim:
    """What the job token says. Refused(429) where its job is told of too often."""
    if principal.job is None:
        raise Refused(403, "No job", "The token names no job.")
    claim = principal.job
    rate = gdpconfig.value("dispatch", "REPORT_RATE")
    REPORTING.check((claim.job_id, claim.epoch), rate, 4 * rate)  # who held the job before takes nothing from who holds it now
    return claim


def _claim_of_pilot(principal: Principal, token: object) -> JobClaim:
    """What the token of an entry says, whose job must be one of the pilot's."""
    try:
        claim = _claim(principal_of_token(token if isinstance(token, str) else ""))
    except BadToken as bad:
        raise not_authenticated(f"The token of the entry is not accepted: {bad}.") from None
    if claim.pilot != principal.credential:
        raise Refused(403, "Another pilot", "The job was given to another pilot.")
    return claim


def _over(claim: JobClaim) -> Refused:
    """Why a job token is worth nothing: it was replaced, or its lease is over."""
    if is_replaced(claim.job_id, claim.epoch, claim.issued):
        return not_authenticated("The job token was replaced by a newer one, which the answer to a heartbeat brought.")
    if Job.objects.filter(id=claim.job_id, epoch__lt=claim.epoch).exists():
        reason = f"job {claim.job_id} is behind the epoch {claim.epoch} of a token of ours: was the database set back?"
        alert("future_epoch", "job tokens", reason)
    detail = f"Job {claim.job_id} is not held under this token any more; stop its payload."
    return Refused(409, "The lease is over", detail)


def _problem(refused: Refused) -> Answer:
    return {"problem": refused.problem()}
