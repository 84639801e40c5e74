"""Jobs that get their queue late: from a task to its end, with all that hangs on a queue (row X4, decision H7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.empty_task_queues import remove_empty_task_queues
from brokerage.ledger.pilots import note_vain_ask
from brokerage.ledger.unreported_ends import end_jobs
from brokerage.ledger.urgency import Urgency, raise_tasks
from brokerage.models import (
    ComputingQueue,
    IdleHour,
    Job,
    JobChange,
    JobOpening,
    RequirementPlace,
    RequirementSet,
    TaskQueue,
)
from brokerage.queries.invariants import look
from brokerage.queries.jobs import open_to
from brokerage.queries.share_use import share_use
from brokerage.queries.task_status import task_status
from brokerage.queries.waiting import WAITING
from brokerage.queries.world import load_snapshot
from brokerage.rules.dispatch.requirement import Requirement, Resource
from brokerage.rules.dispatch.task_queue_key import digest
from brokerage.rules.explain.task_status_text import reasons
from brokerage.rules.facts.job_kind import JobKind
from tests.api.people import person
from tests.builders import catalogue_dataset, grid, parameters, pilot, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take, try_take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Dataset, File, Replica, Task

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "generate")


def late(name: str = "t", **more: Any) -> Task:
    """A task of four jobs without input that any queue may run."""
    task = submitted(parameters(name, **{"binding": "late", **more}))
    run_agents(names=MAKING)
    task.refresh_from_db()
    return task


def places() -> set[str]:
    return set(RequirementPlace.objects.values_list("computing_queue__name", flat=True))


def violations() -> list[str]:
    return [f"{finding.invariant.name}: {sample}" for finding in look() for sample in finding.examples]


def state(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_an_open_job_goes_to_whichever_queue_has_a_pilot_first() -> None:
    _, beta, gamma = grid("ALPHA", "BETA", "GAMMA")
    task = late()
    assert list(Job.objects.filter(computing_queue=None).values_list("status", "storage")) == [("activated", "")] * 4
    assert places() == {"ALPHA", "BETA", "GAMMA"}
    assert violations() == []
    first, second = take(beta), take(gamma)
    assert Job.objects.get(id=first.job_id).placed_at == beta
    assert Job.objects.get(id=second.job_id).storage == "GAMMA_DISK"
    assert violations() == []
    end(first)
    end(second)
    assert run_jobs(beta) == 2
    run_agents()
    assert state(task) == "done"
    assert violations() == []


def test_each_queue_has_its_dataset_whichever_the_jobs_go_to() -> None:
    queues = grid("ALPHA", "BETA", "GAMMA")
    task = late(instantiateTmplSite=True)
    assert set(Dataset.objects.filter(type="output").values_list("site", flat=True)) == {"ALPHA", "BETA", "GAMMA"}
    assert violations() == []
    for queue in (queues[1], queues[2], queues[1]):
        end(take(queue))
        assert violations() == []
    assert run_jobs(queues[0]) == 1
    made = Counter(File.objects.filter(type="output").values_list("dataset__site", "status"))
    assert made == {("ALPHA", "finished"): 1, ("BETA", "finished"): 2, ("GAMMA", "finished"): 1}
    counts = dict(Dataset.objects.filter(type="output").values_list("site", "n_files_finished"))
    assert counts == {"ALPHA": 1, "BETA": 2, "GAMMA": 1}
    run_agents()
    assert state(task) == "done"
    assert violations() == []


def test_what_is_written_to_datasets_of_each_queue_waits_apart_from_what_is_not() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    tasks = [late(name, instantiateTmplSite=own) for name, own in (("whole", False), ("by_queue", True))]
    own = {id_: waiting.own_datasets for waiting in WAITING.of(beta.id, fresh=True).rows for id_ in [waiting.id]}
    by_task = {task: Job.objects.filter(task_id=task.id).values_list("task_queue_id", flat=True).distinct() for task in tasks}
    assert [[own[id_] for id_ in by_task[task]] for task in tasks] == [[False], [True]]
    end(take(alpha))
    assert run_jobs(beta) == 7
    run_agents()
    assert [state(task) for task in tasks] == ["done", "done"]
    made = Counter(File.objects.filter(type="output", task=tasks[0]).values_list("dataset__site", "status"))
    assert made == {("", "finished"): 4}
    assert violations() == []


def test_a_try_that_failed_is_open_again() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = late()
    end(take(alpha), BAD)
    run_agents(names=("generate",))
    assert Counter(Job.objects.values_list("status", "computing_queue__name")) == {("failed", "ALPHA"): 1, ("activated", None): 4}
    assert run_jobs(beta) == 4
    run_agents()
    assert state(task) == "done"
    assert violations() == []


def test_an_open_job_goes_only_where_its_input_is() -> None:
    alpha, beta, gamma = grid("ALPHA", "BETA", "GAMMA")
    for storage in ("ALPHA_DISK", "GAMMA_DISK"):
        catalogue_dataset(f"in.{storage}", 1, storage=storage)
    catalogue_dataset("in.data", 2)
    Replica.objects.bulk_create(
        Replica(file=f, storage="GAMMA_DISK") for f in CatalogueFile.objects.filter(dataset__name="in.data")
    )
    submitted(reading("t", "in.data", nFilesPerJob=1, binding="late"))
    run_agents(names=MAKING)
    assert places() == {"ALPHA", "GAMMA"}
    assert try_take(beta) is None
    assert run_jobs(alpha) + run_jobs(gamma) == 2
    assert violations() == []


def test_queues_without_the_input_get_jobs_of_their_own_once_open_ones_fill_the_others() -> None:
    grid("ALPHA", "BETA", "GAMMA")
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", 2, who="ada", why="test")
    catalogue_dataset("in.data", 8)
    Replica.objects.bulk_create(
        Replica(file=f, storage="GAMMA_DISK") for f in CatalogueFile.objects.filter(dataset__name="in.data")
    )
    submitted(reading("t", "in.data", nFilesPerJob=1, binding="late", prodSourceLabel="managed", taskType="prod"))
    run_agents(names=MAKING)
    made = Counter(Job.objects.values_list("status", "computing_queue__name"))
    assert made == {("activated", None): 4, ("assigned", "BETA"): 2}, "open ones first, then as many as BETA has room for"
    assert places() == {"ALPHA", "GAMMA"}
    beside = JobChange.objects.filter(job_id__in=Job.objects.filter(computing_queue__name="BETA").values("id"))
    assert set(beside.values_list("why", flat=True)) == {"made for BETA, where 1 of its input files must come"}
    assert violations() == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"coreCount": 0}, "as many cores as the slots"),
        ({"site": "ALPHA"}, "names the one place"),
        ({"includedSite": ["BETA"]}, "one queue only"),
    ],
)
def test_a_task_that_cannot_be_late_is_early_and_says_why(more: dict[str, Any], why: str) -> None:
    grid("ALPHA", "BETA")
    late(**more)
    assert not Job.objects.filter(computing_queue=None).exists()
    assert all(why in change for change in JobChange.objects.values_list("why", flat=True))
    assert violations() == []


def test_the_key_says_what_a_task_leaves_open() -> None:
    grid("ALPHA", "BETA")
    gdpconfig.set_override("dispatch", "BINDING_analysis", "late", who="ada", why="test")
    task = submitted(parameters("t"))
    other = submitted(parameters("u", binding="early"))
    run_agents(names=MAKING)
    assert Counter(Job.objects.filter(computing_queue=None).values_list("task_id", flat=True)) == {task.id: 4}
    assert Job.objects.filter(task_id=other.id).count() == 4


def test_a_job_that_waited_is_open_to_the_other_queues() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = late(binding="late_after", bindingAfter=600)
    assert not Job.objects.filter(computing_queue=None).exists()
    assert JobOpening.objects.count() == 4
    gone = take(alpha) if Job.objects.filter(computing_queue=alpha).exists() else take(beta)
    run_agent("reap", looked=True)
    assert JobOpening.objects.count() == 4, "nothing is due"
    JobOpening.objects.update(due=TransactionNow() - timedelta(seconds=1))
    for _ in range(2):
        run_agent("reap", looked=True)
    assert not JobOpening.objects.exists()
    assert Job.objects.exclude(id=gone.job_id).filter(computing_queue=None, storage="").count() == 3
    assert Job.objects.get(id=gone.job_id).computing_queue is not None
    assert JobChange.objects.filter(why__contains="open to any of 2 queues").count() == 3
    assert violations() == []
    end(gone)
    assert run_jobs(beta) == 3
    run_agents()
    assert state(task) == "done"
    assert violations() == []


def test_a_job_that_ended_is_not_waited_for_to_be_opened() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    late(binding="late_after", bindingAfter=600)
    lease = take(alpha) if Job.objects.filter(computing_queue=alpha).exists() else take(beta)
    assert JobOpening.objects.filter(job_id=lease.job_id).exists(), "should the pilot lose it, it waits again"
    end(lease)
    assert not JobOpening.objects.filter(job_id=lease.job_id).exists()
    assert JobOpening.objects.count() == 3
    end_jobs(list(Job.objects.filter(status="activated").values_list("id", flat=True)), "closed", "ada", "not wanted")
    assert not JobOpening.objects.exists()


def test_a_job_that_somebody_has_is_opened_later() -> None:
    grid("ALPHA", "BETA")
    late(binding="late_after", bindingAfter=600, nEvents=10)
    JobOpening.objects.update(due=TransactionNow() - timedelta(seconds=1))
    Job.objects.update(status="throttled", ready_priority=None)
    run_agent("reap", looked=True)
    assert Job.objects.get().computing_queue is None


def test_an_open_job_counts_a_part_at_each_of_its_queues_and_once_for_its_share() -> None:
    grid("ALPHA", "BETA")
    late()
    facts = load_snapshot(Task.objects.latest("id").creation_date).facts
    assert Counter({job["queue"]: job["n"] for job in facts.jobs}) == {"ALPHA": 2, "BETA": 2}
    assert share_use().shares["demo"][""].jobs_queued == 4


def test_the_odd_ones_of_many_small_task_queues_are_spread_over_the_queues() -> None:
    """As many jobs that share a task queue are; else one queue counts all of them and the others none."""
    grid("ALPHA", "BETA")
    late()
    for number, job in enumerate(Job.objects.select_related("task_queue").order_by("id")):
        own = job.task_queue
        own.pk, own.ram_mb = None, 1000 + number
        own.save(force_insert=True)
        Job.objects.filter(id=job.id).update(task_queue=own)
    facts = load_snapshot(Task.objects.latest("id").creation_date).facts
    assert Counter({job["queue"]: job["n"] for job in facts.jobs}) == {"ALPHA": 2, "BETA": 2}


def test_the_other_queues_run_what_is_open_when_one_goes_offline() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = late()
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
    run_agent("reap", looked=True)
    assert Counter(Job.objects.values_list("status", flat=True)) == {"activated": 4}
    assert run_jobs(beta) == 4
    run_agents()
    assert state(task) == "done"


@pytest.mark.parametrize("lost", ["status", "storage"])
def test_open_jobs_that_no_queue_can_run_any_more_are_brokered_anew(lost: str) -> None:
    grid("ALPHA", "BETA")
    task = late()
    if lost == "status":
        ComputingQueue.objects.update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
    else:
        RequirementPlace.objects.update(storage="GONE")
    for _ in range(2):
        run_agent("reap", looked=True)
    assert Counter(Job.objects.values_list("status", "sub_status")) == {("closed", "toreassign"): 4}
    assert violations() == []
    (gamma,) = grid("GAMMA")
    ComputingQueue.objects.filter(name="ALPHA").update(status="online")
    run_agents(names=MAKING)
    assert run_jobs(gamma) == 4
    run_agents()
    assert state(task) == "done"
    assert violations() == []


def test_a_pilot_gets_no_open_job_whose_storage_there_is_gone() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    late()
    RequirementPlace.objects.filter(computing_queue=alpha).update(storage="GONE")
    assert try_take(alpha) is None
    assert run_jobs(beta) == 4


def test_outputs_wait_to_be_merged_for_open_jobs_that_may_still_come_to_their_site() -> None:
    alpha, beta, gamma = grid("ALPHA", "BETA", "GAMMA")
    task = late(mergeOutput=True, excludedSite=["GAMMA"])
    assert places() == {"ALPHA", "BETA"}
    assert [end(take(alpha)), end(take(beta))] == ["merging", "merging"]
    run_agents()
    assert not Job.objects.filter(kind=JobKind.MERGE).exists(), "two open jobs may come to either site"
    assert [end(take(alpha)), end(take(alpha))] == ["merging", "merging"]
    run_agents()
    merges = Job.objects.filter(kind=JobKind.MERGE).values_list("computing_queue__name", flat=True)
    assert sorted(merges) == ["ALPHA", "BETA"]
    assert violations() == []
    for queue in (alpha, beta):
        run_jobs(queue)
    run_agents()
    assert state(task) == "done"
    assert try_take(gamma) is None


def test_an_idle_slot_stands_beside_open_work_at_any_of_its_queues() -> None:
    _, beta = grid("ALPHA", "BETA")
    late()
    note_vain_ask(pilot(beta, "idle"), beta.id, Resource("BETA", 1, 4000, 10000), 60.0)
    run_agent("slots", looked=True)
    assert IdleHour.objects.get(queue=beta).beside == 1


@pytest.mark.django_db(transaction=True)
def test_the_share_of_a_task_is_changed_with_its_jobs_that_open_later() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = late(binding="late_after", bindingAfter=600)
    raise_tasks([Urgency(task.id, 700, "Express", "test")])
    JobOpening.objects.update(due=TransactionNow() - timedelta(seconds=1))
    run_agent("reap", looked=True)
    assert set(Job.objects.values_list("task_queue__gshare", "priority")) == {("Express", 700)}
    assert Job.objects.filter(computing_queue=None).count() == 4
    assert run_jobs(alpha) + run_jobs(beta) == 4
    assert violations() == []


def test_task_queues_stay_for_jobs_that_open_later() -> None:
    grid("ALPHA", "BETA")
    late(binding="late_after", bindingAfter=600)
    TaskQueue.objects.update(used_at=TransactionNow() - timedelta(hours=1))
    remove_empty_task_queues(100, 300.0)
    assert TaskQueue.objects.filter(computing_queue=None).count() == 1


def test_people_see_to_which_queues_a_job_is_open(client: Client) -> None:
    grid("ALPHA", "BETA")
    task = late(nEvents=10)
    job = Job.objects.get()
    assert open_to(job.id) == ["ALPHA", "BETA"]
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    page = client.get(f"/jobs/{job.id}/").content.decode()
    assert 'open to 2 queues: <a href="/queues/ALPHA/">ALPHA</a>, <a href="/queues/BETA/">BETA</a>' in page
    assert "the storage of the queue that takes it" in page
    assert "when a pilot takes them" in client.get(f"/tasks/{task.id}/").content.decode()
    assert ">open<" in client.get(f"/jobs/?task={task.id}").content.decode()
    shown = person("bob", ("demo", "operator")).get(f"jobs/{job.id}/").json()
    assert (shown["computing_queue"], shown["open_to"]) == (None, ["ALPHA", "BETA"])
    assert JobChange.objects.get(job_id=job.id).why == "made for any of 2 queues: ALPHA, BETA"
    assert "1 job waits at any of 2 queues for a free pilot that suits it" in " ".join(
        reason.message for reason in reasons(task_status(task))
    )


def test_a_paused_task_holds_its_open_jobs_back() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    task = late()
    command(task.id, "pause", "user:ada")
    run_agent("command", looked=True)
    assert try_take(alpha) is None
    command(task.id, "resume", "user:ada")
    run_agent("command", looked=True)
    assert run_jobs(alpha) == 4
    assert violations() == []


def test_open_jobs_end_with_their_task() -> None:
    grid("ALPHA", "BETA")
    task = late()
    command(task.id, "kill", "user:ada")
    run_agents()
    assert state(task) == "aborted"
    assert Counter(Job.objects.values_list("status", flat=True)) == {"cancelled": 4}
    assert violations() == []


def test_the_operator_of_a_queue_sees_how_many_open_jobs_may_come(client: Client) -> None:
    alpha, _, _ = grid("ALPHA", "BETA", "GAMMA")
    late(includedSite=["ALPHA", "BETA"])
    submitted(parameters("u", binding="late", includedSite=["BETA", "GAMMA"], nEvents=20))
    submitted(parameters("v", includedSite=["ALPHA"], nEvents=10))
    run_agents(names=MAKING)
    bob = person("bob", ("demo", "operator"))

    def shown(name: str) -> tuple[int, dict[str, int]]:
        found = bob.get(f"queues/{name}/").json()
        return found["open_jobs"], found["jobs"]

    assert [shown(name) for name in ("ALPHA", "BETA", "GAMMA")] == [(4, {"activated": 1}), (6, {}), (2, {})]
    ids = {row["id"] for row in bob.get("jobs/?open_to=GAM*").json()["results"]}
    assert ids == set(Job.objects.filter(spec__job_name__startswith="u.").values_list("id", flat=True))
    assert len(ids) == 2
    assert len(bob.get("jobs/?open_to=BETA").json()["results"]) == 6
    assert [row["computing_queue"] for row in bob.get("jobs/?queue=ALPHA").json()["results"]] == ["ALPHA"]
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    page = client.get("/queues/BETA/").content.decode()
    assert '<a href="/jobs/?open_to=BETA">6</a>' in page
    assert [row["jobs_open"] for row in client.get("/queues.json").json()["rows"]] == [4, 6, 2]
    assert len(client.get("/jobs.json?open_to=ALPHA").json()["rows"]) == 4
    take(alpha)
    assert shown("BETA")[0] == 5
    ComputingQueue.objects.filter(name="GAMMA").update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
    RequirementPlace.objects.filter(computing_queue__name="BETA").update(storage="GONE")
    assert shown("BETA") == (0, {}), "none could go there"


def test_a_job_that_ended_open_says_so(client: Client) -> None:
    grid("ALPHA", "BETA")
    late(nEvents=10)
    ComputingQueue.objects.update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
    for _ in range(2):
        run_agent("reap", looked=True)
    closed = Job.objects.get()
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    assert "it was open to several and ended before a pilot took it" in client.get(f"/jobs/{closed.id}/").content.decode()
    assert [row["computing_queue"] for row in client.get("/jobs.json").json()["rows"]] == ["none"]


def comes_back(queue: ComputingQueue, meanwhile: Callable[[], object] = lambda: None) -> None:
    """The queue is removed, and made again with the same name and storage."""
    storages = list(queue.storages.values("storage_id", "access", "position"))
    queue.delete()
    meanwhile()
    queue.id = None
    queue.save(force_insert=True)
    for row in storages:
        queue.storages.create(**row)
    pilot(queue)


def test_a_queue_that_was_removed_and_comes_back_gets_open_jobs_with_its_storage() -> None:
    grid("ALPHA", "BETA", "GAMMA")
    late()
    assert try_take(grid("DELTA")[0]) is None
    before = ComputingQueue.objects.get(name="ALPHA")
    assert [row.storage for row in WAITING.of(before.id, fresh=True).rows] == ["ALPHA_DISK"]
    comes_back(before)
    submitted(parameters("u", binding="late", excludedSite=["DELTA"]))
    run_agents(names=MAKING)
    leased = take(before)
    assert Job.objects.get(id=leased.job_id).storage == "ALPHA_DISK"
    assert violations() == []


def test_a_queue_that_comes_back_gets_open_jobs_also_from_a_process_that_met_them_while_it_was_gone() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    late()
    WAITING.forget()
    comes_back(alpha, partial(take, beta))
    submitted(parameters("u", binding="late"))
    run_agents(names=MAKING)
    take(alpha)


def test_outputs_of_jobs_of_before_an_update_go_to_the_dataset_of_their_queue_also_where_one_came_back() -> None:
    """The broker of before told requirement sets apart by places alone, whatever datasets the jobs write to."""
    alpha, beta = grid("ALPHA", "BETA")
    by_queue = late("by_queue", instantiateTmplSite=True)
    places_then = frozenset({"ALPHA ALPHA_DISK", "BETA BETA_DISK"})
    assert RequirementSet.objects.update(digest=digest(Requirement(queues=places_then))) == 1
    comes_back(beta)
    late("whole")
    for queue in (beta, alpha):
        assert all(try_take(queue) for _ in range(4))
    outputs = File.objects.filter(type="output", task=by_queue).values_list("out_job_id", "dataset__site")
    assert dict(outputs) == dict(Job.objects.filter(task_id=by_queue.id).values_list("id", "computing_queue__name"))
    assert violations() == []


@pytest.mark.parametrize("binding", ["late", "late_after"])
def test_a_job_that_is_or_becomes_open_is_cut_for_the_smallest_of_its_queues(binding: str) -> None:
    """Four files of 1 GB and half a GB for the output are less than the 5 GB of one queue; the other could run all eight."""
    _, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=beta.id).update(maxwdir=5000)
    catalogue_dataset("in.data", 8, size=10**9)
    files = CatalogueFile.objects.filter(dataset__name="in.data")
    Replica.objects.bulk_create(Replica(file=file, storage="BETA_DISK") for file in files)
    submitted(reading("t", "in.data", nFilesPerJob=None, binding=binding))
    run_agents(names=MAKING)
    assert [job.inputs.count() for job in Job.objects.order_by("id")] == [4, 4]
    assert places() == {"ALPHA", "BETA"}
