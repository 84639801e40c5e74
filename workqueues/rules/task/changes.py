"""What somebody may change of a task that lives on: who may, in which states, what is asked for, and the words about it.

Permissions, REST routes with their OpenAPI, forms of the pages and actions of the admin are made from CHANGES. Unlike a command
(`commands`) a change leads to no end of the task. What it does stands in the ledgers. Source: facts on task commands 2.3 to 2.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, WithJsonSchema

from broker_site.foundation.kernel.machine import Names
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import STRICT
from workqueues.rules.jobs.split_rule import HELD_UP
from workqueues.rules.task.commands import MORE_TRIES, OWN_OR_OPERATED, Right
from workqueues.rules.task_parameters import declaration
from workqueues.rules.task_parameters.declaration import Amount, Whole, number, parameter, text
from workqueues.states import TASK


class Asked(BaseModel):
    """What every change takes."""

    model_config = STRICT

    comment: str = text("Why, for the audit.", length=200)


class PriorityAsked(Asked):
    priority: Whole = number("The priority from now on; that of the submission stays, and a retry restores it.", required=True)


class ShareAsked(Asked):
    share: str = text("A leaf of the tree of shares of the task's VO.", length=32, required=True)


class SplitRuleAsked(Asked):
    rule: str = text("The parameter, as nMaxFilesPerJob, or its two letters in the split rule.", length=40, required=True)
    # Needed, but null says something, which `required=True` would not let pass: `Change.read` looks for the name.
    value: Annotated[Any, WithJsonSchema({"required": True})] = parameter(
        "Its value from now on; false, 0 or null take the rule away.", None
    )


class AttributesAsked(Asked):
    """With the units and bounds of a submission."""

    ramCount: Whole = number("Memory, in the task's unit.")
    walltime: Whole = number("Wall time for each MB of input, s.")
    cpuTime: Amount = number("HS06 x seconds for each event, in the task's unit.")
    coreCount: Whole = number("Cores a job; 0: as many as a slot has.", high=4096)


COLUMNS = {"ramCount": "ram_count", "walltime": "walltime", "cpuTime": "cpu_time", "coreCount": "core_count"}
"""Attribute -> column of the task."""


class ReassignAsked(Asked):
    site: str = text("Queues or sites to which the jobs go, with commas; empty: brokered again.", "site")
    nucleus: str = text("Nucleus of the task; empty: chosen again.", "nucleus")
    jobs: Literal["kill", "soft", "nokill"] = parameter(
        "What becomes of its jobs: kill ends them all, soft those that do not run yet, nokill none.", "kill"
    )


class ReleaseAsked(Asked):
    pass


class InputCompleteAsked(Asked):
    pass


class TriesAsked(Asked):
    n: Whole = number("Tries more for each input file.", low=1, high=100, default=MORE_TRIES)


@dataclass(frozen=True, slots=True)
class Change:
    """`name` stands in addresses and acts of the audit. `states` take it, one of `TASK.interrupted` if the state before does."""

    name: str
    right: Right
    states: Names
    asked: type[Asked]
    title: str
    does: str
    """What it will do: the description of the interface, and the hint of the page."""
    button: str
    rule: str = ""
    """Letters of the split rule without which there is nothing to change: pages show no form then."""

    def suits(self, status: str, old_status: str) -> bool:
        """Whether a task takes it in this state, which it had before if it is interrupted."""
        return status in self.states and (status not in TASK.interrupted or old_status in self.states or not old_status)

    def read(self, data: Mapping[str, object]) -> tuple[Asked, list[Problem]]:
        """What is asked for, and what is wrong with it; what is not well typed is left out."""
        asked, problems = declaration.read(self.asked, data)
        if self.asked is SplitRuleAsked and "value" not in data:  # null says something here
            problems.append(Problem("value", "required", "must be given; null takes the rule away"))
        return asked, problems


_OPERATED = "neither an operator of {vo}, nor has the role production there, as it takes to change this of task {id}"
_OPERATORS = frozenset({"operator", "production"})

CHANGES: Mapping[str, Change] = {
    change.name: change
    for change in (
        Change(
            "priority",
            Right("task:priority", _OPERATORS, _OPERATED),
            TASK.steered,
            PriorityAsked,
            "Change the priority of a task",
            "The task and all its jobs that have not ended get this priority, waiting ones are handed out by it; jobs that merge "
            "keep theirs. The priority of the submission stays, and a retry restores it.",
            "Priority",
        ),
        Change(
            "share",
            Right("task:share", _OPERATORS, _OPERATED),
            TASK.steered,
            ShareAsked,
            "Move a task to another share",
            "The task belongs to this leaf of the tree of shares, and its waiting jobs move to the task queues of it. A retry "
            "finds the share anew.",
            "Share",
        ),
        Change(
            "reassign",
            Right("task:reassign", OWN_OR_OPERATED.roles, OWN_OR_OPERATED.refusal),
            TASK.reassignable,
            ReassignAsked,
            "Send a task to another site or nucleus",
            "The task is pending until the jobs that have to leave have ended. Then it goes on: at another site from where it "
            "was; with another nucleus it is assigned anew. Inputs of the jobs that were ended are ready again.",
            "Reassign",
        ),
        Change(
            "release",
            Right("task:release", _OPERATORS, _OPERATED),
            TASK.releasable,
            ReleaseAsked,
            "Release the inputs of a task",
            "Input files that wait to be staged or for another try are given to jobs as they are, and the task is looked at now.",
            "Release",
        ),
        Change(
            "split-rule",
            Right("task:split", _OPERATORS, _OPERATED),
            TASK.adjustable,
            SplitRuleAsked,
            "Change the split rule of a task",
            "One rule is set or taken away. Jobs that exist stay as they are; new ones are made by it.",
            "Split rule",
        ),
        Change(
            "attributes",
            Right("task:attributes", _OPERATORS, _OPERATED),
            TASK.adjustable,
            AttributesAsked,
            "Change what the jobs of a task need",
            "New jobs ask for this; those that exist stay as they are. The class of resources follows.",
            "Needs",
        ),
        Change(
            "input-complete",
            Right("task:input", OWN_OR_OPERATED.roles | _OPERATORS, OWN_OR_OPERATED.refusal),
            TASK.adjustable | TASK.unread,
            InputCompleteAsked,
            "Say that the input of a task is complete",
            "A task whose input a workflow feeds (workflowHoldup) reads its inputs once more, and ends when all that is in "
            "them is processed. Others are as they were.",
            "Input complete",
            HELD_UP,
        ),
        Change(
            "tries",
            Right("task:tries", OWN_OR_OPERATED.roles | _OPERATORS, OWN_OR_OPERATED.refusal),
            TASK.persevering,
            TriesAsked,
            "Give the inputs of a task more tries",
            "Inputs that are ready get so many tries more; those that were given up are ready again with as many.",
            "More tries",
        ),
    )
}
"""In the order of the page's forms."""
