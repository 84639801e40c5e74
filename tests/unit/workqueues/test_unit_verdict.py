"""Which numbers a unit is judged by: its own jobs of all groups, its best task, and the keys of its VO."""

from __future__ import annotations

from dataclasses import replace

import pytest

import workqueues.config_keys  # noqa: F401 - declares the keys
from broker_site.foundation.gdpconfig import from_document
from workqueues.rules.throttle.throttler import Counts, Verdict
from workqueues.rules.throttle.unit_verdict import UnitRules, judge_unit, judge_units
from workqueues.rules.throttle.units import Group, Unit

SCORE, MCORE = (Group("demo", "managed", "MC", 0, kind) for kind in ("SCORE", "MCORE"))
KEYS = from_document({"prod_job_throttler": {"NQUEUECAP_MC": 1000, "THROTTLE_HIGH_PRIORITY": True}}).component(
    "prod_job_throttler"
)
RULES = UnitRules(KEYS, submission=True, shortage=False, unthrottled=False)


def unit_of(group: Group) -> Unit:
    return Unit(group.vo, group.label, group.gshare, 0, group.resource_type)


def test_a_unit_has_the_jobs_of_all_its_groups_and_a_cap_those_of_its_level() -> None:
    jobs = {
        SCORE: Counts(running=10, activated=5),
        SCORE._replace(work_queue_id=3): Counts(activated=2),
        MCORE: Counts(defined=990),
    }
    (found,) = judge_units({SCORE: 500}, jobs, unit_of, lambda _: RULES).values()
    assert found.unit == unit_of(SCORE)
    assert (found.counts.running, found.counts.queued) == (10, 7)
    assert (found.unit_limits.cap.key, found.at_levels[""].queued) == ("NQUEUECAP_MC", 997)
    assert judge_unit(found.unit, {"MCORE": Counts(activated=1001, running=9000)}, None, RULES).verdict.decision == "SKIP"


@pytest.mark.parametrize(("label", "least"), [("managed", 900), ("user", None), ("panda", None)])
def test_the_best_task_passes_a_full_unit_but_never_one_of_users(label: str, least: int | None) -> None:
    group = SCORE._replace(label=label)
    jobs = {group: Counts(activated=2000, running=1, top_priority=800)}
    keys = {**KEYS, "NQUEUECAP_MC": 0}
    (found,) = judge_units(
        {group: 100, group._replace(work_queue_id=3): 900}, jobs, unit_of, lambda _: RULES._replace(keys=keys)
    ).values()
    assert (found.verdict.decision, found.verdict.least_priority) == ("SKIP" if least is None else "PASS", least)


def test_no_jobs_where_submission_is_off() -> None:
    found = judge_unit(unit_of(SCORE), {}, 500, RULES._replace(submission=False))
    assert (found.verdict.decision, found.verdict.rule) == ("SKIP", "job_submission")
    assert found.verdict.room(10_000, 0) == 0


def test_the_room_of_a_verdict_shrinks_with_each_job_and_is_for_those_who_pass() -> None:
    verdict = Verdict("PASS", 10, True, "bunch", "", 700)
    assert [verdict.room(700, made) for made in (0, 4, 11)] == [10, 6, 0]
    assert verdict.room(699, 0) == 0
    assert replace(verdict, max_jobs=None).room(700, 10**6) is None
