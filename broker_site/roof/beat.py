"""Every agent, in the order in which a task meets them.

Celery beat ticks each one; the agent itself keeps its period (PERIOD_<agent>, declared from this table by `config_keys`). What an
agent locks are rows, by claims; its time limit is that of every Celery task (settings).

Importing this module declares all agents; nothing else does.
"""

from __future__ import annotations

from broker_site.foundation.access.agents import seal  # noqa: F401 - declares it
from broker_site.foundation.agency.duties import AGENTS, OFTEN_S, AgentDuty
from brokerage.agents import (  # noqa: F401 - declares them
    assess,
    assign,
    boost,
    command,
    evict,
    finish,
    free,
    generate,
    limit,
    links,
    merge,
    offer,
    pull,
    reap,
    refresh,
    share,
    slots,
    stage,
    storage,
    submit,
    tally,
    transfer,
    watch,
)
from workqueues.agents import achieve, feed, refine, wake  # noqa: F401 - declares them
from workqueues.states import TASK

for _duty in (
    AgentDuty("pull", OFTEN_S, (), "pulls work from the parent broker, and tells it what became of it"),
    AgentDuty("refine", OFTEN_S, TASK.unread, "turns parameters into datasets, templates and needs"),
    AgentDuty("feed", OFTEN_S, ("defined",), "brings the files of the inputs in"),
    AgentDuty("assign", OFTEN_S, ("assigning",), "chooses the nucleus that collects the outputs"),
    AgentDuty("generate", OFTEN_S, TASK.generating, "chooses queues and makes jobs"),
    AgentDuty("offer", 5.0, (), "gives work to child brokers, and takes back what they lost"),
    AgentDuty("assess", 5.0, ("scouted",), "measures what tasks need by their first jobs"),
    AgentDuty("merge", 5.0, (), "makes jobs that merge what others of their task made"),
    AgentDuty("command", OFTEN_S, TASK.commanded, "carries out accepted commands"),
    AgentDuty("wake", 30.0, TASK.resting, "lets waiting tasks try again"),
    AgentDuty("reap", 15.0, (), "takes back jobs that nobody works on"),
    AgentDuty("finish", 20.0, TASK.ending, "brings tasks to their end"),
    AgentDuty("achieve", 3600.0, (), "ends tasks that have reached their goal"),
    AgentDuty("share", OFTEN_S, (), "says which share is served first"),
    AgentDuty("boost", 60.0, (), "lets tasks that are nearly done go first"),
    AgentDuty("free", 5.0, (), "lets waiting tasks go on once there is room for them"),
    AgentDuty("slots", 5.0, (), "looks which slots idle beside work"),
    AgentDuty("submit", OFTEN_S, (), "submits jobs to sites, each with a pilot of its own"),
    AgentDuty("transfer", 5.0, (), "brings files where they are needed"),
    AgentDuty("refresh", 60.0, (), "keeps the grid up to date"),
    AgentDuty("storage", OFTEN_S, (), "looks whether the storage endpoints are there"),
    AgentDuty("links", 60.0, (), "counts what waits on the links and how fast it goes"),
    AgentDuty("evict", 30.0, (), "removes copies that nobody needs"),
    AgentDuty("stage", OFTEN_S, (), "looks for input that jobs wait for, and limits what is brought for each user"),
    AgentDuty("limit", 60.0, (), "keeps users and groups to what they may have running"),
    AgentDuty("watch", 600.0, (), "stops tasks of which too many jobs fail, and moves jobs that wait in vain"),
    AgentDuty("tally", 10.0, (), "counts jobs over time"),
    AgentDuty("seal", 60.0, (), "seals the audit"),
):
    AGENTS.add(_duty.name, _duty)
