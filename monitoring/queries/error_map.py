"""Where jobs end with which error: sites against codes of errors, of the roll-ups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel.filter_words import quoted
from brokerage.models import ComputingQueue
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.facts.rollups import Family
from brokerage.rules.facts.series import Asked
from brokerage.states import JOB
from monitoring.queries.database import alias
from monitoring.queries.job_errors import ALL, IN_WINDOW, Chosen, in_window
from monitoring.queries.series import WINDOWS

MOST_SITES, MOST_CODES = 12, 8
"""Of the map; the others are added up."""
LEVELS = 5
"""Shades of a cell; each is for some times as many jobs as the one before."""
MOST_NAMED = 20
"""Queues of a site that a link names."""

_COUNTED = KeptCounts(f"""
SELECT g.queue, f.code, sum(b.n)::bigint
FROM brokerage_tallygroup g JOIN brokerage_tallybucket b ON b.group_id = g.id
    JOIN brokerage_errorfingerprint f ON f.id = g.fingerprint
WHERE g.family = %(family)s AND (%(groups)s::int[] IS NULL OR g.id = ANY (%(groups)s)) AND {IN_WINDOW}
GROUP BY 1, 2
""")


@dataclass(frozen=True, slots=True)
class SiteError:
    """Jobs of a site that ended with errors of a code; `site` is empty where they were at no queue, or at one that is gone."""

    site: str
    code: str
    jobs: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of jobs, how dark it is, and the filter that shows them; no `code` or `queues` where none does."""

    jobs: int
    level: int
    code: str = ""
    queues: str = ""


@dataclass(frozen=True, slots=True)
class MapRow:
    """A site with the numbers of the codes in their order; `others`: of the rarer codes."""

    site: str
    cells: Sequence[Cell]
    others: int
    jobs: int


@dataclass(frozen=True, slots=True)
class ErrorMap:
    """Sites against codes, those with most jobs first; `n_sites` and `n_codes` are not shown, `more`: jobs of those sites."""

    codes: Sequence[str]
    rows: Sequence[MapRow]
    n_sites: int
    n_codes: int
    more: int

    @property
    def tells(self) -> bool:
        """Whether there is something to compare."""
        return len(self.rows) > 1 or len(self.codes) > 1


def map_of(counted: Rows) -> ErrorMap:
    """The map of queue, code and jobs; one statement."""
    return error_map(*by_site(counted))


def error_map(found: Sequence[SiteError], queues: Mapping[str, Sequence[str]]) -> ErrorMap:
    """`queues`: site -> its queues where jobs ended so."""
    of_sites: Counter[str] = Counter()
    by_code: Counter[str] = Counter()
    numbers: Counter[tuple[str, str]] = Counter()
    for error in found:
        of_sites[error.site] += error.jobs
        by_code[error.code] += error.jobs
        numbers[error.site, error.code] += error.jobs
    sites, codes = most_first(of_sites), most_first(by_code)
    shown, columns = sites[:MOST_SITES], codes[:MOST_CODES]
    most = max((numbers[site, code] for site in shown for code in columns), default=0)
    rows = []
    for site in shown:
        named = ",".join(map(quoted, queues.get(site, ()))) if len(queues.get(site, ())) <= MOST_NAMED else ""
        of_site = [(code, numbers[site, code]) for code in columns]
        cells = [Cell(n, level(n, most), quoted(code) if code else "", named) for code, n in of_site]
        rows.append(MapRow(site, cells, of_sites[site] - sum(cell.jobs for cell in cells), of_sites[site]))
    more = sum(of_sites[site] for site in sites[MOST_SITES:])
    return ErrorMap(columns, rows, max(len(sites) - MOST_SITES, 0), max(len(codes) - MOST_CODES, 0), more)


def most_first(numbers: Mapping[str, int]) -> list[str]:
    """The names, those with most first."""
    return sorted(numbers, key=lambda name: (-numbers[name], name))


def level(n: int, most: int) -> int:
    """0 for nothing, 1 for one job, LEVELS for most."""
    if n <= 0:
        return 0
    return LEVELS if n >= most else 1 + int((LEVELS - 1) * math.log(n) / math.log(most))


def site_errors(scope: VoScope, window: str, of: Chosen = ALL) -> tuple[Sequence[SiteError], Mapping[str, Sequence[str]]]:
    """Jobs of a window that ended badly by site and code, most first, and the queues of each site; two statements.

    None where the filter is by owner: errors are not counted by queue and owner together.
    """
    if Family.ERROR_AT not in of.told:
        return (), {}
    window_s, step_s = WINDOWS[window]
    values = {
        **in_window(Asked(tuple(JOB.unsuccessful), window_s, step_s), scope),
        "family": Family.ERROR_AT.value,
        "groups": None if of.groups is None else list(of.groups.get(Family.ERROR_AT, ())),
    }
    return by_site(_COUNTED.answer(values, _rows, using=alias()))


def by_site(counted: Rows) -> tuple[Sequence[SiteError], Mapping[str, Sequence[str]]]:
    """The same of queue, code and jobs; one statement."""
    names = {queue for queue, _, _ in counted}
    site_of = dict(ComputingQueue.objects.using(alias()).filter(name__in=names).values_list("name", "site__name"))
    sums: Counter[tuple[str, str]] = Counter()
    queues: dict[str, set[str]] = {}
    for queue, code, n in counted:
        site = site_of.get(queue, "")
        sums[site, code] += n
        if site:
            queues.setdefault(site, set()).add(queue)
    found = [SiteError(site, code, n) for (site, code), n in sorted(sums.items(), key=lambda item: (-item[1], item[0]))]
    return found, {site: sorted(of_site) for site, of_site in queues.items()}


def _rows(found: Rows) -> Rows:
    return found
