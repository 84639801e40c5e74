"""Jobs of users: who has many gets the next ones behind those of others, and operators may put somebody first."""

from __future__ import annotations

import pytest

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "generate")


def priorities(task_id: int) -> list[int]:
    return list(Job.objects.filter(task_id=task_id).order_by("id").values_list("priority", flat=True))


def test_the_more_jobs_a_user_has_the_later_her_next_ones_come() -> None:
    (queue,) = grid("ALPHA")
    first = submitted(parameters("t", nEvents=60, taskPriority=1000))
    run_agents(1, MAKING)
    assert priorities(first.id) == [1000, 999, 999, 999, 999, 999]
    second = submitted(parameters("u", nEvents=60, taskPriority=1000))
    other = submitted(parameters("o", nEvents=20, taskPriority=1000, userName="bob"))
    run_agents(2, MAKING)
    assert priorities(second.id) == [998, 998, 998, 998, 998, 997]
    assert priorities(other.id) == [1000, 999]
    order = [Job.objects.get(id=take(queue).job_id).task_id for _ in range(8)]
    assert order == [first.id, other.id, *[first.id] * 5, other.id], "before her later task, and between her first jobs"


def test_production_has_the_priority_of_its_task_and_so_has_who_does_not_count() -> None:
    grid("ALPHA")
    made = submitted(parameters("p", nEvents=60, prodSourceLabel="managed"))
    run_agents(1, MAKING)
    assert set(priorities(made.id)) == {500}
    set_override("jobgen", "USER_JOBS_PER_POINT", 0, who="ada", why="the order of tasks is enough")
    mine = submitted(parameters("t", nEvents=60))
    run_agents(1, MAKING)
    assert set(priorities(mine.id)) == {500}


def test_an_operator_puts_a_user_or_group_first() -> None:
    grid("ALPHA")
    boosts = [{"name": "HIGG", "type": "group", "prio": 1800, "expire": None}]
    set_override("dbproxy", "USER_JOB_PRIO_BOOST_DICTS", boosts, app="pandaserver", who="ada", why="a conference")
    mine, ours = submitted(parameters("t", nEvents=20)), submitted(parameters("g", nEvents=20, workingGroup="HIGG"))
    run_agents(2, MAKING)
    assert (priorities(mine.id), priorities(ours.id)) == ([500, 499], [1800, 1800])
