"""Thresholds of sites beside what is there: the page of submission. Bounded by what may be submitted at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.agency.models import Agent
from brokerage.models import LocalOverride, Site
from brokerage.queries.submission import caps_seen, cycle_rules, site_facts
from brokerage.rules.submission.site_caps import Caps
from brokerage.rules.submission.submission_cycle import WAIT_TEXTS, CycleRules, SubmissionSite, next_stop
from monitoring.queries.database import alias

EDITED = ("state", "cpu_slots", "io_slots")
"""Attributes of a site that are set on its page."""


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """A site with all kinds of jobs together (`kind` empty), or with one kind: thresholds, what is there, what stops the next.

    `highest_priority`: of the jobs that are there. `stops`: empty: the next job may go.
    """

    site: str
    kind: str
    state: str
    queues: str
    cpu_slots: int
    io_slots: int
    pending: int
    pending_threshold: int
    running: int
    running_threshold: int
    highest_priority: int | None
    stops: str
    why: str


def submission_rows(scope: VoScope) -> list[SubmissionRow]:
    """By site; of each all kinds, then one after the other. The grid is the same for all VOs."""
    facts, rules = site_facts(alias()), cycle_rules()
    there = sum(use.pending + use.running for site in facts.sites.values() for use in site.use.values())
    names: dict[str, list[str]] = {}
    for queue in facts.queues.values():
        names.setdefault(queue.site, []).append(queue.name)
    caps = caps_seen(facts.sites, alias()) if facts.sites else {}
    return [row for site in facts.sites.values() for row in _rows(site, sorted(names[site.name]), rules, there, caps)]


def _rows(site: SubmissionSite, queues: Sequence[str], rules: CycleRules, there: int, caps: Caps) -> Iterator[SubmissionRow]:
    load = site.load(rules.rule)
    for kind, one in (("", load.site), *load.kinds.items()):
        stops = next_stop(site, kind, rules, there, caps)
        highest = None if one.highest_priority is None else int(one.highest_priority)
        uses = (one.pending, one.pending_slots, one.running, one.running_slots)
        slots = site.cpu_slots, site.io_slots
        yield SubmissionRow(
            site.name, kind, site.state, ", ".join(queues), *slots, *uses, highest, stops, WAIT_TEXTS.get(stops, "")
        )


def submission_context() -> Mapping[str, Any]:
    """The hard limit, and what the agent could not do at its last run."""
    rules = cycle_rules()
    left = Agent.objects.using(alias()).filter(name="submit").values_list("left_out", flat=True).first() or ""
    return {"hard_limit": rules.hard_limit, "left": left.splitlines(), "part": rules.part, "max_jobs": rules.max_jobs}


@dataclass(frozen=True, slots=True)
class SiteEdit:
    """What is set by hand at a site: attribute -> text (empty: nothing), and what its document says beneath."""

    name: str
    typed: Mapping[str, str]
    document: Mapping[str, Any]


def site_edit(name: str) -> SiteEdit | None:
    """None where there is no such site."""
    site = Site.objects.using(alias()).filter(name=name).first()
    if site is None:
        return None
    rows = LocalOverride.objects.using(alias()).filter(kind="site", name=name, attribute__in=EDITED)
    overrides = {row.attribute: row for row in rows}
    typed = {a: overrides[a].value if a in overrides else "" for a in EDITED}
    return SiteEdit(name, typed, {a: overrides[a].beneath if a in overrides else getattr(site, a) for a in EDITED})
