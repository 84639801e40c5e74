"""What follows from retry rules when jobs fail: in the transaction of their end, for all of them together.

Which rules hold: `brokerage.rules.dispatch.retry_rules`. A job that does not fail pays nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.ending_jobs import EndingJob
from brokerage.ledger.memory_retry import MemoryFailure, ask_for_more_memory
from brokerage.ledger.reduced_input import InputFailure, ask_for_less_input
from brokerage.ledger.time_retry import ask_for_more_time
from brokerage.models import RetryRule
from brokerage.rules.dispatch.retry_rules import (
    ACTIONS,
    INCREASE_CPUTIME,
    INCREASE_MEMORY,
    LIMIT_RETRY,
    NO_RETRY,
    NOT_COUNTED,
    NOTHING,
    REDUCE_INPUT,
    Chosen,
    FailedJob,
    JobError,
    Rule,
    chosen,
)
from workqueues.ledger.files import JobOutcome, TryLimit

_FACTS = Prepared(
    "facts_of_failed_jobs",
    "bigint[]",
    """
    SELECT j.id, j.attempt_nr, t.architecture, t.trans_uses, j.work_queue_id
    FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id WHERE j.id = ANY($1)
    """,
)
_TELL = Prepared(
    "tell_retry_actions",
    "bigint[], text[]",
    """
    UPDATE brokerage_jobresult r SET retry_actions = v.told::jsonb FROM unnest($1, $2) AS v(job_id, told)
    WHERE r.job_id = v.job_id
    """,
)


class Failure(NamedTuple):
    """A job that fails, and with what. `most_memory_mb`: the most memory that its payload used; 0: not measured."""

    job: EndingJob
    errors: Sequence[JobError]
    most_memory_mb: float = 0.0


class Following(NamedTuple):
    """The rules that hold for a failed job, which is the `attempt_nr`-th try of its inputs."""

    failure: Failure
    attempt_nr: int
    held: Chosen

    def limited(self, outcome: JobOutcome) -> JobOutcome:
        """The end as the job's files see it, with what the rules say of their tries."""
        if rule := self.held.limit:
            most = rule.max_attempt if rule.action == LIMIT_RETRY else None
            outcome = replace(outcome, limit=TryLimit(most, self.attempt_nr, f"retry rule {rule.name}: {_limit_told(rule)}"))
        if self.held.action(NOT_COUNTED):
            outcome = replace(outcome, outcome="returned", unreadable=True)
        return outcome


Followings = Mapping[int, Following]
"""By job, where a rule matches."""


def rules_now() -> list[Rule]:
    """The rules that have not expired, in no order."""
    rows = RetryRule.objects.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))
    columns = ("name", "action", "vo", "component", "error_code", "pattern", "architecture", "release", "computing_queue",
               "work_queue", "max_attempt", "active")  # fmt: skip
    return [Rule(*row) for row in rows.values_list(*columns)]


def followings(failures: Sequence[Failure]) -> Followings:
    """What follows from these failures, before the jobs end; two statements. Of a merge job only more memory."""
    if not failures or not (rules := rules_now()):
        return {}
    facts = {row[0]: row[1:] for row in _FACTS.run([failure.job.id for failure in failures])}
    found = {}
    for failure in failures:
        attempt_nr, architecture, release, work_queue = facts.get(failure.job.id, (1, "", "", None))
        job = FailedJob(failure.errors, failure.job.vo, architecture, release, failure.job.queue, work_queue)
        usable = [rule for rule in rules if rule.action == INCREASE_MEMORY or not failure.job.merges]
        if (held := chosen(usable, job)) != NOTHING:
            found[failure.job.id] = Following(failure, attempt_nr, held)
    return found


def carry_out(found: Followings) -> None:
    """Do what the rules say beside limits of tries, and write all of it down: once the jobs have ended and have results."""
    if not found:
        return
    memory = ask_for_more_memory(
        [
            MemoryFailure(id_, each.failure.most_memory_mb, each.failure.job.merges, rule.name)
            for id_, each in found.items()
            if (rule := each.held.action(INCREASE_MEMORY))
        ]
    )
    reducing = {id_: each for id_, each in found.items() if each.held.action(REDUCE_INPUT)}
    less = ask_for_less_input([InputFailure(id_, each.attempt_nr) for id_, each in reducing.items()])
    time = ask_for_more_time([id_ for id_, each in found.items() if each.held.action(INCREASE_CPUTIME)])
    words = {INCREASE_MEMORY: memory, REDUCE_INPUT: less, INCREASE_CPUTIME: time}
    told = {id_: _told(each.held, {name: said.get(id_, "") for name, said in words.items()}) for id_, each in found.items()}
    _TELL.run(list(told), [json.dumps(lines) for lines in told.values()])


def _told(held: Chosen, said: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    words = {**said, NOT_COUNTED: "a try of its files, but no failure"}
    done = [(rule, words.get(rule.action) or _limit_told(rule)) for rule in held.rules]
    idle = [(rule, f"{ACTIONS[rule.action]}, if the rule were active: nothing was done") for rule in held.idle]
    return [{"rule": rule.name, "action": rule.action if rule.active else "", "told": text} for rule, text in [*done, *idle]]


def _limit_told(rule: Rule) -> str:
    return "its files are not tried again" if rule.action == NO_RETRY else f"its files are tried {rule.max_attempt} times at most"
