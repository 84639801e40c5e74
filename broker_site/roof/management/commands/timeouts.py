"""`manage.py timeouts`: the time-out rules of jobs as Markdown, from the table by which the agent reap works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

from broker_site.foundation.gdpconfig.keys import KEYS
from brokerage.config_keys import SERVER
from brokerage.rules.dispatch.timeout_table import ALL_KINDS, LEFT_OUT, RULES, TimeoutRule
from brokerage.rules.dispatch.timeouts import SUSPENSIONS


class Command(BaseCommand):
    help = "Print the time-out rules of jobs as Markdown."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("\n".join(page()))


def page() -> Iterator[str]:
    """The table of rules, what suspends them, and the rules that are not built."""
    yield "| state | kinds | only where | longest | key | counted from | ends | source | practice otherwise |"
    yield "|---|---|---|---|---|---|---|---|---|"
    yield from map(_row, RULES)
    yield ""
    yield "None of these rules holds for a job whose"
    yield ""
    yield from (f"- {suspension};" for suspension in SUSPENSIONS[:-1])
    yield f"- {SUSPENSIONS[-1]}."
    yield ""
    yield "| rule that is not built | why |"
    yield "|---|---|"
    yield from (f"| {rule} | {why} |" for rule, why in LEFT_OUT.items())


def _row(rule: TimeoutRule) -> str:
    component = "watcher" if rule.since == "sign of life" else "job_timeout"
    key = KEYS.get(component, rule.limit, SERVER)
    longest = (
        f"`{rule.queue_days}` days of the queue, else {key.write(key.default)}" if rule.queue_days else key.write(key.default)
    )
    kinds = "all" if rule.kinds == ALL_KINDS else ", ".join(kind.label for kind in rule.kinds)
    since = "the last sign of life" if rule.since == "sign of life" else "when it got there"
    cells = (
        rule.state,
        kinds,
        _where(rule),
        longest,
        f"`{component}.{rule.limit}`",
        since,
        rule.ending,
        rule.source,
        rule.practice,
    )
    return f"| {' | '.join(cells)} |"


def _where(rule: TimeoutRule) -> str:
    high = "`job_timeout.HIGH_PRIORITY`"
    words = {"any": "", "low": f"priority below {high}", "high": f"priority from {high} on"}[rule.priority]
    parts = [
        words,
        "no job began at the queue for `job_timeout.INACTIVE_AFTER`" if rule.inactive else "",
        "it has a sub status: stage-out by means of the site" if rule.staging else "",
    ]
    return ", and ".join(filter(None, parts))
