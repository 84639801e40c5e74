"""Families about jobs: how long they may stay in a state."""

from __future__ import annotations

import brokerage.config_keys
from broker_site.foundation.gdpconfig.values import Config
from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.rules.dispatch.timeouts import QueueFacts, limit_s, silence_s

SERVER = brokerage.config_keys.SERVER
HOUR_S = 3600.0
QUEUE_FACTS = {"site_status": "status"} | {name: name for name in ("catchall", "workflow", "transtimehi", "transtimelo")}


@family(
    "timeout",
    given="state [priority] [event] [workflow] [hb] [substatus] [laststart_h] [transtimehi] [transtimelo] "
    "[site_status] [catchall]",
    expect="timeout_h",
)
def timeout(given: Given) -> Answer:
    """Limit of silence for the event `heartbeat`, else limit of the state."""
    queue = QueueFacts(
        **{ours: given[theirs] for theirs, ours in QUEUE_FACTS.items() if theirs in given},
        idle_s=None if given["laststart_h"] is None else given["laststart_h"] * HOUR_S,
    )
    if given.get("event") == "heartbeat":
        own = {f"HEARTBEAT_TIMEOUT_{w}": hours * HOUR_S for w, hours in given.get("hb", {}).items() if hours is not None}
        config = {**Config().component("watcher", app=SERVER), **own}
        limit = silence_s(given["state"], given.get("substatus"), "", queue, config)
    else:
        limit = limit_s(given["state"], given.get("priority", 0), queue, Config().component("job_timeout", app=SERVER))
    return {"timeout_h": None if limit is None else limit / HOUR_S}
