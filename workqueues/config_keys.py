"""Configuration keys of demand: which there are, what they mean and what holds without an override."""

from __future__ import annotations

from functools import partial

from broker_site.foundation.gdpconfig.keys import Key, declare
from workqueues.rules.throttle.limits import ANALYSIS, PRODUCTION

_MINUTE, _DAY = 60.0, 86400.0

declare(
    Key(
        component="watchdog",
        name="PENDING_WAIT",
        type="duration",
        default=60 * _MINUTE,
        low=0.05,
        high=30 * _DAY,
        doc="How long a pending task rests before it is tried again.",
        source="facts on timeouts 4.4; seed 000: 1 hour",
    ),
    Key(
        component="watchdog",
        name="PENDING_WAIT_ANALYSIS",
        type="duration",
        default=20 * _MINUTE,
        low=0.05,
        high=30 * _DAY,
        doc="The same for analysis tasks.",
        source="seed 000: 20 minutes",
    ),
    Key(
        component="watchdog",
        name="PENDING_WAIT_PRIO_900",
        type="duration",
        default=30 * _MINUTE,
        low=0.05,
        high=30 * _DAY,
        doc="The same for production tasks of priority 900 and more.",
        source="facts on timeouts 4.4",
    ),
    Key(
        component="watchdog",
        name="PENDING_WAIT_PRIO_950",
        type="duration",
        default=10 * _MINUTE,
        low=0.05,
        high=30 * _DAY,
        doc="The same for production tasks of priority 950 and more.",
        source="facts on timeouts 4.4",
    ),
    Key(
        component="watchdog",
        name="PENDING_TIMEOUT_<label>",
        type="duration",
        default=7 * _DAY,
        low=0.05,
        high=3650 * _DAY,
        doc="A task of this source label pending for longer without success becomes exhausted; not while its parent runs.",
        source="facts on gdpconfig 1.2.7",
    ),
    Key(
        component="dbproxy",
        name="MAX_ACTIVE_TASKS_PER_USER_<label>",
        type="int",
        unit="tasks",
        default=None,
        low=0,
        app="pandaserver",
        doc="A new task of this source label is refused while its owner has more active ones than this; unset: no limit.",
        source="facts on gdpconfig 1.2.4; facts on task parameters 2.4",
    ),
    Key(
        component="jobsplitter",
        name="MAX_FILES_PER_JOB",
        type="int",
        unit="files",
        default=200,
        low=1,
        high=10_000,
        doc="Most master files of a job whose task sets neither nFilesPerJob nor nMaxFilesPerJob.",
        source="facts on splitting 8.1",
    ),
)

declare(
    Key(
        component="shares",
        name="SHARE_MODEL",
        type="enum",
        choices=("global", "work_queue"),
        default="global",
        doc="What drives the work of a VO: the leaves of its share tree, or its work queues (also without a tree).",
        source="decision C1",
    ),
    Key(
        component="jobgen",
        name="JOB_SUBMISSION",
        type="bool",
        default=True,
        doc="Whether jobs are made for the VO.",
        source="facts on gdpconfig 1.2.4",
    ),
)

_LEVELS = "<queue>: a share or work queue, also with _ and a resource type, MCORE* or SCORE*; the narrowest wins."

for _component in (PRODUCTION, ANALYSIS):
    _jobs = partial(
        Key,
        component=_component,
        type="int",
        unit="jobs",
        default=None,
        low=0,
        zero_is_unset=True,
        source="seed 001, job throttling; facts on gdpconfig 1.2.4",
    )
    _threshold = partial(Key, component=_component, type="float", default=2.0, low=0, source="seed 001, job throttling")
    _rule = partial(Key, component=_component, type="bool", default=False, source="facts on throttling 7; decision C6")
    declare(
        _jobs(name="NQUEUELIMIT_<queue>", doc=f"So many jobs of a unit may always wait. {_LEVELS}"),
        _jobs(name="NQUEUECAP_<queue>", doc=f"While more jobs of a unit wait, none are made. {_LEVELS}"),
        _jobs(name="NRUNNINGCAP_<queue>", doc=f"While more jobs of a unit run, none are made at all. {_LEVELS}"),
        _threshold(
            name="THROTTLE_THRESHOLD", doc="While a unit has more than this many jobs waiting for each that runs, none are made."
        ),
        _threshold(name="THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE", doc="THROTTLE_THRESHOLD while core.WORK_SHORTAGE is on."),
        _rule(
            name="THROTTLE_DEFAULT_LIMIT",
            doc="Without NQUEUELIMIT four times what is made at once may always wait, and defined jobs do not make that smaller.",
        ),
        _rule(name="THROTTLE_BROKERAGE_STUCK", doc="No jobs are made while more than may wait are only defined."),
        _rule(
            name="THROTTLE_WAITING_JOBS",
            doc="No jobs are made while more wait to be defined than 4 x the running ones and 2 x what is made at once.",
        ),
        _rule(name="THROTTLE_SHORT_WORK", doc="Waiting jobs of 50,000,000 s of walltime together, or less, are not enough work."),
        _rule(
            name="THROTTLE_HIGH_PRIORITY",
            doc="Tasks, not of users, above every job of a unit get jobs nevertheless; NRUNNINGCAP holds for them too.",
        ),
    )
