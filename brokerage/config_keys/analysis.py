"""Keys of the analysis broker, and the caps of users and groups, which practice keeps under another app."""

from __future__ import annotations

from functools import partial

from broker_site.foundation.gdpconfig.keys import Key, declare
from brokerage.config_keys.job_limits import SERVER

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0

_key = partial(Key, component="anal_jobbroker")
_cap = partial(
    Key,
    component="prio_mgr",
    app=SERVER,
    type="int",
    default=None,
    low=0,
    zero_is_unset=True,
    source="seed 000; facts on gdpconfig 1.2.8",
)

declare(
    _cap(
        name="CAP_RUNNING_USER_JOBS", unit="jobs", doc="A user with more running jobs, or twice as many queued, gets no new ones."
    ),
    _cap(name="CAP_RUNNING_USER_CORES", unit="cores", doc="The same in cores."),
    _cap(
        name="CAP_RUNNING_GROUP_JOBS",
        unit="jobs",
        doc="The same for a working group: its tasks count for it, not for their user.",
    ),
    _cap(name="CAP_RUNNING_GROUP_CORES", unit="cores", doc="The same in cores."),
    _key(
        name="BEST_ANALYSIS",
        type="int",
        unit="queues",
        default=10,
        low=1,
        high=1000,
        doc="How many of the best queues the analysis broker takes.",
        source="seed 000",
    ),
    _key(
        name="PENDING_ANALYSIS",
        type="duration",
        default=20 * _MINUTE,
        low=0.05,
        high=30 * _DAY,
        doc="How long a task waits when the analysis broker finds no queue for it.",
        source="seed 000",
    ),
    _key(
        name="IO_INTENSITY_CUTOFF_USER",
        type="float",
        unit="kB/s",
        default=None,
        low=0,
        doc="Tasks with no more I/O than this may run away from their input (-locality); unset: only where no queue has it.",
        source="seed 000",
    ),
    _key(
        name="DATA_CHECK_TIMEOUT_USER",
        type="duration",
        default=None,
        low=0.05,
        high=365 * _DAY,
        doc="A task that has waited longer than this may run away from its input; unset: never.",
        source="facts on gdpconfig 1.2.2",
    ),
    _key(
        name="TW_DONE_JOB_STAT",
        type="duration",
        default=6 * _HOUR,
        low=0.05,
        high=30 * _DAY,
        doc="How far back finished, failed and closed jobs of a task at a queue count (-closed, -badsite).",
        source="seed 000",
    ),
    _key(
        name="MIN_BAD_JOBS_TO_SKIP_PQ",
        type="int",
        unit="jobs",
        default=5,
        low=1,
        doc="With fewer failed and closed jobs of the task a queue is not bad for it (-badsite).",
        source="seed 000",
    ),
    _key(
        name="STORAGE_MIN_FREE_SIZE_OUTPUT",
        type="float",
        unit="GB",
        default=200.0,
        low=0,
        zero_is_unset=True,
        doc="The output storage of a queue must have more free space (-disk).",
        source="seed 000; facts on gdpconfig 1.2.2",
    ),
    _key(
        name="OVERLOAD_BY_RATIO",
        type="bool",
        default=False,
        doc="Judge the load of queues by OVERLOAD_MIN_QUEUE and OVERLOAD_RATIO_OFFSET instead of by the document.",
        source="decision A2",
    ),
    _key(
        name="OVERLOAD_MIN_QUEUE",
        type="int",
        unit="jobs",
        default=20,
        low=0,
        doc="With OVERLOAD_BY_RATIO: with no more jobs queued a queue is not overloaded.",
        source="facts on gdpconfig 1.2.2",
    ),
    _key(
        name="OVERLOAD_RATIO_OFFSET",
        type="float",
        default=1.2,
        low=0,
        doc="With OVERLOAD_BY_RATIO: a queue is overloaded when it has this much more queued over running jobs than all.",
        source="facts on gdpconfig 1.2.2",
    ),
    _key(
        name="BASE_QUEUE_LENGTH_PER_PQ",
        type="int",
        unit="jobs",
        default=100,
        low=0,
        doc="With fewer queued jobs of the share at a queue no user is limited there (-user_limit).",
        source="facts on the brokerage 3.4",
    ),
    _key(
        name="BASE_EXPECTED_WAIT_HOUR_ON_PQ",
        type="float",
        unit="h",
        default=8.0,
        low=0,
        doc="With fewer queued jobs than begin in this many hours no user is limited there.",
        source="facts on the brokerage 3.4",
    ),
    _key(
        name="BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
        type="int",
        unit="jobs",
        default=5,
        low=0,
        doc="Queued jobs that every user may have at a queue.",
        source="facts on the brokerage 3.4",
    ),
    _key(
        name="BASE_QUEUE_RATIO_ON_PQ",
        type="float",
        default=0.05,
        low=0,
        doc="The same as a part of the running jobs of the share there.",
        source="facts on the brokerage 3.4",
    ),
    _key(
        name="STATIC_MAX_QUEUE_RUNNING_RATIO",
        type="float",
        default=2.0,
        low=0,
        doc="Jobs that users may queue together at a queue, as a multiple of the running jobs of the share.",
        source="facts on the brokerage 3.4",
    ),
    _key(
        name="MAX_EXPECTED_WAIT_HOUR",
        type="float",
        unit="h",
        default=12.0,
        low=0,
        doc="The same as what begins in this many hours; the larger one holds.",
        source="facts on the brokerage 3.4",
    ),
)
