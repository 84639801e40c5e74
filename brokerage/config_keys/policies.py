"""Keys that say which policy decides and which generator makes the jobs, per VO."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.keys import Key, declare
from brokerage.rules.decision.policy_choice import ACTIVITIES, NUCLEUS, generator_key, key_for, unusable_for, unusable_generator

_WHAT = {
    "production": "queues of production tasks",
    "analysis": "queues of analysis tasks",
    "generic": "queues of tasks that are neither production nor analysis",
    "nucleus": "nuclei of tasks",
}

declare(
    *(
        Key(
            component="core",
            name=key_for(activity),
            type="str",
            default=None,
            doc=f"The policy that chooses the {_WHAT[activity]}, by its name in `manage.py criteria`; unset = `{activity}`. "
            "One of a plugin decides only where it is named here; while that plugin cannot be loaded the tasks wait.",
            source="mission P1",
            low=1,
            high=100,
            known=unusable_for(activity),
        )
        for activity in ACTIVITIES
    )
)

declare(
    *(
        Key(
            component="core",
            name=generator_key(activity),
            type="str",
            default=None,
            doc=f"The generator that makes the jobs of {activity} tasks; unset = `standard`, by the split rule of the task. "
            "While the plugin that brings it cannot be loaded the tasks wait.",
            source="seed 001, plugins to generate jobs",
            low=1,
            high=100,
            known=unusable_generator,
        )
        for activity in ACTIVITIES
        if activity != NUCLEUS
    )
)
