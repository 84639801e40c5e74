"""`why` of a task, a job, a queue: the sentences of the server, in the order in which they help."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.grammar import JSON, NAME, ONE, URL, WEB, Verb, option
from broker_site.client.command.session import Session, numbers
from broker_site.client.errors import OK, Refused, Unusable
from broker_site.client.why import Why

Document = Mapping[str, Any]
MOST = 20
"""Skipped queues that are shown without --all."""


def why_task(session: Session) -> int:
    options = session.options
    (number,) = numbers([options.id], session.stdin)
    if session.page(f"/tasks/{number}/brokerage/"):
        return OK
    if options.what_if:
        if options.queue:
            raise Unusable("--queue tells stored decisions", "--what-if takes a new one", "leave one of them out")
        result = session.client.tasks.of(number).what_if(_edits(options.what_if))
        session.printer.document(result, _what_if(result, options.all))
        return OK
    why = session.client.tasks.of(number).why(options.queue or "")
    document = {
        "id": number, "status": why.status, "headline": why.headline, "reasons": why.reasons, "throttles": why.throttles,
        "job_errors": why.errors, "next_look_at": why.next_look_at, "next_look": why.next_look,
        "needs_changes": why.needs_changes, "decision": why.decision,
    }  # fmt: skip
    session.printer.document(document, _told(number, why, options.all))
    return OK


def _told(number: int, why: Why, everything: bool) -> Iterator[str]:
    yield f"Task {number}: {why.headline}"
    yield from (f"  {reason['kind']}: {reason['message']}" for reason in why.reasons)
    for throttle in why.throttles:
        yield f"  throttled: {throttle['why']}" + (
            f", until {terminal.moment(throttle['until'])} UTC" if throttle["until"] else ""
        )
    for error in why.errors:
        kept = f", {error['n_not_retried']} not tried again" if error["n_not_retried"] else ""
        yield f"  error {error['code']} of {error['n_jobs']} jobs{kept}: {error['message']} (job {error['job_id']})"
    if why.next_look:
        yield f"  {why.next_look}"
    yield from (f"  {terminal.moment(change['at'])} UTC {change['sentence']}" for change in why.needs_changes)
    if why.decision is None:
        yield "  no queue has been considered yet"
        return
    decision = why.decision
    yield ""
    at = terminal.moment(decision["last_at"])
    yield f"Decision {decision['id']} of the policy {decision['policy']}, last taken at {at} UTC"
    if decision["why_not"]:
        for verdict in decision["why_not"]:
            yield from _against(verdict)
    elif decision["explanation"]:
        yield from story(decision["explanation"], everything)


def story(explanation: Document, everything: bool) -> Iterator[str]:
    """Verdict, funnel, chosen, not chosen."""
    yield f"  {explanation['verdict']}"
    yield f"  {terminal.count(explanation['candidates'], 'candidate')}"
    for step in explanation["funnel"]:
        yield f"    {step['criterion']}: {step['skipped']} skipped, {step['left']} left ({step['kind']})"
    for chosen in explanation["chosen"]:
        yield f"  chosen {chosen['name']}, weight {terminal.cell(chosen['weight'])}"
    skipped = explanation["skipped"]
    for each in skipped if everything else skipped[:MOST]:
        yield f"  not {each['name']}: {each['reason']} ({each['criterion']})"
    if len(skipped) > MOST and not everything:
        yield f"  and {len(skipped) - MOST} more not chosen; --all shows them"


def _against(verdict: Document) -> Iterator[str]:
    """Every criterion on one candidate, with what would change those that failed."""
    yield f"  {verdict['name']}: {'chosen' if verdict['chosen'] else 'not chosen'}"
    for check in verdict["checks"]:
        yield f"    {'ok  ' if check['passed'] else 'skip'} {check['criterion']}  {check['reason'] or check['about']}"
        for remedy in check["depends_on"]:
            enough = "" if remedy["enough"] is None else f" (would do: {terminal.cell(remedy['enough'])})"
            yield f"         {remedy['where']}: {remedy['name']} {terminal.cell(remedy['value'])}{enough}"
    yield f"    weight {terminal.cell(verdict['weight'])}"


def _what_if(result: Document, everything: bool) -> Iterator[str]:
    yield "If the brokerage looked now (nothing is changed):"
    yield from story(result["before"], everything)
    if result["after"] is None:
        return
    edits = ", ".join(f"{edit['name']} = {terminal.cell(edit['after'])}" for edit in result["edits"])
    yield f"And with {edits}:"
    yield from story(result["after"], everything)
    for change in result["changed"]:
        yield f"  changes {change['name']}: {change['before']} -> {change['after']} {change['why_after']}".rstrip()


def why_job(session: Session) -> int:
    (number,) = numbers([session.options.id], session.stdin)
    if session.page(f"/jobs/{number}/"):
        return OK
    try:
        standing = session.client.connection.get(f"jobs/{number}/waiting/")
    except Refused as refused:
        if refused.status != 404:
            raise
        job = session.client.connection.get(f"jobs/{number}/")  # refused too where there is none
        session.printer.document(job, [_not_waiting(number, job)])
    else:
        session.printer.document(standing, _standing(number, standing))
    return OK


def _not_waiting(number: int, job: Document) -> str:
    since = f"{job['status']} since {terminal.moment(job['status_since'])} UTC"
    return f"Job {number} waits for no pilot: it is {since}; broker job show {number} tells the rest"


def _standing(number: int, standing: Document) -> Iterator[str]:
    ready = "" if standing["ready"] else "; it waits for something else first"
    yield f"Job {number}: {standing['ahead']} of {standing['waiting']} alike go before it{ready}"
    for place in standing["places"]:
        ahead = "chance decides" if place["ahead"] is None else f"{place['ahead']} groups of jobs before it"
        yield f"  at {place['queue']}: {place['fault'] or ahead}"
    for wait in standing.get("submission") or ():
        yield f"  not submitted to {wait['site']}: {wait['text']} ({wait['reason']})"
    yield f"  {standing['asks']} asks of pilots since then, of which it suited {standing['suited']}"
    for passed in standing["passed"]:
        yield f"  {terminal.moment(passed['at'])} UTC {passed['queue']}: {passed['why']}"


def why_queue(session: Session) -> int:
    name = session.options.name
    if session.options.asks:
        asks = session.client.queues.asks(name)
        session.printer.document(asks, _asks(asks), key="queue")
        return OK
    why = session.client.queues.why(name)
    session.printer.document(why, _empty(why), key="name")
    return OK


def _empty(why: Document) -> Iterator[str]:
    yield f"Queue {why['name']}: {why['verdict']}"
    yield f"  latest decisions about tasks that have not ended: {why['decisions']}, of which {len(why['chosen'])} took it"
    for tally in why["tallies"]:
        yield f"    {tally['criterion']}: skipped it first {tally['first']}, at all {tally['failed']}, alone {tally['alone']}"


def _asks(asks: Document) -> Iterator[str]:
    yield f"Queue {asks['queue']}: what the last asks of pilots got"
    for count in asks["counts"]:
        yield f"  {count['outcome']}: {count['ten_minutes']} in 10 min, {count['hour']} in 1 h: {count['text']}"
    for ask in asks["asks"]:
        got = f"jobs {', '.join(map(str, ask['jobs']))}" if ask["jobs"] else ask["text"]
        yield f"  {terminal.moment(ask['at'])} UTC {ask['offer']}: {got}"


def _edits(words: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE; a value that is JSON is that, an empty one is null, any other is a text."""
    edits: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise Unusable("Not an edit", repr(word), "expected is NAME=VALUE, like ramCount=2000 or queue.ALPHA.maxrss=8000")
        try:
            edits[name] = json.loads(value) if value else None
        except ValueError:
            edits[name] = value
    return edits


VERBS: Sequence[Verb] = (
    Verb(
        ("task", "why"),
        "tell why a task is where it is",
        why_task,
        (
            ONE,
            option("--queue", metavar="NAME", help="every verdict on this queue, with what would change it"),
            option("--what-if", action="append", metavar="NAME=VALUE", help="what would be decided with this; may be repeated"),
            option("--all", action="store_true", help=f"all queues that were not chosen, not the first {MOST}"),
            JSON,
            URL,
        ),
        short=True,
    ),
    Verb(("job", "why"), "tell where a job stands that waits for a pilot", why_job, (ONE, JSON, URL, WEB)),
    Verb(
        ("queue", "why"),
        "tell why a queue gets the work that it gets",
        why_queue,
        (NAME, option("--asks", action="store_true", help="what the last asks of its pilots got"), JSON),
    ),
)
