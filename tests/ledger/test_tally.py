"""Counts of jobs over time: each move once, whoever counts, dies and moves jobs at the same time; and what they say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from brokerage.ledger import error_tally, tally, tally_groups
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.tally import compare_levels, count_changes, forget_buckets
from brokerage.ledger.work_tally import WAITS_BY
from brokerage.models import (
    ComputingQueue,
    ErrorFingerprint,
    ErrorTask,
    Job,
    JobChange,
    JobResult,
    JobSpec,
    TallyBucket,
    TallyGroup,
    TallyLevel,
    TallyMark,
    TaskLevel,
)
from brokerage.queries.invariants import check
from brokerage.rules.dispatch.settlement import JobVersion, Report
from brokerage.rules.facts.rollups import DAY_S, FIVE_MINUTES_S, HOUR_S, MINUTE_S, STEPS
from brokerage.rules.facts.wait_classes import WAITS, wait_class
from brokerage.states import JOB
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, take, try_take
from tests.ledger.test_races import together
from tests.stateful.scene import killed_at
from workqueues.ledger.moves import move_task
from workqueues.models import Task

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 20_000
Happened = dict[tuple[str, str], int]


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    """One computing queue of which the agent has begun to count; every invariant holds after the test."""
    (made,) = grid("ALPHA")
    assert count_changes(MANY) == 0
    yield made
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def work(name: str, jobs: int, **more: object) -> Task:
    """A task with so many jobs that wait."""
    catalogue_dataset(f"{name}.in", jobs)
    task = submitted(reading(name, f"{name}.in", nFilesPerJob=1, maxAttempt=50, **more))
    run_agents(1)
    return task


def happened() -> Happened:
    """What the history of jobs says, counted one by one: by VO and what jobs did or in which state they are."""
    counts: Counter[tuple[str, str]] = Counter()
    vos = dict(Task.objects.values_list("id", "vo"))
    of_job = dict(Job.objects.values_list("id", "task_id"))
    specs = {spec.job_id: spec for spec in JobSpec.objects.all()}
    for job_id, old, new, at in JobChange.objects.values_list("job_id", "old", "new", "at"):
        vo, spec = vos[of_job[job_id]], specs[job_id]
        if new == "finished":
            counts[vo, "files"] += spec.n_input_files
            counts[vo, "events"] += spec.n_events
        if old == "-":
            counts[vo, "made"] += 1
        elif old != new:
            counts[vo, old] -= 1
        if old != new:
            counts[vo, new] += 1
        if old in JOB.starting and new in JOB.begun:
            counts[vo, "started"] += 1
            counts[vo, wait_class((at - spec.created_at).total_seconds())] += 1
    return {key: n for key, n in counts.items() if n}


def counted(family: str = "vo", step_s: int = MINUTE_S) -> Happened:
    """The same of the counts."""
    counts: Counter[tuple[str, str]] = Counter()
    for vo, what, n in TallyBucket.objects.filter(step_s=step_s, group__family=family).values_list("group__vo", "what", "n"):
        counts[vo, what] += n
    return {key: n for key, n in counts.items() if n}


def waits(counts: Happened) -> Happened:
    return {(vo, what): n for (vo, what), n in counts.items() if what in WAITS}


def levels(family: str = "vo") -> Happened:
    found: Counter[tuple[str, str]] = Counter()
    for vo, what, n in TallyLevel.objects.filter(group__family=family).values_list("group__vo", "what", "n"):
        found[vo, what] += n
    return {key: n for key, n in found.items() if n}


def alive() -> Happened:
    return dict(Counter(("demo", status) for status in Job.objects.filter(ended_at=None).values_list("status", flat=True)))


def kill(job: Job) -> None:
    kill_jobs([JobVersion(job.id, job.epoch, job.status)], "user:ada", "not wanted")


def lives(queue: ComputingQueue, dice: random.Random, n: int) -> None:
    """Pilots take jobs and end them well or badly, and somebody kills a few."""
    for _ in range(n):
        leased = try_take(queue)
        if leased is None:
            return
        if dice.random() < 0.8:
            end(leased, BAD if dice.random() < 0.4 else None)
        if dice.random() < 0.1 and (waiting := Job.objects.filter(status="activated").first()):
            kill(waiting)


@pytest.mark.parametrize("seed", range(4))
def test_counts_of_all_lengths_and_kinds_say_what_the_history_says(queue: ComputingQueue, seed: int) -> None:
    dice = random.Random(seed)
    for n in range(3):
        for spec in JobSpec.objects.filter(job__task_id=work(f"t{n}", 8).id):
            JobSpec.objects.filter(job_id=spec.job_id).update(
                created_at=spec.created_at - timedelta(seconds=dice.choice([0, 29, 45, 5_000, 900_000]))
            )
        lives(queue, dice, 6)
        while count_changes(dice.choice([1, 3, 7, 1000])):
            continue
    assert {("demo", "files"), ("demo", "events"), ("demo", "finished")} <= happened().keys()
    assert len(waits(happened())) > 1
    for family in ("vo", "queue", "share", "place", "user"):
        for step_s in STEPS:
            expected = happened() if family in WAITS_BY else {k: n for k, n in happened().items() if k not in waits(happened())}
            assert counted(family, step_s) == expected
        assert levels(family) == alive()
    assert compare_levels() == (0, 0)


def test_two_that_count_while_jobs_move_count_each_move_once(queue: ComputingQueue) -> None:
    work("many", 24)
    for seed in range(4):
        together(
            partial(lives, queue, random.Random(seed), 5),
            *[lambda: [count_changes(3) for _ in range(20)]] * 2,
            lambda: [compare_levels() for _ in range(5)],
        )
    while count_changes(MANY):
        continue
    assert counted() == happened()
    assert levels() == alive()
    mark = TallyMark.objects.get()
    assert (mark.off_in_all, mark.off_at) == (0, None)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("where", "name"),
    [(tally, "_locked"), (tally, "count_errors"), (tally, "_add"), (tally, "ids_of"), (error_tally, "_noted")],
)
def test_whoever_dies_while_counting_has_counted_nothing(queue: ComputingQueue, where: object, name: str, after: bool) -> None:
    work("dies", 6)
    lives(queue, random.Random(3), 4)
    end(take(queue), BAD)
    with killed_at(where, name, after=after):
        count_changes(MANY)
    assert counted() == {}
    assert count_changes(MANY)
    assert counted() == happened()


def test_a_long_transaction_holds_no_count_up_and_its_own_moves_are_counted_when_it_is_over(queue: ComputingQueue) -> None:
    work("slow", 4)

    def slow() -> None:
        with transaction.atomic():
            JobChange.objects.filter(id=-1).delete()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_current_xact_id()")  # an old number, and its moves come late
            together(partial(lives, queue, random.Random(1), 2), partial(count_changes, MANY))
            together(lambda: [count_changes(3) for _ in range(20)])
            seen, said = together(counted, happened)
            assert seen == said != {}
            kill(Job.objects.filter(status="activated").latest("id"))
            together(partial(count_changes, MANY))

    slow()
    while count_changes(MANY):
        continue
    assert counted() == happened()


def test_levels_that_went_wrong_are_put_right_and_told_and_a_new_share_is_no_error(queue: ComputingQueue) -> None:
    task = work("wrong", 5)
    count_changes(MANY)
    Task.objects.filter(id=task.id).update(gshare="other")
    assert compare_levels() == (0, 10), "at their place and with their user"
    assert set(TallyLevel.objects.filter(group__family="place", n__gt=0).values_list("group__share", "n")) == {("other", 5)}
    TallyLevel.objects.filter(group__family="vo", what="activated").update(n=7)
    Agent.objects.all().delete()
    TallyMark.objects.update(compared_at=timezone.now() - timedelta(hours=1))
    run_agent("tally", looked=True)
    assert "2 jobs differ" in Agent.objects.get(name="tally").left_out
    mark = TallyMark.objects.get()
    assert (mark.off, mark.off_said) == (2, "demo activated -2")
    assert levels() == alive() == {("demo", "activated"): 5}
    assert compare_levels() == (0, 0)
    assert TallyMark.objects.get().off_in_all == 2


def test_jobs_of_before_the_first_count_are_levels_and_no_flows() -> None:
    grid("ALPHA")
    work("before", 3)
    count_changes(MANY)
    assert levels() == {("demo", "activated"): 3}
    assert counted() == {("demo", "activated"): 3}


def test_a_database_restored_from_a_dump_counts_on_with_the_numbers_of_its_transactions(queue: ComputingQueue) -> None:
    work("restored", 3)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE brokerage_tallymark SET seen = '99999999999:99999999999:'")
        cursor.execute("UPDATE brokerage_jobchange SET xid = '99999999998'")
    count_changes(MANY)
    before = Counter(counted())
    assert levels() == {("demo", "activated"): 3}
    end(take(queue))
    count_changes(MANY)
    assert Counter(counted()) - before == Counter(
        {("demo", what): n for what, n in (("started", 1), ("finished", 1), ("files", 1), ("events", 10), ("wait00", 1))}
    )


def test_errors_are_counted_by_fingerprint_with_a_sample(queue: ComputingQueue) -> None:
    work("bad", 6)
    for n in range(3):
        message = f"cannot open /data/run{n}/file.{n}.root: code {n}"
        end(take(queue), Report("failed", error_code="STAGEIN", error_message=message, exit_code=None))
    end(take(queue), BAD)
    JobResult.objects.filter(error_code="PAYLOAD_EXIT").update(fingerprint=None)
    count_changes(MANY)
    kinds = {f.code: f for f in ErrorFingerprint.objects.all()}
    assert {(f.component, f.code, f.exit_code, f.message) for f in kinds.values()} == {
        ("pilot", "STAGEIN", 0, "cannot open *: code *"),
        ("pilot", "PAYLOAD_EXIT", 1, "exit code *"),
    }
    assert kinds["STAGEIN"].sample_job_id == min(JobResult.objects.filter(error_code="STAGEIN").values_list("job_id", flat=True))
    rows = TallyBucket.objects.filter(group__family="error_at", step_s=HOUR_S).values_list(
        "group__fingerprint", "group__queue", "what", "n"
    )
    assert set(rows) == {
        (kinds["STAGEIN"].id, "ALPHA", "failed", 3),
        (kinds["PAYLOAD_EXIT"].id, "ALPHA", "failed", 1),
    }
    of_owners = TallyBucket.objects.filter(group__family="error_of", step_s=HOUR_S)
    assert sorted(of_owners.values_list("group__user_name", "n")) == [("ada", 1), ("ada", 3)]
    anywhere = TallyBucket.objects.filter(group__family="error", step_s=HOUR_S).values_list("group__fingerprint", "what", "n")
    assert set(anywhere) == {(kinds["STAGEIN"].id, "failed", 3), (kinds["PAYLOAD_EXIT"].id, "failed", 1)}
    assert set(JobResult.objects.filter(error_code="STAGEIN").values_list("fingerprint", flat=True)) == {kinds["STAGEIN"].id}


def test_tasks_with_an_error_are_noted_once_each_with_their_first_and_last_minute(queue: ComputingQueue) -> None:
    tasks = [work("one", 3), work("two", 1)]
    for _ in range(3):
        end(take(queue), BAD)
    count_changes(MANY)
    noted = {row.task_id: row for row in ErrorTask.objects.all()}
    assert {row.group.family for row in noted.values()} == {"error_of"}
    long_ago = timezone.now() - timedelta(days=20)
    ErrorTask.objects.update(first_at=long_ago, last_at=long_ago)
    end(take(queue), BAD)
    count_changes(MANY)
    now = {row.task_id: (row.id, row.first_at == long_ago, row.last_at == long_ago) for row in ErrorTask.objects.all()}
    assert set(now) == {task.id for task in tasks}
    assert all(first for task_id, (_, first, _) in now.items() if task_id in noted)
    assert sum(not last for _, _, last in now.values()) == 1
    (old,) = [task_id for task_id, (_, _, last) in now.items() if last]
    TallyMark.objects.update(compared_at=None)
    Agent.objects.all().delete()
    run_agent("tally", looked=True)
    assert set(ErrorTask.objects.values_list("task_id", flat=True)) == set(now) - {old}


def test_a_group_stays_as_long_as_a_task_is_noted_with_it(queue: ComputingQueue) -> None:
    work("one", 1)
    end(take(queue), BAD)
    count_changes(MANY)
    TallyBucket.objects.all().delete()
    compare_levels()
    assert [task.group.family for task in ErrorTask.objects.all()] == ["error_of"]
    ErrorTask.objects.all().delete()
    compare_levels()
    assert not TallyGroup.objects.filter(family="error_of").exists()


def test_whoever_writes_messages_cannot_fill_the_list_of_errors(queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_tally, "MOST_FINGERPRINTS", 2)
    work("noise", 5)
    for word in ("abc", "def", "ghi", "jkl", "mno"):
        end(take(queue), Report("failed", error_code="NOISE", error_message=word * 5))
    count_changes(MANY)
    assert ErrorFingerprint.objects.count() == 3
    assert sum(TallyBucket.objects.filter(group__family="error", step_s=HOUR_S).values_list("n", flat=True)) == 5


def test_counts_are_kept_as_long_as_configured(queue: ComputingQueue) -> None:
    work("old", 2)
    count_changes(MANY)
    Agent.objects.all().delete()
    TallyBucket.objects.update(at=timezone.now() - timedelta(days=3))
    TallyMark.objects.update(compared_at=None)
    run_agent("tally", looked=True)
    assert set(TallyBucket.objects.values_list("step_s", flat=True)) == {FIVE_MINUTES_S, HOUR_S, DAY_S}
    TallyBucket.objects.update(at=timezone.now() - timedelta(days=15))
    TallyMark.objects.update(compared_at=None)
    Agent.objects.all().delete()
    run_agent("tally", looked=True)
    assert set(TallyBucket.objects.values_list("step_s", flat=True)) == {HOUR_S, DAY_S}
    assert forget_buckets(HOUR_S, 730 * 86400, 10) == 0
    TallyBucket.objects.all().delete()


def test_levels_are_not_compared_while_much_is_not_counted(queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    work("much", 3)
    monkeypatch.setattr(tally, "MOST_BEHIND", 2)
    with pytest.raises(tally.TooFarBehind):
        compare_levels()
    assert levels() == {}
    count_changes(MANY)
    assert compare_levels() == (0, 0)


def test_groups_get_their_numbers_once(queue: ComputingQueue) -> None:
    group = tally_groups.NO_GROUP._replace(family="user", vo="demo", user_name="Zoë O'Neil \\ %s")
    first = tally_groups.ids_of([group])
    assert tally_groups.ids_of([group, group._replace(user_name="bob")])[group] == first[group]


def test_tasks_that_have_not_ended_are_counted_by_vo_and_state(queue: ComputingQueue) -> None:
    def counted() -> dict[tuple[str, str], int]:
        count_changes(MANY)
        return {(level.vo, level.state): level.n for level in TaskLevel.objects.all()}

    first, second, _ = (submitted(parameters(name)) for name in ("a", "b", "c"))
    assert counted() == {("demo", "registered"): 3}
    for state in ("defined", "ready"):
        move_task(first, state, "test", "as if it had been refined")
    for state in ("tobroken", "broken"):
        move_task(second, state, "test", "it cannot be done")
    assert counted() == {("demo", "registered"): 1, ("demo", "ready"): 1}
