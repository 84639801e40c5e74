"""Keys that say which policy decides, per VO."""

from __future__ import annotations

from broker_site.gdpconfig.keys import Key, declare
from brokerage.rules.policy_choice import ACTIVITIES, key_for, unusable_for

_WHAT = {"production": "queues of production tasks", "analysis": "queues of analysis tasks", "nucleus": "nuclei of tasks"}

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
