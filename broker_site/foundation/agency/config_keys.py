"""Configuration keys of the agents as such: whether, how often and for how long they run."""

from broker_site.foundation.gdpconfig.keys import Key, declare

_DEFAULTS = {
    "refine": 10.0,
    "feed": 10.0,
    "assign": 10.0,
    "generate": 10.0,
    "command": 10.0,
    "wake": 30.0,
    "reap": 15.0,
    "finish": 20.0,
    "share": 10.0,
    "refresh": 60.0,
}

for _name, _period in _DEFAULTS.items():
    declare(
        Key(
            component="agents",
            name=f"PERIOD_{_name}",
            type="duration",
            default=_period,
            low=0.05,
            high=86400.0,
            doc=f"Longest time between two runs of the agent {_name}; a look message makes it run sooner.",
            source="facts, agents 6; decisions A3, G4",
        )
    )
    declare(
        Key(
            component="agents",
            name=f"ENABLED_{_name}",
            type="bool",
            default=True,
            doc=f"Whether the agent {_name} runs. Off stops its part of the system until it is on again.",
            source="mission U4",
        )
    )

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
