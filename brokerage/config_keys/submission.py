"""Configuration keys of submission: thresholds of sites, the cache of jobs that wait, and the hard limit (row W4)."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table

declare_table(
    """
[submission]
CACHE_PERIOD | duration | 20min | 50ms..1d | seed 003
    How old the list of jobs that wait to be submitted may be where more wait than it holds. One that holds all is read anew at
    every look, and any at once when other sites drain or are down.
CACHE_SIZE | int jobs | 30000 | 1..100000 | seed 003
    How many jobs the list holds: those of the first kinds, the highest priorities and the lowest numbers.
MOST_PER_CYCLE | int jobs | 1000 | 1..10000 | facts on work queues b7
    Jobs that are submitted at one look.
MAX_JOBS | int jobs | 1000 | 0..1000000 | seed 003; decision J8
    What can be submitted at a time, waiting and running, at all sites. No priority exceeds it. 0: nothing is submitted.
MAX_JOBS_PART | float | 0.75 | 0..1 | facts on work queues b7
    The part of MAX_JOBS that is used.
HIGHER_PRIORITY_PART | float | 0.2 | 0..1 | seed 003
    Jobs of a higher priority than all of their kind at a site may exceed its thresholds by this part. Merge jobs never do.
SITE_PENDING_PERCENT | int | 50 | 0..1000 | facts on work queues b6
    Jobs that may wait at a site, in percent of its slots.
KIND_PENDING_PERCENT | int | 45 | 0..1000 | facts on work queues b6
    Jobs of one kind that may wait at a site, in percent of its slots.
FEWEST_CPU_SLOTS | int jobs | 50 | 0..100000 | facts on work queues b6
    So many may wait and run at a site, however few slots it has: all together, and those that compute.
FEWEST_IO_SLOTS | int jobs | 25 | 0..100000 | facts on work queues b6
    The same for jobs that mostly read and write, as those that merge.
DRAIN_GRACE | duration | 2d | 0s..365d | facts on work queues b7
    How long a job waits where all of its sites drain; then it is closed, and its input goes elsewhere.
"""
)
