"""Two writers at once: whoever comes second sees what the first did, nothing is settled twice, nobody waits for ever.

Real connections to PostgreSQL in threads and processes; after each race every invariant of the data holds.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import new_run, run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel.machine import NotAllowed
from brokerage.ledger.expiry import expire_leases, kill_jobs
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import Lease, lease
from brokerage.ledger.settle import LastWord, settle_job, settle_jobs
from brokerage.ledger.task_queues import task_queues
from brokerage.models import ComputingQueue, Job, JobChange, JobInput, JobResult
from brokerage.queries.invariants import check
from brokerage.queries.jobs import live_jobs
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.placement.slots import Slot
from tests.builders import catalogue_dataset, grid, pilot, reading, submitted
from tests.flow.steps import BAD, good, run_agents, take, try_take
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.commands import command
from workqueues.ledger.moves import Stale
from workqueues.ledger.picking import give_back_picked, take_files
from workqueues.models import Dataset, File, Task, TaskParams

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8
HAMMER = 200


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    """One computing queue; whatever happened in the test, every invariant holds after it."""
    (made,) = grid("ALPHA")
    yield made
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def work(name: str, files: int, **more: object) -> Task:
    """A task that reads `files` files, two a job, with its jobs made."""
    catalogue_dataset(f"{name}.in", files)
    task = submitted(reading(name, f"{name}.in", **{"maxAttempt": 50, **more}))
    run_agents(1)
    return task


def together(*actions: Callable[[], object]) -> list[object]:
    """Run the actions at the same time, each on a connection of its own: what each gave, or the Stale it raised."""
    gate = threading.Barrier(len(actions))

    def run(action: Callable[[], object]) -> object:
        gate.wait(10)
        try:
            return action()
        except Stale as stale:
            return stale
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result(30) for future in [pool.submit(run, action) for action in actions]]


def expired(leased: Lease) -> Lease:
    """The same, but its lease is over since a moment."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_job SET lease_until = now() - interval '1 millisecond' WHERE id = %s AND lease_until IS NOT NULL",
            [leased.job_id],
        )
    return leased


def ends(job_id: int) -> list[str]:
    """The final states that the history of a job has."""
    finals = ("finished", "failed", "closed", "cancelled")
    return list(JobChange.objects.filter(job_id=job_id, new__in=finals).values_list("new", flat=True))


def test_two_reports_of_one_lease_at_once_settle_it_once_and_get_the_same_answer(queue: ComputingQueue) -> None:
    work("twice", 2 * ROUNDS)
    for number in range(ROUNDS):
        leased = take(queue)
        reports = [good(leased.job_id), good(leased.job_id) if number % 2 else BAD]
        answers = together(*(partial(settle_job, leased.job_id, leased.epoch, report, "pilot") for report in reports))
        assert all(isinstance(answer, str) for answer in answers), answers
        assert len(set(answers)) == 1
        assert ends(leased.job_id) == [Job.objects.get(id=leased.job_id).status]
        assert JobResult.objects.filter(job_id=leased.job_id).count() == 1


def test_a_report_and_the_reaper_at_once_end_the_job_in_one_way(queue: ComputingQueue) -> None:
    work("late", 2 * ROUNDS)
    for _ in range(ROUNDS):
        leased = expired(take(queue))
        report = good(leased.job_id)
        answer, reaped = together(
            partial(settle_job, leased.job_id, leased.epoch, report, "pilot"), partial(expire_leases, "agent:reap", 100)
        )
        job = Job.objects.get(id=leased.job_id)
        assert ends(job.id) == [job.status]
        if reaped:
            assert isinstance(answer, Stale)
            assert (job.status, job.epoch) == ("failed", leased.epoch + 1)
        else:
            assert answer == "finished"
        uses = set(JobInput.objects.filter(job_id=job.id).values_list("status", flat=True))
        assert uses == {"returned" if reaped else "used"}


def test_a_heartbeat_and_the_reaper_at_once_either_keep_or_end_the_lease(queue: ComputingQueue) -> None:
    work("beat", 2 * ROUNDS)
    for _ in range(ROUNDS):
        leased = expired(take(queue))
        sign = SignOfLife(leased.job_id, leased.epoch)
        renewed, reaped = together(partial(beat, [sign]), partial(expire_leases, "agent:reap", 100))
        assert (renewed == [None]) == bool(reaped)
        if not reaped:
            settle_job(leased.job_id, leased.epoch, good(leased.job_id), "pilot")


def test_two_reapers_end_each_job_once(queue: ComputingQueue) -> None:
    work("reap", 40)
    leases = [expired(take(queue)) for _ in range(20)]
    reaped = together(*[partial(expire_leases, "agent:reap", 100)] * 3)
    assert sum(int(str(n)) for n in reaped) == 20
    assert all(ends(leased.job_id) == ["failed"] for leased in leases)
    assert File.objects.filter(type="input", status="ready", failed_attempt=1).count() == 40


def test_two_generators_give_each_file_to_one_job(queue: ComputingQueue) -> None:
    catalogue_dataset("twins.in", 60)
    submitted(reading("twins", "twins.in"))
    for name in ("refine", "feed", "assign"):
        run_agent(name, looked=True)
    together(*[partial(run_agent, "generate", looked=True)] * 3)
    run_agent("generate", looked=True)
    uses = Counter(JobInput.objects.values_list("file_id", flat=True))
    assert set(uses.values()) == {1}
    assert len(uses) == 2 * Job.objects.count()


def test_two_generators_make_the_same_task_queues_in_any_order(queue: ComputingQueue) -> None:
    for each in range(3):
        wanted = [(queue.id, Slot(1, ram, 0, each)) for ram in range(2000)]

        def make(order: int, wanted: Sequence[tuple[int, Slot]] = wanted) -> int:
            task = Task(vo="demo", prod_source_label="user")
            TaskParams(task=task, task_params={})
            found = task_queues(task, wanted[::order])
            connection.close()
            return len(found)

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(make, (1, -1))) == [2000, 2000]


def test_a_generator_whose_claim_was_taken_over_makes_nothing(queue: ComputingQueue) -> None:
    catalogue_dataset("over.in", 6)
    task = submitted(reading("over", "over.in"))
    for name in ("refine", "feed", "assign"):
        run_agent(name, looked=True)
    slow, quick = new_run("generate"), new_run("generate")
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    assert claim_tasks(slow.id, 0.0, ["ready"], 10)
    assert len(take_files(slow.id, task.id, dataset.id, 6)) == 6
    assert claim_tasks(quick.id, 60.0, ["ready"], 10), "a claim that ran out can be taken over"
    assert not File.objects.filter(dataset=dataset, status="picked").exists(), "what was picked is there for the next one"
    assert len(take_files(quick.id, task.id, dataset.id, 4)) == 4
    for late in (partial(take_files, slow.id, task.id, dataset.id, 6), partial(give_back_picked, slow.id, task.id)):
        with pytest.raises(Stale):
            late()
    assert File.objects.filter(dataset=dataset, status="picked").count() == 4


def _lease_until_none(queue_id: int, groups: Sequence[int], holder: UUID) -> list[int]:
    """In a process of its own: lease until nothing is left; the jobs it got."""
    got = []
    while (leased := lease(groups, holder, uuid4(), 60.0)) is not None:
        got.append(leased.job_id)
    connection.close()
    return got


def test_eight_processes_lease_every_job_once(queue: ComputingQueue) -> None:
    set_override("jobbroker", "NQUEUELIMITSITE", 1000, who="ada", why="room for all jobs")
    catalogue_dataset("many.in", 400)
    submitted(reading("many", "many.in"))
    run_agents(1)
    jobs = list(Job.objects.filter(status="activated").order_by("id").values_list("id", "task_queue_id"))
    assert len(jobs) == 200
    holders = [pilot(queue, f"slot{n}") for n in range(8)]
    connections.close_all()  # a forked process must not share them
    with multiprocessing.get_context("fork").Pool(8) as pool:
        groups = sorted({group for _, group in jobs})
        got = pool.starmap(_lease_until_none, [(queue.id, groups, holder) for holder in holders])
    assert sorted(job for each in got for job in each) == [job for job, _ in jobs]
    assert JobChange.objects.filter(new="sent").count() == 200
    assert set(Job.objects.values_list("status", "epoch")) == {("sent", 1)}


def test_a_kill_and_a_lease_at_once_leave_the_job_to_one_of_them(queue: ComputingQueue) -> None:
    work("kill", 4 * ROUNDS)  # the kill may take one job and the lease another
    for _ in range(ROUNDS):
        job = Job.objects.filter(status="activated").order_by("id").first()
        assert job is not None
        holder = pilot(queue, str(uuid4()))
        killed, leased = together(
            partial(kill_jobs, [JobVersion(job.id, job.epoch, job.status)], "user:ada", "not wanted"),
            partial(lease, [job.task_queue_id], holder, uuid4(), 60.0),
        )
        job.refresh_from_db()
        assert job.status == ("cancelled" if killed else "sent")
        assert isinstance(leased, Lease)
        assert (leased.job_id == job.id) == (not killed)
        settle_job(leased.job_id, leased.epoch, BAD, "pilot")


def test_a_kill_and_a_report_at_once_leave_one_end(queue: ComputingQueue) -> None:
    work("end", 2 * ROUNDS)
    for _ in range(ROUNDS):
        leased = take(queue)
        report = good(leased.job_id)
        answer, _ = together(
            partial(settle_job, leased.job_id, leased.epoch, report, "pilot"),
            partial(kill_jobs, [JobVersion(leased.job_id, leased.epoch, "running")], "user:ada", "not wanted"),
        )
        assert answer == "finished", "what was done before it was killed counts"
        assert ends(leased.job_id) == ["finished"]


def test_two_submissions_under_one_key_make_one_task(queue: ComputingQueue) -> None:
    for number in range(ROUNDS):
        first, second = together(*[partial(_submit_under_key, f"once{number}")] * 2)
        assert first == second
    assert Task.objects.count() == ROUNDS


def _submit_under_key(name: str) -> int:
    from workqueues.ledger.submit import submit

    task, _ = submit({"taskName": name}, {"task_name": name, "vo": "demo"}, "ada", "user:ada", f"key-{name}", "digest")
    return task.id


def test_the_database_refuses_a_late_settlement_that_all_code_would_take(queue: ComputingQueue) -> None:
    """The planted bug of the chaos test, with the fences of the database in place: the guard first, then the index."""
    work("planted", 2)
    leased = expired(take(queue))
    assert expire_leases("agent:reap", 10) == 1
    run_agents(1)
    again = take(queue)
    settle_job(again.job_id, again.epoch, good(again.job_id), "pilot")
    with pytest.raises(IntegrityError, match="no move from failed to running"), transaction.atomic():
        Job.objects.filter(id=leased.job_id).update(status="running", ended_at=None)
    with pytest.raises(IntegrityError, match="job_input_used_once"), transaction.atomic():
        JobInput.objects.filter(job_id=leased.job_id).update(status="used")
    with pytest.raises(IntegrityError, match="job_input_one_live"), transaction.atomic():
        JobInput.objects.filter(job_id__in=[leased.job_id, again.job_id]).update(status="live")


class Hammer:
    """Writers of all kinds on two small tasks, in no order; each step stands for what one process may do at any moment."""

    def __init__(self, queue: ComputingQueue, tasks: Sequence[Task]) -> None:
        self.queue, self.tasks = queue, tasks
        self.held: list[Lease] = []
        often, seldom = (self.lease, self.report, self.agent), (self.report, self.silence, self.kill, self.command)
        self.steps: list[Callable[[random.Random], None]] = [*often, *often, *seldom]

    def lease(self, dice: random.Random) -> None:
        leased = try_take(self.queue)
        if leased is not None:
            self.held.append(leased)

    def report(self, dice: random.Random) -> None:
        """The report of some lease, also of one that was reported already."""
        if not self.held:
            return
        leased = dice.choice(self.held[-8:])
        settle_job(leased.job_id, leased.epoch, dice.choice([good(leased.job_id), good(leased.job_id), BAD]), "pilot")

    def silence(self, dice: random.Random) -> None:
        if self.held:
            expired(dice.choice(self.held[-8:]))

    def agent(self, dice: random.Random) -> None:
        run_agent(dice.choice(["generate", "generate", "reap", "finish", "wake", "command"]), looked=True)

    def kill(self, dice: random.Random) -> None:
        live = live_jobs(dice.choice(self.tasks).id)
        if live and dice.random() < 0.3:
            kill_jobs(dice.sample(live, min(3, len(live))), "user:ada", "not wanted")

    def command(self, dice: random.Random) -> None:
        if dice.random() < 0.2:
            command(dice.choice(self.tasks).id, "retry", "user:ada")


def test_writers_of_all_kinds_at_once_neither_deadlock_nor_break_a_rule(queue: ComputingQueue) -> None:
    hammer = Hammer(queue, [work("left", 80), work("right", 80)])
    wrong: list[Exception] = []

    def strike(seed: int) -> None:
        dice = random.Random(seed)
        try:
            for _ in range(HAMMER // 4):
                try:
                    dice.choice(hammer.steps)(dice)
                except (Stale, NotAllowed):
                    continue  # somebody else was quicker
        except DatabaseError as problem:
            wrong.append(problem)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(strike, range(4)))
    assert wrong == []
    assert Agent.objects.exclude(last_error="").count() == 0
    assert JobChange.objects.count() > HAMMER // 4


def test_reports_of_several_jobs_at_once_and_the_reaper_end_each_job_in_one_way(queue: ComputingQueue) -> None:
    work("several", 60)
    for _ in range(5):
        leases = [take(queue) for _ in range(6)]
        expired(leases[0])
        words = [LastWord(each.job_id, each.epoch, good(each.job_id), "pilot") for each in leases]
        forward, backward, reaped = together(
            partial(settle_jobs, words), partial(settle_jobs, words[::-1]), partial(expire_leases, "agent:reap", 100)
        )
        assert isinstance(forward, list) and isinstance(backward, list), (forward, backward)
        assert list(map(str, forward)) == list(map(str, backward[::-1]))
        assert forward[1:] == ["finished"] * 5
        assert isinstance(forward[0], Stale) == bool(reaped)
        for each in leases:
            assert ends(each.job_id) == [Job.objects.get(id=each.job_id).status]
            assert JobResult.objects.filter(job_id=each.job_id).count() == 1
