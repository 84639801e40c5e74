"""Configuration keys of the agents as such; those of each agent follow from the table of agents (`broker_site.roof`)."""

from broker_site.foundation.gdpconfig.keys import Key, declare

declare(
    Key(
        component="agents",
        name="SET_ASIDE",
        type="duration",
        default=60.0,
        low=0.05,
        high=86400.0,
        doc="How long a task is left alone on which an agent failed.",
        source="reliability R11",
    )
)

declare(
    Key(
        component="agents",
        name="FORGET_PERIOD",
        type="duration",
        default="1h",
        low="1s",
        high="7d",
        doc="How often the agent reap deletes credentials that expired long ago.",
        source="mission U4",
    )
)

declare(
    Key(
        component="agents",
        name="KEEP_EXPIRED",
        type="duration",
        default="30d",
        low="1h",
        high="3650d",
        doc="How long an expired credential, such as that of a pilot, is kept to be looked up.",
        source="mission U4",
    )
)

declare(
    Key(
        component="agents",
        name="CLAIM",
        type="duration",
        default=120.0,
        low=0.5,
        high=3600.0,
        doc="How long an agent run may hold a task before another may take it over.",
        source="reliability 4",
    )
)
