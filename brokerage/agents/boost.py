"""Agent boost. Takes working production tasks of which little is left. Leaves them with a high priority, in the express share.
Next: generate, and pilots that ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.urgency import Urgency, raise_tasks
from brokerage.queries.nearly_done import nearly_done
from workqueues.queries.shares import trees
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.task.boost import boost as boost_of
from workqueues.rules.task.boost import jobs_left


@agent("boost")
def boost(run: Run) -> int:
    """Boost what is nearly done. Always 0: an agent that handled rows is run again at once, and here nothing is ever left."""
    raise_tasks(list(_due(gdpconfig.component("task_watcher"))))
    return 0


def _due(config: Mapping[str, Any]) -> Iterator[Urgency]:
    express, forest = config["EXPRESS_SHARE"], trees()
    for task in nearly_done(config["BOOST_PROGRESS"], config["BOOST_PRIORITY"], express):
        if activity_of(task.prod_source_label) != "production":
            continue
        percent = 100.0 * task.through / task.wanted
        left = jobs_left(task.wanted - task.through, task.jobs, task.files)
        given = boost_of(percent, left, task.priority, config)
        tree = forest.get(task.vo)
        has_express = tree is not None and any(leaf.name == express for leaf in tree.leaves)
        share = express if given.express and has_express else task.gshare
        if (given.priority, share) != (task.priority, task.gshare):
            yield Urgency(
                task.id, given.priority, share, f"{percent:.1f} % of its files are through, jobs left: about {left:.0f}"
            )
