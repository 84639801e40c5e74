"""Configuration keys of demand: which there are, what they mean and what holds without an override."""

from __future__ import annotations

from broker_site.gdpconfig.keys import Key, declare

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
