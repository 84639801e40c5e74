"""Configuration keys of limits at sites: what sites advertise, running limits, and delays between matches."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table
from brokerage.rules.dispatch.limited_sites import no_site
from brokerage.rules.dispatch.match_limits import delay_fault, running_fault

declare_table(
    """
[dispatch]
SITE_AD_MAX_AGE | duration | 15min | 50ms..7d | seed 004; decision H8
    When the count in the last advertisement of a site is older than this, the site gets no job: three in a row were lost of a
    site that sends one every 5 minutes.
SITE_CLOCK_ERROR | duration | 5s | 0s..1h | seed 004
    How far the clock of a site may be wrong. A count may be so much in the future, and jobs that the site got within so long
    before it are taken for not counted.
SITE_BLOCK_LIFE | duration | 1s | 50ms..1min | decision H8
    How long a web process keeps the room of a site that it took, ten jobs at most; then it hands back what it did not use.
RUNNING_LIMITS | json | {} | | facts on matching a6
    Most jobs of a kind that hold slots at a site: {site: {attribute: {value: jobs}}}, and for its computing elements
    {site: {"CEs": {computing element: {attribute: {value: jobs}}}}}. Each holds on its own. A site has to be one of the grid.
RUNNING_COUNT_PERIOD | duration | 1s | 0s..10min | facts on matching a6
    How often the jobs of a site with RUNNING_LIMITS are counted; matches since are added.
MATCHING_DELAYS | json | {} | | facts on matching a6
    Seconds between two matches of jobs of a kind at a site: {site: {attribute: {value: seconds}}}, where instead of the seconds
    {"interval": seconds, "burst": matches} lets so many through at once. A site has to be one of the grid.
""",
    {"RUNNING_LIMITS": {"check": running_fault, "known": no_site}, "MATCHING_DELAYS": {"check": delay_fault, "known": no_site}},
)
