"""What operators can set: shown, checked and kept with history like every other key of GridBroker."""

from __future__ import annotations

from broker_site.plugin_api import Key, declare

declare(
    Key(
        component="lab_jobbroker",
        name="LAB_QUIET_CORES",
        type="int",
        default=64,
        doc="Interactive analysis goes only to queues where fewer cores than this are busy (-lab_busy).",
        unit="cores",
        low=1,
        high=1_000_000,
        source="gridbroker-lab",
    ),
    Key(
        component="lab_jobbroker",
        name="LAB_BEST",
        type="int",
        default=3,
        doc="How many of the best queues are taken.",
        unit="queues",
        low=1,
        high=1000,
        source="gridbroker-lab",
    ),
    Key(
        component="lab_jobbroker",
        name="LAB_PENDING",
        type="duration",
        default="10min",
        doc="How long a task waits when no queue passes.",
        low="1s",
        high="1d",
        source="gridbroker-lab",
    ),
)
