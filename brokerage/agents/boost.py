"""Agent boost. Takes working tasks of which little is left, of production and of users. Leaves them with a high priority, in the
express share of theirs. Next: generate, and pilots that ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.config_keys import SERVER
from brokerage.ledger.urgency import Urgency, raise_tasks
from brokerage.queries.nearly_done import NearlyDone, nearly_done
from brokerage.queries.owner_jobs import OwnerJobs, jobs_of_owners
from brokerage.rules.transfers.job_wishes import owner_of
from workqueues.queries.shares import Tree, trees
from workqueues.rules.jobs.activity import ANALYSIS_LABELS, PRODUCTION_LABELS
from workqueues.rules.task.automatic_steps import BOOST, USER_BOOST, AutomaticStep
from workqueues.rules.task.boost import Boost, class_of, jobs_left, user_boost
from workqueues.rules.task.boost import boost as boost_of


@agent("boost")
def boost(run: Run) -> int:
    """Boost what is nearly done. Always 0: an agent that handled rows is run again at once, and here nothing is ever left."""
    config, forest = gdpconfig.component("task_watcher"), trees()
    raise_tasks([*_production(config, forest), *_analysis(config, forest)])
    return 0


def _production(config: Mapping[str, Any], forest: Mapping[str, Tree]) -> Iterator[Urgency]:
    express = config["EXPRESS_SHARE"]
    for task in nearly_done([*PRODUCTION_LABELS, ""], config["BOOST_PROGRESS"], config["BOOST_PRIORITY"], express):
        yield from _urgency(task, boost_of(_percent(task), _left(task), task.priority, config), express, forest)


def _analysis(config: Mapping[str, Any], forest: Mapping[str, Tree]) -> Iterator[Urgency]:
    """Tasks of users who do not have many slots: of which, says the class of the user."""
    classes = gdpconfig.component("analy_eval", app=SERVER)
    raised, express = config["BOOST_PRIORITY_ANALYSIS"], config["EXPRESS_SHARE_ANALYSIS"]
    least = min(classes["PROGRESS_TO_BOOST_A"], classes["PROGRESS_TO_BOOST_B"])
    near = nearly_done(ANALYSIS_LABELS, least, raised, express)
    owners = jobs_of_owners() if near else {}
    for task in near:
        slots = owners.get((task.vo, owner_of(task.user, task.group)), OwnerJobs()).used.running_cores
        given = user_boost(_percent(task), _left(task), task.priority, class_of(slots, classes), raised)
        yield from _urgency(task, given, express, forest, USER_BOOST)


def _urgency(
    task: NearlyDone, given: Boost, express: str, forest: Mapping[str, Tree], step: AutomaticStep = BOOST
) -> Iterator[Urgency]:
    """What the task gets, where that is more than it has."""
    tree = forest.get(task.vo)
    has_express = tree is not None and any(leaf.name == express for leaf in tree.leaves)
    share = express if given.express and has_express else task.gshare
    if (given.priority, share) != (task.priority, task.gshare):
        why = f"{_percent(task):.1f} % of its files are through, jobs left: about {_left(task):.0f}"
        yield Urgency(task.id, given.priority, share, why, step)


def _percent(task: NearlyDone) -> float:
    return 100.0 * task.through / task.wanted


def _left(task: NearlyDone) -> float:
    return jobs_left(task.wanted - task.through, task.jobs, task.files)
