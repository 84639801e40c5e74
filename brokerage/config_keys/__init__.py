"""Configuration keys of the brokerage: which there are, what they mean and what holds without an override.

Here: what every job broker, production and analysis read, the task broker, the caps of users and groups, the limits of job states
and what pilots are told, how files are moved, where the grid comes from and how
old it may be, and which policy and generator decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from broker_site.foundation.gdpconfig.keys import Key, declare
from broker_site.foundation.gdpconfig.table import declare_table
from brokerage.config_keys import (  # noqa: F401 - declare the keys of these
    dispatch,
    pulling,
    site_limits,
    submission,
    tally,
    transfers,
    users,
)
from brokerage.rules.decision.policy_choice import NUCLEUS, generator_key, key_for, unusable_for, unusable_generator
from brokerage.rules.dispatch.groups import group_faults
from brokerage.states import JOB

SERVER = "pandaserver"
"""The app under which practice keeps the limits of jobs and the caps of users; all other keys are of the app `jedi`."""


def _bad_groups(value: Any) -> str | None:
    lists = value.values() if isinstance(value, Mapping) else [None]
    if all(isinstance(types, list | tuple) and all(isinstance(name, str) for name in types) for types in lists):
        return None
    return "an object of lists of processing types is expected"


declare_table(
    """
[jobbroker]
# What every job broker reads.
STORAGE_MIN_FREE_SIZE | float GB | 200 | 0.. zero_is_unset | seed 000
    A queue whose output storage has less free space (the production broker: not more) is skipped (-disk).
JOBS_PER_BLOCK | int jobs | 25 | 1..10000 | facts on the brokerage 8.1; decision B19
    Jobs that are made for one queue at most before the next queue is drawn; never more than it has room for.
SCOUTS_PER_BLOCK | int jobs | 2 | 1..10000 | facts on the brokerage 8.1
    The same while the scouts of a task are made.
NQUEUELIMITSITE | int jobs | 20 | 0.. | seed 000; decision A2
    A queue takes jobs until it has more queued than this and than twice what runs. 0 = the letter of the document.
    Where no pilot asked lately and no slots are declared, no more than this wait in all.
NQUEUELIMITSITE_<gshare> | int jobs | unset | 0.. | facts on gdpconfig 1.2.1
    NQUEUELIMITSITE for one share.
LOOK_AGAIN | duration | 10s | 0s..1h | decision B18
    A task that waits for a queue is looked at again so soon after a queue that may take it got room, or a pilot asked in vain
    there. 0: only when the time is over that the brokerage told it to wait.
MEMORY_RAISE_MIN_JOBS | int jobs | 10 | 1..100000 | seed 001, memory increase in job retry; decision D5
    Once so many jobs of a task have ended, it asks for more memory itself where 30 % of the latest ran out of it.
RETRY_PAUSE | duration | 30s | 0s..30d | decision D17
    After the first try that failed an input file waits so long for the next one, after each further one twice as long. 0: not.
RETRY_PAUSE_MAX | duration | 30min | 0s..30d | decision D17
    The longest pause before the next try of a file.
REBROKER_STOPPED | duration | 15min | 0s..30d | decision D18
    Jobs that wait at a queue that has been offline for so long are closed and brokered anew, unless their task names the queue.
REBROKER_SILENT | duration | 3h | 50ms..30d | decision D18
    The same at a queue where no pilot has been seen for so long.
# The generic broker.
BEST_GENERIC | int queues | 5 | 1..1000 | facts on the brokerage 4
    How many of the best queues the generic broker takes.
PENDING_GENERIC | duration | 20min | 50ms..30d | as analysis, seed 000
    How long a task waits when the generic broker finds no queue for it.
# The production broker.
BEST_PRODUCTION | int queues | 10 | 1..1000 | seed 000
    How many of the best queues the production broker takes.
PENDING_PRODUCTION | duration | 1h | 50ms..30d | seed 000
    How long a task waits when the production broker finds no queue for it.
MEMORY_COMPENSATION | float | 0.9 | 0.1..2 | seed 000; decision B4
    Factor of the expected memory before it is compared, so that jobs near a lower limit do not need a high-memory queue.
LEAST_MAXTIME | duration | 1d | 0s..30d | seed 000
    Scouts, merge jobs and jobs of unknown walltime run only where maxtime is at least this.
INACTIVE_AFTER | duration | 2h | 50ms..30d | seed 000
    A queue where jobs wait is inactive when the last one began longer ago than this (-inactive).
NQUEUED_SAT_CAP | int files | 300 | 1.. | seed 001
    More files on the link to the nucleus: -link_unusable.
NQUEUED_NUC_CAP_FOR_JOBS | int files | 10000 | 1.. | seed 000; facts on gdpconfig 1.2.1
    More files on their way to the nucleus: -links_full.
IO_INTENSITY_CUTOFF | float kB/s | 200 | 0.. | seed 000
    Tasks with more I/O want their input near (-io).
SIZE_CUTOFF_TO_MOVE_INPUT | float GB | 10 | 0.. | seed 000
    Less input than this may be missing there.
NUM_CUTOFF_TO_MOVE_INPUT | int files | 100 | 0.. | seed 000
    Fewer files than this may be missing there.
MAX_DISKIO_DEFAULT | float kB/s | 1e10 | 0.. zero_is_unset | seed 000
    Most disk I/O per core at queues that set no maxDiskIO (-diskIO).
NW_ACTIVE | bool | true | | decision A2
    Whether the network weight counts.
NW_QUEUE_IMPORTANCE | float | 0.5 | 0..1 | seed 000
    Part of the waiting files in the network weight.
NW_THRESHOLD | float | 1.7 | 0.. | seed 000
    Least network weight for urgent tasks (-lowNetworkWeight).
NW_WEIGHT_MULTIPLIER | float | 1 | 0.. | seed 000
    Factor of NW_THRESHOLD.
T1_CLOUD_WEIGHT | float | 4 | 0.. | seed 001
    Factor of the nucleus for tasks with much I/O and t1Weight 0.
REJECT_OPPORTUNISTIC | bool | false | | decision B1
    High priority and scouts not at opportunistic queues.
PROCESSING_GROUPS | json | {} | | decision B11
    Processing group -> list of its processing types; a type that is in none is its own group.
MIN_WEIGHT_<label> | float | unset | 0.. | facts on gdpconfig 1.2.1
    Queues with a lower weight are not taken for tasks of this label (-below_min_weight).
MIN_WEIGHT_<label>_<gshare> | float | unset | 0.. | facts on gdpconfig 1.2.1
    MIN_WEIGHT for one label and share.
MERGE_SCOPE | enum site block | site | | decision D8
    When outputs of jobs are merged: once all jobs of their task at the site have ended or wait for that (site), or all that were
    made together for their queue (block).
MERGE_MAX_ATTEMPT | int tries | 3 | 1..100 | seed 001
    How often outputs of a job are tried to be merged before the job is cancelled and its input tried again.
MERGE_PREASSIGNMENT | duration | 1d | 50ms..365d | seed 000
    Merge jobs run where their input is, until the queues there have been skipped for this long.

[core]
WORK_SHORTAGE | bool | false | | facts on the brokerage 2.3
    Work is short: no jobs for opportunistic queues, nor beyond pledges; THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE holds.

[anal_jobbroker]
BEST_ANALYSIS | int queues | 10 | 1..1000 | seed 000
    How many of the best queues the analysis broker takes.
PENDING_ANALYSIS | duration | 20min | 50ms..30d | seed 000
    How long a task waits when the analysis broker finds no queue for it.
IO_INTENSITY_CUTOFF_USER | float kB/s | unset | 0.. | seed 000
    Tasks with no more I/O than this may run away from their input (-locality); unset: only where no queue has it.
DATA_CHECK_TIMEOUT_USER | duration | unset | 50ms..365d | facts on gdpconfig 1.2.2
    A task that has waited longer than this may run away from its input; unset: never.
TW_DONE_JOB_STAT | duration | 6h | 50ms..30d | seed 000
    How far back finished, failed and closed jobs of a task at a queue count (-closed, -badsite).
MIN_BAD_JOBS_TO_SKIP_PQ | int jobs | 5 | 1.. | seed 000
    With fewer failed and closed jobs of the task a queue is not bad for it (-badsite).
STORAGE_MIN_FREE_SIZE_OUTPUT | float GB | 200 | 0.. zero_is_unset | seed 000; facts on gdpconfig 1.2.2
    The output storage of a queue must have more free space (-disk).
OVERLOAD_BY_RATIO | bool | false | | decision A2
    Judge the load of queues by OVERLOAD_MIN_QUEUE and OVERLOAD_RATIO_OFFSET instead of by the document.
OVERLOAD_MIN_QUEUE | int jobs | 20 | 0.. | facts on gdpconfig 1.2.2
    With OVERLOAD_BY_RATIO: with no more jobs queued a queue is not overloaded.
OVERLOAD_RATIO_OFFSET | float | 1.2 | 0.. | facts on gdpconfig 1.2.2
    With OVERLOAD_BY_RATIO: a queue is overloaded when it has this much more queued over running jobs than all.
BASE_QUEUE_LENGTH_PER_PQ | int jobs | 100 | 0.. | facts on the brokerage 3.4
    With fewer queued jobs of the share at a queue no user is limited there (-user_limit).
BASE_EXPECTED_WAIT_HOUR_ON_PQ | float h | 8 | 0.. | facts on the brokerage 3.4
    With fewer queued jobs than begin in this many hours no user is limited there.
BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER | int jobs | 5 | 0.. | facts on the brokerage 3.4
    Queued jobs that every user may have at a queue.
BASE_QUEUE_RATIO_ON_PQ | float | 0.05 | 0.. | facts on the brokerage 3.4
    The same as a part of the running jobs of the share there.
STATIC_MAX_QUEUE_RUNNING_RATIO | float | 2 | 0.. | facts on the brokerage 3.4
    Jobs that users may queue together at a queue, as a multiple of the running jobs of the share.
MAX_EXPECTED_WAIT_HOUR | float h | 12 | 0.. | facts on the brokerage 3.4
    The same as what begins in this many hours; the larger one holds.

[anal_watchdog]
USER_TRANSFER_LIMIT | float GB | 1024 | 0.. | seed 001 (PRESTAGE_LIMIT); decision A2
    When more input than this is brought from disks for a user, or a group, no more is: tasks for which it is are throttled until
    it is less.
USER_PRESTAGE_LIMIT | float GB | 1024 | 0.. | seed 001 (PRESTAGE_LIMIT); decision A2
    The same for input that is staged from tape.
THROTTLE_PERIOD | duration | 2h | 50ms..30d | facts on data movement 2.6
    A task that is throttled for this goes on after so long without a new look at what is on the way.

[inputs]
LOOK_UP_PERIOD | duration | 1h | 50ms..30d | seed 001
    How often the files that jobs wait for are looked for at their queues, in case nobody told that they came.
LOOK_UP_PRIORITY | int | 800 | | seed 001
    Only for jobs of a higher priority than this.
STAGE_AGAIN | duration | 1h | 50ms..30d | facts on data movement 2.5
    A file that is to be staged before jobs are made, and did not come, is asked for again so long after.

[taskbrokerage]
NQUEUED_NUC_CAP | int files | 2000 | 1.. | seed 001
    A nucleus to which this many files wait for transfer takes no new task (-transfer_backlog).
DISK_THRESHOLD | float TB | 5 | 0.. | seed 001; decision A2
    A nucleus with no more usable space, less what its tasks will still write, takes no new task (-space).
DISK_THRESHOLD_<queue> | float TB | unset | 0.. | facts on gdpconfig 1.2.3
    DISK_THRESHOLD for the tasks of one share.
INPUT_SIZE_THRESHOLD | float GB | 1 | 0.. | seed 001
    Tasks with more input want a part of it at the nucleus (-insize).
INPUT_SIZE_FRACTION | float % | 10 | 0..100 | seed 001
    How much of the size of the input must be there.
INPUT_NUM_THRESHOLD | int files | 100 | 0.. | seed 001
    Tasks with more input files want a part of them at the nucleus (-innum).
INPUT_NUM_FRACTION | float % | 10 | 0..100 | seed 001
    How many of the input files must be there.
MIN_IO_INTENSITY_WITH_LOCAL_DATA | float kB/s | 200 | 0.. | facts on the brokerage 5
    Where no nucleus has enough input, tasks with no more I/O than this go without.
MIN_INPUT_SIZE_WITH_LOCAL_DATA | float GB | 10000 | 0.. | facts on the brokerage 5
    The same, if their input is not larger than this.
MAX_TASK_PRIO_WITH_LOCAL_DATA | int | 800 | | facts on the brokerage 5
    From this priority on a task goes without input at its nucleus where no nucleus has enough of it.
DATA_LOCATION_CHECK_PERIOD | duration | 7d | 50ms..365d zero_is_unset | facts on the brokerage 5
    A task that has waited longer for its nucleus goes without input there.
PENDING_NUCLEUS | duration | 30min | 50ms..30d | facts on timeouts 4.4
    How long a task stays assigning before a nucleus is looked for again.

[pandaserver:prio_mgr]
CAP_RUNNING_USER_JOBS | int jobs | unset | 0.. zero_is_unset | seed 000; facts on gdpconfig 1.2.8
    A user with more running jobs, or twice as many queued, gets no new ones.
CAP_RUNNING_USER_CORES | int cores | unset | 0.. zero_is_unset | seed 000; facts on gdpconfig 1.2.8
    The same in cores.
CAP_RUNNING_GROUP_JOBS | int jobs | unset | 0.. zero_is_unset | seed 000; facts on gdpconfig 1.2.8
    The same for a working group: its tasks count for it, not for their user.
CAP_RUNNING_GROUP_CORES | int cores | unset | 0.. zero_is_unset | seed 000; facts on gdpconfig 1.2.8
    The same in cores.

[storage]
URL_LIFE | duration | 1d | 1min..365d | facts on data movement 5
    How long after the walltime of its job an address at a storage server is good for reading and writing.
WITHDRAW_LIFE | duration | 30d | 1min..365d | facts on data movement 5
    How long an address is good for removing what its job wrote and was never settled.
LOG_MAX | int bytes | 10000000 | 1000..100000000 | decision L5
    How much of its standard output, of its standard error and of what its pilot says the log of a job keeps: of a longer one the
    first half of this and the last half.
LOG_UNPACK_MAX | int bytes | 100000000 | 1000000..10000000000 | decision L5
    How far a page unpacks the log of a job to show a piece of it. What lies behind that is told with its size, to be fetched.

[dispatch]
POLL | duration | 1s | 50ms..1h | reliability 4; facts on matching
    How long a pilot that got no job waits before it asks again.
LONG_POLL | duration | 30s | 0s..10min | issue Flow; reliability 4
    How long an ask for which there is no job may wait for one, where the pilot says that it will. 0: it is answered at once.
LEASES_PER_SLOT | int jobs | 1 | 0..10000 | reliability S15
    Jobs that a pilot may hold at a time, within its cores. 0 = as many as its cores take.
REGISTER_RATE | float | 20 | 0..1e6 | reliability S26
    Registrations a second with one enrolment secret, once REGISTER_BURST came at once; each web process counts by itself.
    0 = no limit.
REGISTER_BURST | int | 1000 | 1..1000000 | reliability S26
    Registrations with one enrolment secret that may come at once.
MATCH_RATE | float | 5 | 0..1e6 | reliability S26
    Asks for work a second of one pilot, once MATCH_BURST came at once; at least 2 in each POLL. Asks for what became of jobs
    are counted apart, by the same keys. Each web process counts by itself.
MATCH_BURST | int | 50 | 1..1000000 | reliability S26
    Asks for work of one pilot that may come at once, at least twice MATCH_RATE. So many asks a second do not count whose jobs
    finished: a slot with very short jobs is kept busy.
REPORT_RATE | float | 10 | 0..1e6 | reliability S26
    Heartbeats and reports a second of one job, four times as many at once; each web process counts by itself. 0 = no limit.
GROUPS | json | {} | | seed 002; decision H4
    Groups of owners as matching knows them: group -> {"share": 1000, "properties": ["JOB_SHARING"], "background": false}, each
    field as here where it is left out, but without properties. The share is relative to the other groups; JOB_SHARING lets the
    private pilots of any member run the jobs of all of them; with background its idle work comes after all other.
""",
    {"PROCESSING_GROUPS": {"check": _bad_groups}, "GROUPS": {"check": group_faults}},
)


_JOB_TIMEOUTS = {
    "pending": ("1h", "in pending", "seed 000"),
    "defined": ("4h", "in defined", "seed 000"),
    "waiting": ("30min", "in waiting", "seed 001"),
    "assigned": ("12h", "in assigned", "seed 000"),
    "throttled": ("7d", "in throttled", "seed 000"),
    "activated": ("2d", "in activated", "seed 000"),
    "sent": ("30min", "in sent", "seed 000"),
    "starting": ("2d", "in starting", "seed 000"),
    "running": ("21d", "in running", "seed 000"),
    "holding": ("2d", "in holding below the priority HIGH_PRIORITY", "decision A3"),
    "holding_high": ("3h", "in holding from the priority HIGH_PRIORITY on", "seed 000"),
    "transferring": ("6d", "in transferring below HIGH_PRIORITY at a queue without transtimelo", "facts on queues 5.1"),
    "transferring_high": (
        "2d",
        "in transferring from HIGH_PRIORITY on, where the queue sets no transtimehi",
        "facts on queues 5.1",
    ),
    "merging": ("7d", "in merging", "facts on timeouts 4.1"),
    "inactive_high": ("4h", "in activated or starting from HIGH_PRIORITY on at an inactive queue", "seed 000"),
}

for _state, (_limit, _where, _source) in _JOB_TIMEOUTS.items():
    declare_table(f"""
[{SERVER}:job_timeout]
TIMEOUT_{_state} | duration | {_limit} | 50ms..365d{" zero_is_unset" if _state in JOB.zero_limit else ""} | {_source}
    The longest time that a job may be {_where}. After it the job is ended and its input goes back.
""")

declare_table("""
[pandaserver:job_timeout]
INACTIVE_AFTER | duration | 2h | 50ms..365d | seed 000
    A queue is inactive when its last job began longer ago than this.
HIGH_PRIORITY | int | 800 | | seed 000
    From this priority on the shorter time limits hold.

[pandaserver:watcher]
HEARTBEAT_TIMEOUT_<workflow> | duration | 2h | 50ms..365d | seed 000
    How long a job may be silent while it starts or runs at a queue of this workflow, or transfers with own stage-out. Queues
    without workflow, or without an own value for it, take the value of analysis or production.
""")

for _subject, _content, _warn_age in (
    ("QUEUES", "sites and queues", "6h"),
    ("STORAGES", "storage endpoints and their space", "6h"),
    ("RELEASES", "software", "1d"),
):
    declare_table(f"""
[feeds]
FEED_WARN_AGE_{_subject} | duration | {_warn_age} | 50ms..365d | decision B14
    From this age on a feed of {_content} is marked as old; it is still used.
FEED_MAX_AGE_{_subject} | duration | 2d | 50ms..365d | decision B14
    When a feed of {_content} is older than this, production and analysis tasks wait.
""")


def _bad_folders(value: Any) -> str | None:
    for path in map(PurePosixPath, value):
        if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            return f"{str(path)!r} is not an absolute folder without '..'"
    return None


declare_table(
    """
[feeds]
FEED_PERIOD | duration | 200s | 50ms..1d | facts, agents 6 (configurator)
    How often each feed is read.
FEED_TIMEOUT | duration | 30s | 50ms..1min | issue Brokerage
    The longest time that one reading of a feed may take, from connecting to the last byte.
FEED_MAX_SIZE | size | 100MB | 1kB..1GB | issue Brokerage
    The largest document that a feed may give.
FEED_MAX_LOSS | float | 0.2 | 0..1 | decision B15
    The part of its known entries that a feed may no longer have at once; with more it is refused as a whole.
FEED_HOSTS | list | [] | | issue Brokerage
    Hosts that feeds may be read from: `name` (port 80 for http, 443 for https) or `name:port`. Others are refused, also after
    a redirection.
FEED_FOLDERS | list | [] | | issue Brokerage
    Folders whose files may be feeds; links that lead out of them are refused.
""",
    {"FEED_FOLDERS": {"check": _bad_folders}},
)

for _activity, _choice in {
    "production": "queues of production tasks",
    "analysis": "queues of analysis tasks",
    "generic": "queues of tasks that are neither production nor analysis",
    "nucleus": "nuclei of tasks",
}.items():
    _name = partial(Key, component="core", type="str", default=None, low=1, high=100)
    declare(
        _name(
            name=key_for(_activity),
            doc=f"The policy that chooses the {_choice}, by its name in `manage.py criteria`; unset = `{_activity}`. "
            "One of a plugin decides only where it is named here; while that plugin cannot be loaded the tasks wait.",
            source="mission P1",
            known=unusable_for(_activity),
        )
    )
    if _activity != NUCLEUS:
        declare(
            _name(
                name=generator_key(_activity),
                doc=f"The generator that makes the jobs of {_activity} tasks; unset = `standard`, by the split rule of the task. "
                "While the plugin that brings it cannot be loaded the tasks wait.",
                source="seed 001, plugins to generate jobs",
                known=unusable_generator,
            )
        )
