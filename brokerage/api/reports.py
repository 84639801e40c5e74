"""What is told of jobs by the pilots that hold them: signs of life and last words, of one job or of several in one request.

Plain views, since every job passes here several times. Who may: a job token, bound to (job, epoch); for several jobs the pilot's
own token, and that of each job in its entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.alerts import alert
from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.jsonbody import read_object
from broker_site.foundation.access.pace import Pace
from broker_site.foundation.access.principal import JobClaim, Principal
from broker_site.foundation.access.problems import Refused, not_authenticated, problem_of
from broker_site.foundation.access.tokens import BadToken
from broker_site.foundation.agency.batches import concerns_all
from brokerage.api import pilot_operations
from brokerage.api.joint_verbs import Joint, Wish, carry_out, jointly
from brokerage.api.matching import ask_back
from brokerage.api.messages import in_words, job_token, json_answer, message
from brokerage.api.pilot_operations import Ended, Prolonged, ToldOfJobs
from brokerage.ledger.heartbeats import LeaseState, SignOfLife, beat_each
from brokerage.ledger.lease import is_replaced
from brokerage.ledger.settle import LastWord, settle_jobs
from brokerage.models import Job
from brokerage.rules.dispatch.pilot_messages import Heartbeat, Reports, read_message, read_report
from brokerage.states import JOB
from workqueues.ledger.moves import Stale

REPORTING = Pace()
"""Heartbeats and reports have a budget of their own, so that no ask for work takes it away."""
BEATS = Joint(beat_each, key=lambda sign: sign.job_id)
ENDS = Joint(settle_jobs, key=lambda word: word.job_id)
Answer = Mapping[str, Any]


@pilot_operations.HEARTBEAT
@require_POST
@requires("job:report")
def heartbeat(request: HttpRequest, job_id: int) -> HttpResponse:
    """A sign of life prolongs the lease and carries the state; the answer carries the token that counts and a kill."""
    claim = _claim(request.principal)  # type: ignore[attr-defined]
    shown = request.META["HTTP_AUTHORIZATION"].split()[-1]
    sign = _sign_of_life(claim, message(request, Heartbeat))
    return jointly(request, Wish(BEATS, sign, lambda lease: json_answer(_prolonged(claim, shown, lease))))


@pilot_operations.REPORT
@require_POST
@requires("job:report")
def report(request: HttpRequest, job_id: int) -> HttpResponse:
    """The pilot's last word: the job ends. Said again, it gets the same answer.

    A part that breaks a rule is left out and noted with the job; only without a status there is no end.
    """
    claim = _claim(request.principal)  # type: ignore[attr-defined]
    word = _last_word(claim, read_object(request))
    return jointly(request, Wish(ENDS, word, lambda end: json_answer(_ended(claim, end))))


@pilot_operations.REPORTS
@require_POST
@requires("pilot:report")
def reports(request: HttpRequest) -> HttpResponse:
    """Signs of life and last words of several jobs of a pilot, each under the job's own token; jobs that finish end together.

    The answer has an entry for each, in their order: what the verb of one job answers, or the problem.
    """
    principal: Principal = request.principal  # type: ignore[attr-defined]
    entries = message(request, Reports).jobs
    answers: list[Answer] = [{} for _ in entries]
    wishes: dict[int, Wish[Any, Any, Answer]] = {}
    for i, entry in enumerate(entries):
        try:
            wishes[i] = _wish(principal, entry)
        except Refused as refused:
            answers[i] = {"problem": refused.problem()}
    places = list(wishes)
    for i, told in carry_out(list(wishes.values())):
        if isinstance(told, Exception) and concerns_all(told):
            raise told
        answers[places[i]] = {"problem": problem_of(told)} if isinstance(told, Exception) else told
    return json_answer(ToldOfJobs(jobs=answers))


def _wish(principal: Principal, entry: dict[str, Any]) -> Wish[Any, Any, Answer]:
    """What an entry for one of the pilot's jobs says."""
    shown = entry.get("token")
    claim = _claim_of_pilot(principal, shown)
    said = {name: value for name, value in entry.items() if name != "token"}
    if said.get("status") in JOB.heartbeat:
        sign = _sign_of_life(claim, in_words(partial(read_message, Heartbeat), said))
        return Wish(BEATS, sign, partial(_prolonged, claim, str(shown)))
    return Wish(ENDS, _last_word(claim, said), partial(_ended, claim))


def _sign_of_life(claim: JobClaim, said: Heartbeat) -> SignOfLife:
    return SignOfLife(claim.job_id, claim.epoch, said.status, claim.issued)


def _prolonged(claim: JobClaim, shown: str, lease: LeaseState | Exception | None) -> Prolonged:
    """The answer to a sign of life under the token `shown`. Refused where the lease is over; raises what was in the way."""
    if isinstance(lease, Exception):
        raise lease
    if lease is None:
        raise _over(claim)
    token = shown if claim.issued == lease.issued else job_token(claim.job_id, claim.epoch, lease, claim.pilot)
    return Prolonged(token=token, lease_s=lease.lease_s, command="tobekilled" if lease.kill else None)


def _last_word(claim: JobClaim, body: dict[str, Any]) -> LastWord:
    said, notes = in_words(read_report, body)
    return LastWord(claim.job_id, claim.epoch, said, f"job:{claim.job_id}", notes, claim.issued)


def _ended(claim: JobClaim, end: str | Exception) -> Ended:
    """The answer to a last word. Refused where the lease is over; raises what was in the way."""
    if isinstance(end, Stale):
        raise _over(claim)
    if isinstance(end, Exception):
        raise end
    if end in JOB.settled:
        end = "finished"  # for its pilot the job is over: its outputs have been taken over
    if end == "finished":
        ask_back(claim.pilot)
    return Ended(status=end)


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
