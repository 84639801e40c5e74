"""Configuration keys of what is counted of jobs over time."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table

declare_table(
    """
[tally]
COMPARE | duration | 15min | 1s..7d | decision L3
    So often the counted numbers of jobs in each state are compared with the jobs themselves and put right, and
    counts that are too old removed.
KEEP_MINUTES | duration | 2d | 2h..30d | decision L3
    So long counts by the minute are kept.
KEEP_5_MINUTES | duration | 14d | 1d..365d | decision L3
    So long counts by five minutes are kept.
KEEP_HOURS | duration | 730d | 7d..3650d | decision L3
    So long counts by the hour are kept.
KEEP_DAYS | duration | 1825d | 30d..3650d | decision L3
    So long counts by the day are kept.
KEEP_ERROR_TASKS | duration | 14d | 8d..365d | decision L3
    So long it is kept which tasks an error was met in, from the last job of the task that ended with it.
"""
)
