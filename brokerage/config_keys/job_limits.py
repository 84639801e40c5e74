"""Keys of the limits of job states, of silence, and of what pilots are told."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.keys import Key, declare
from brokerage.states import JOB

SERVER = "pandaserver"
"""The app under which practice keeps the limits of jobs; all other keys are of the app `jedi`."""

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0

_JOB_TIMEOUTS = {
    "pending": (1 * _HOUR, "in pending", "seed 000"),
    "defined": (4 * _HOUR, "in defined", "seed 000"),
    "waiting": (30 * _MINUTE, "in waiting", "seed 001"),
    "assigned": (12 * _HOUR, "in assigned", "seed 000"),
    "throttled": (7 * _DAY, "in throttled", "seed 000"),
    "activated": (2 * _DAY, "in activated", "seed 000"),
    "sent": (30 * _MINUTE, "in sent", "seed 000"),
    "starting": (2 * _DAY, "in starting", "seed 000"),
    "running": (21 * _DAY, "in running", "seed 000"),
    "holding": (48 * _HOUR, "in holding below the priority HIGH_PRIORITY", "decision A3"),
    "holding_high": (3 * _HOUR, "in holding from the priority HIGH_PRIORITY on", "seed 000"),
    "transferring": (6 * _DAY, "in transferring below HIGH_PRIORITY at a queue without transtimelo", "facts on queues 5.1"),
    "transferring_high": (
        2 * _DAY,
        "in transferring from HIGH_PRIORITY on, where the queue sets no transtimehi",
        "facts on queues 5.1",
    ),
    "merging": (7 * _DAY, "in merging", "facts on timeouts 4.1"),
    "inactive_high": (4 * _HOUR, "in activated or starting from HIGH_PRIORITY on at an inactive queue", "seed 000"),
}

for _name, (_seconds, _what, _source) in _JOB_TIMEOUTS.items():
    declare(
        Key(
            component="job_timeout",
            app=SERVER,
            name=f"TIMEOUT_{_name}",
            type="duration",
            default=_seconds,
            low=0.05,
            high=365 * _DAY,
            zero_is_unset=_name in JOB.zero_limit,
            doc=f"The longest time that a job may be {_what}. After it the job is ended and its input goes back.",
            source=_source,
        )
    )

declare(
    Key(
        component="job_timeout",
        app=SERVER,
        name="INACTIVE_AFTER",
        type="duration",
        default=2 * _HOUR,
        low=0.05,
        high=365 * _DAY,
        doc="A queue is inactive when its last job began longer ago than this.",
        source="seed 000",
    ),
    Key(
        component="job_timeout",
        app=SERVER,
        name="HIGH_PRIORITY",
        type="int",
        default=800,
        doc="From this priority on the shorter time limits hold.",
        source="seed 000",
    ),
    Key(
        component="watcher",
        app=SERVER,
        name="HEARTBEAT_TIMEOUT_<workflow>",
        type="duration",
        default=2 * _HOUR,
        low=0.05,
        high=365 * _DAY,
        doc="How long a job may be silent while it starts or runs at a queue of this workflow, or transfers with own stage-out. "
        "Queues without workflow, or without an own value for it, take the value of analysis or production.",
        source="seed 000",
    ),
)

declare(
    Key(
        component="dispatch",
        name="POLL",
        type="duration",
        default=1.0,
        low=0.05,
        high=3600.0,
        doc="How long a pilot that got no job waits before it asks again.",
        source="reliability 4; facts on matching",
    )
)
