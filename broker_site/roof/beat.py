"""Every agent, in the order in which a task meets them.

Celery beat ticks each one; the agent itself keeps its period (PERIOD_<agent>).

Importing this module declares all agents; nothing else does.
"""

from __future__ import annotations

from typing import NamedTuple

from broker_site.foundation.agency.run import Body
from brokerage.agents.assign import assign
from brokerage.agents.command import command
from brokerage.agents.finish import finish
from brokerage.agents.generate import generate
from brokerage.agents.reap import reap
from brokerage.agents.refresh import refresh
from brokerage.agents.share import share
from workqueues.agents.feed import feed
from workqueues.agents.refine import refine
from workqueues.agents.wake import wake


class Agent(NamedTuple):
    """One line of the table. What it locks are rows, by claims; its time limit is that of every Celery task (settings)."""

    name: str
    body: Body
    takes: str
    leaves: str
    what_for: str


AGENTS = (
    Agent(
        "refine", refine, "tasks registered", "defined, pending, tobroken", "turns parameters into datasets, templates and needs"
    ),
    Agent("feed", feed, "tasks defined; held files", "ready, assigning, pending, tobroken", "brings the files of the inputs in"),
    Agent("assign", assign, "tasks assigning", "ready", "chooses the nucleus that collects the outputs"),
    Agent("generate", generate, "tasks ready, running", "jobs activated; pending", "chooses queues and makes jobs"),
    Agent("command", command, "tasks aborting, finishing, toretry", "aborted, passed, ready", "carries out accepted commands"),
    Agent("wake", wake, "tasks pending; claims of dead runs", "the state before; exhausted", "lets waiting tasks try again"),
    Agent(
        "reap", reap, "jobs without a sign of life or overdue", "failed, closed; files ready", "takes back what nobody works on"
    ),
    Agent("finish", finish, "tasks with all inputs settled", "done, finished, failed, broken", "brings tasks to their end"),
    Agent("share", share, "share trees, live jobs", "where each share stands", "says which share is served first"),
    Agent("refresh", refresh, "feeds and overrides whose time it is", "the grid as they say", "keeps the grid up to date"),
)
