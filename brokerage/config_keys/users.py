"""Configuration keys of what users and groups may have at once, and of jobs that wait at a queue for too long."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table
from brokerage.rules.placement.user_priority import bad_boosts

declare_table(
    """
[pandaserver:prio_mgr]
CAP_JOBS_RELEASE | float | 0.9 | 0..1 | facts on users 7
    Jobs that are held back since their user has more running than his cap are let go below this part of it.
CAP_TASKS_THROTTLE | float | 0.95 | 0..1 | facts on users 7
    Tasks of a user make no more jobs from this part of his cap on, by what runs, or of twice the cap, by what waits.
CAP_TASKS_RELEASE | float | 0.85 | 0..1 | facts on users 7
    They go on below this part of both.
CAP_LOOK | duration | 5s | 50ms..1h | facts on users 7
    While jobs or tasks of somebody are held back for a cap, it is looked so often whether there is room again.

[task_withholder]
LIMIT_PRIORITY_<label> | int | unset | | facts on gdpconfig 1.2.7
    Tasks of this source label and of a lower priority make no jobs while their input is only at queues that are busy, or take no
    jobs; unset: never.
LIMIT_IOINTENSITY_<label> | float kB/s | 100 | 0.. | facts on gdpconfig 1.2.7
    Only those with more I/O than this; 100 at least.

[pandaserver:rebroker]
ANALY_TIMEOUT | duration | 12h | 0s..365d | seed 001, input data transfer
    Jobs of a user that wait at a queue for longer are brokered anew, where no other job of their task got on there lately.
ANALY_TIMEOUT_<group> | duration | unset | 0s..365d zero_is_unset | facts on timeouts 4.6
    The same for jobs of a working group.
ANALY_QUIET | duration | 3h | 50ms..30d | facts on timeouts 4.6
    Lately means in this time, which they wait in any case; at a queue that is offline or in test no longer than this.

FAST_REBRO_THRESHOLD_NQNR_RATIO | float | 3 | 0.. zero_is_unset | seed 000; facts on timeouts 4.3
    Jobs of a share leave a queue where more than so many times the running ones wait, if the two further thresholds are
    exceeded too; so many as are above all three.
FAST_REBRO_THRESHOLD_NQUEUE_FRAC | float | 0.3 | 0..1 zero_is_unset | seed 000; facts on timeouts 4.3
    The second: the part that waits there of all jobs of the share that wait; queues with declared slots do not count.
FAST_REBRO_THRESHOLD_NQUEUE_<gshare> | int jobs | unset | 0.. zero_is_unset | seed 000; decision D3
    The third: how many jobs of this share wait there. Unset: jobs of the share stay.
FAST_REBRO_MIN_AGE | duration | 10min | 50ms..30d | decisions D3, A3
    Jobs that have stood as they do for less than this stay. After jobs of a share have left a queue no others of it leave there
    for as long.

[pandaserver:dbproxy]
USER_JOB_PRIO_BOOST_DICTS | json | [] | | facts on gdpconfig 1.2.8
    Users and groups whose new jobs get another priority: a list of {"name": ..., "type": "user" or "group", "prio": ...,
    "expire": "YYYYMMDD", the last day, or null}.

[jobgen]
USER_JOBS_PER_POINT | float jobs | 5 | 0.. | facts on the brokerage 10
    For so many jobs that a user, or group, has already the next one gets a priority that is lower by one. 0 = never.
""",
    {"USER_JOB_PRIO_BOOST_DICTS": {"check": bad_boosts}},
)
