"""Which queues take part: those that the task names or its lists leave, those of its nucleus, those in service for such work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from brokerage.rules.decision.declare import Criterion, Numbers, Relaxation, Verdicts, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.queue_names import AUTO, included_names, named, names_in, near, site_text
from brokerage.rules.facts.snapshot import Queues


@filter("nonpreassigned", "the task runs only at {site}", chosen=True)
def nonpreassigned(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """A task that names where it runs goes nowhere else, nor do files that wait somewhere to be merged.

    Source: facts on the brokerage 4 (list), 3.3 (label).
    """
    site = ask.site or ask.chunk.site
    if not site:
        return True, {"site": ""}
    place = named(queues, names_in(site))
    return place, {"site": site_text(site, place)}


@filters(
    Criterion("nonpreassigned", "the jobs run only at {site}", chosen=True),
    Criterion("test", "its name says that it is for tests"),
    Criterion("type", "it is for {type}, not for production"),
    keys=("MERGE_PREASSIGNMENT",),
)
def production_candidates(
    ask: Ask, queues: Queues, _config: Config
) -> tuple[tuple[Flags | bool, Flags | bool, Flags | bool], Numbers]:
    """Queues for production without `test` in the name; or just those that the task names.

    Files that wait to be merged are merged where they are, or at queues of the same storage. Source: seed 000, production;
    facts on the brokerage 2.2.
    """
    numbers = {"site": ask.chunk.site or ask.site or "", "type": queues.type}
    if ask.chunk.site:
        return (near(queues, names_in(ask.chunk.site)), True, True), numbers
    if ask.preassigned:
        place = named(queues, names_in(ask.site))
        return (place, True, True), numbers | {"site": site_text(ask.site or "", place)}
    return (True, queues.not_test, queues.for_production), numbers


@filters(
    Criterion("excluded", "the task excludes it: {excluded}"),
    Criterion("notincluded", "the task allows only {included}"),
)
def site_lists(ask: Ask, queues: Queues, _config: Config) -> tuple[Verdicts, Numbers]:
    """excludedSite and includedSite of the task, `*` for any text; not for a task that names where it runs.

    AUTO among the included: others where none of them is left.
    Source: facts on the brokerage 3.3; production holds to them too, as no wish is passed over (decision F4).
    """
    included = included_names(ask)
    numbers = {"excluded": ", ".join(ask.excluded_sites), "included": ", ".join(included)}
    allowed = ~named(queues, ask.excluded_sites) if ask.excluded_sites and not ask.preassigned else True
    inside = named(queues, included) if included and not ask.preassigned else True
    strict = (allowed, inside)
    return Relaxation(strict, (lambda: (allowed, True),)) if AUTO in ask.included_sites else strict, numbers


@filter("status", "its status is {status}, not online", returns=True)
def status(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """The status is online, unless the task itself names the queue. Source: seed 000; facts on the brokerage 4."""
    return True if ask.preassigned else queues.online, {"status": queues.status}


@filter("processing", "it does not take work of the type {processing_type}")
def processing_type(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """The type is among those that the queue allows, if it lists any, and not among those it excludes. Source: facts 4, 5.1."""
    wanted = ask.processing_type
    takes = queues.where_text("allowed_processing", wanted, lambda types: not types or wanted in types.split("|"))
    spares = queues.where_text("excluded_processing", wanted, lambda types: not types or wanted not in types.split("|"))
    return takes & spares, {"processing_type": wanted}


@filter("banned_site", "its site {site} is among those that the task bans")
def banned_site(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Pilots at sites in `bannedSites` get no job of the task, so none goes there, also where the task names its queue.

    Source: practice alone; facts on matching a3.
    """
    banned = np.array(sorted(ask.banned_sites), dtype=np.str_)
    return ~np.isin(queues.site, banned) if ask.banned_sites else True, {"site": queues.site}


@filters(Criterion("no_station", "its site offers none of the stations {stations}; {where}", "temporary", opens=True))
def no_station(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags | bool], Numbers]:
    """Only sites that offer one of `stations` get jobs of the task: elsewhere no pilot would take them.

    A site may advertise one any time; until then input that is at other sites must not keep the task from those.
    Source: practice alone, after seed 004; decision H8.
    """
    offering = np.array(sorted(ask.station_sites), dtype=np.str_)
    place = np.isin(queues.site, offering) if ask.stations else True
    return (place,), {"stations": ", ".join(ask.stations), "where": _where_offered(ask.station_sites)}


MOST_NAMED = 5
"""Sites that a sentence names."""


def _where_offered(sites: Sequence[str]) -> str:
    if not sites:
        return "no site offers them now"
    more = f" and {len(sites) - MOST_NAMED} more sites" if len(sites) > MOST_NAMED else ""
    return f"they are offered at {', '.join(sites[:MOST_NAMED])}{more}"


ONLY_NUCLEUS = -1.0


@filter("not_nucleus", "{what} run only at {nucleus}")
def not_nucleus(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Priority 800 and more, and scouts, only at queues of the nucleus. Source: seed 000; decision B20."""
    what = "scouts" if ask.scout else f"tasks of priority {ask.priority}"
    judged = ask.high and ask.nucleus
    return queues.at_nucleus if judged else True, {"what": what, "nucleus": ask.nucleus or ""}


@filter("t1weight", "the task runs only at {nucleus}")
def t1weight(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """t1Weight -1: only queues of the nucleus, but for merge jobs. Source: seed 000; decision B8."""
    judged = ask.t1_weight == ONLY_NUCLEUS and ask.nucleus and not ask.merge
    return queues.at_nucleus if judged else True, {"nucleus": ask.nucleus or ""}
