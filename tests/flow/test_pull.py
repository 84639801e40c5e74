"""The child's side of a tree of brokers: what it pulls becomes tasks, and the parent is told what became of them, once each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from pytest_django import Settings

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job, Site
from tests.api.people import person
from tests.builders import grid, parameters, reading
from tests.flow.small_parent import TOKEN, SmallParent, input_dataset, serving
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.agents.element_tasks import start_element
from workqueues.ledger.installation import begin_anew, identity
from workqueues.models import CatalogueFile, File, Installation, ParentBroker, PulledElement, Replica, Task

pytestmark = pytest.mark.django_db
SITES = ["SITE_ALPHA"]


@pytest.fixture
def parent(settings: Settings, tmp_path: Path) -> Iterator[SmallParent]:
    with serving(SmallParent()) as small:
        settings.PARENT, settings.PARENT_TOKEN = small.url, TOKEN
        settings.INSTALLATION_FILE = str(tmp_path / "installation.json")
        yield small


@pytest.fixture
def queue() -> ComputingQueue:
    ensure_user("ada", roles=[("demo", "submitter")])
    return grid("ALPHA")[0]


def cycle(times: int = 1) -> None:
    for _ in range(times):
        assert run_agent("pull", looked=True) is not None


def element() -> PulledElement:
    return PulledElement.objects.get()


def named(n: int = 4, **more: Any) -> dict[str, Any]:
    """Parameters of an element of so many files, two a job."""
    params = reading("t1", "in.1", **more)
    params["jobParameters"][0]["files"] = [file["lfn"] for file in input_dataset("in.1", n)["files"]]
    return params


def offset(params: dict[str, Any], first: int) -> dict[str, Any]:
    """With outputs whose numbers follow this one."""
    for item in (params["log"], params["jobParameters"][1]):
        item["offset"] = first
    return params


def begun(parent: SmallParent, n: int = 4, **more: Any) -> Task:
    """The task of an element of so many files, with its jobs."""
    parent.offer(5, named(n, **more), [input_dataset("in.1", n)], SITES)
    cycle(3)
    run_agents()
    cycle()
    return Task.objects.get()


def why() -> str:
    return ParentBroker.objects.get().last_error


def test_work_of_production_stays_at_the_sites_that_the_parent_gave_it_to(parent: SmallParent) -> None:
    ensure_user("ada", roles=[("demo", "submitter"), ("demo", "production")])
    grid("ALPHA", "BETA")
    begun(parent, prodSourceLabel="managed", taskType="prod", nFilesPerJob=1)
    assert set(Job.objects.values_list("computing_queue__name", flat=True)) == {"ALPHA"}


def test_without_a_parent_nothing_is_done(queue: ComputingQueue) -> None:
    assert run_agent("pull", looked=True) == 0
    assert not ParentBroker.objects.exists()


def test_an_element_becomes_a_task_and_its_files_are_told_with_what_was_made_of_them(
    parent: SmallParent, queue: ComputingQueue
) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], [*SITES, "ELSEWHERE"])
    cycle()
    assert (element().status, element().told, element().task) == ("Negotiating", "Negotiating", None)
    told = parent.asked("pull")[0]
    assert told["sites"] == {"SITE_ALPHA": {"state": "Normal", "pending_slots": 50, "running_slots": 50, "running_jobs": 0}}
    assert (told["most"], told["free_jobs"], told["draining"]) == (100, None, False)
    cycle()
    assert [e["state"] for e in parent.told(5)] == ["Acquired"], "told before more is pulled"
    assert [verb for verb, _ in parent.heard] == ["report", "pull", "fetch", "report", "pull"]
    task = Task.objects.get()
    assert (task.status, task.user_name, task.submitted_by) == ("registered", "ada", "agent:pull")
    assert task.params.task_params["includedSite"] == ["ALPHA"]
    assert Replica.objects.filter(storage="ALPHA_DISK", file__dataset__name="in.1", file__dataset__vo="demo").count() == 4
    run_agents()
    cycle()
    assert (element().status, element().told) == ("Running", "Running")
    assert File.objects.filter(task=task, report_due=True).count() == 4
    end(take(queue))
    cycle()
    outputs = [f"t1.OUT.{1:06d}.txt", f"t1.log.{1:06d}.tgz"]
    assert parent.ends(5) == [(["in.1.000000 finished", "in.1.000001 finished"], outputs)]
    output = next(e for e in parent.told(5) if e["ends"])["ends"][0]["outputs"][0]
    assert {name: output[name] for name in ("dataset", "size", "checksum", "storage")} == {
        "dataset": "t1.OUT", "size": 10, "checksum": "0000000a", "storage": "ALPHA_DISK",
    }  # fmt: skip
    assert output["path"].endswith(outputs[0])
    assert run_jobs(queue) == 1
    run_agents()
    cycle(2)
    assert [len(inputs) for inputs, _ in parent.ends(5)] == [2, 2], "each end is told once"
    assert [e["state"] for e in parent.told(5)][-1] == "Done"
    assert parent.told(5)[-1]["sentence"].startswith("Done")
    row = element()
    assert (row.status, row.ended_at is not None) == ("Done", True)
    assert not File.objects.filter(report_due=True).exists()
    said = len(parent.told(5))
    cycle(2)
    assert len(parent.told(5)) == said


def test_serial_numbers_stay_within_the_lot_of_the_element(parent: SmallParent, queue: ComputingQueue) -> None:
    for number, first in ((5, 100), (6, 200)):
        parent.offer(number, offset(named(2), first), [input_dataset("in.1", 2)], SITES, serials=10)
    cycle(4)
    run_agents(3)
    cycle()
    assert run_jobs(queue) == 2
    names = set(File.objects.filter(type="output", status="finished").values_list("lfn", flat=True))
    assert names == {"t1.OUT.000101.txt", "t1.OUT.000201.txt"}


def test_a_lost_answer_to_a_pull_is_asked_for_again_with_the_same_key(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    parent.loses["pull"] = 1
    cycle()
    assert not PulledElement.objects.exists()
    assert "does not answer" in why()
    assert "does not answer" in Agent.objects.get(name="pull").left_out
    cycle()
    first, second = parent.asked("pull")
    assert first["key"] == second["key"]
    assert PulledElement.objects.count() == 1
    assert why() == ""
    parent.loses["fetch"] = 1
    cycle(3)
    parent.loses["report"] = 1
    run_agents()
    assert run_jobs(queue) == 2
    cycle(2)
    assert {end for inputs, _ in parent.ends(5) for end in inputs} == {f"in.1.{i:06d} finished" for i in range(4)}
    assert not File.objects.filter(report_due=True).exists()
    assert parent.asked("pull")[-1]["key"] != first["key"]


def test_one_run_speaks_to_the_parent_at_a_time(parent: SmallParent, queue: ComputingQueue) -> None:
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext('agent pull'))")
        cycle()
        assert parent.heard == []
        cursor.execute("SELECT pg_advisory_unlock(hashtext('agent pull'))")
    cycle()
    assert len(parent.asked("pull")) == 1


def test_an_element_is_submitted_once(parent: SmallParent, queue: ComputingQueue) -> None:
    task = begun(parent)
    row = element()
    assert start_element(row.id, ["ALPHA"], ["ALPHA_DISK"], "agent:pull") is None
    PulledElement.objects.update(task=None, status="Acquired")  # as a backup of just before has it
    again = start_element(row.id, ["ALPHA"], ["ALPHA_DISK"], "agent:pull")
    assert again is not None
    assert again.id == task.id


def test_a_refused_element_is_killed_and_told_no_more(parent: SmallParent, queue: ComputingQueue) -> None:
    task = begun(parent)
    parent.says[5] = {"verdict": "refused", "why": "another broker has it"}
    end(take(queue))
    cycle()
    assert (element().refused, element().ended_at) == ("another broker has it", None)
    run_agents()
    task.refresh_from_db()
    assert (task.status, TaskWho.of(task)) == ("aborted", "agent:pull")
    said = len(parent.told(5))
    cycle()
    assert element().ended_at is not None
    assert len(parent.told(5)) == said


class TaskWho:
    """Who gave a task its last command."""

    @staticmethod
    def of(task: Task) -> str:
        from workqueues.models import TaskChange

        return TaskChange.objects.filter(task_id=task.id, new="aborting").latest("id").who


def test_a_cancelled_element_is_killed_and_what_was_not_used_comes_back(parent: SmallParent, queue: ComputingQueue) -> None:
    task = begun(parent)
    end(take(queue))
    parent.says[5] = {"wish": "cancel"}
    cycle()
    assert element().status == "CancelRequested"
    cycle()
    run_agents()
    task.refresh_from_db()
    assert task.status == "aborted"
    cycle(2)
    told = [end for inputs, _ in parent.ends(5) for end in inputs]
    assert sorted(told) == [*(f"in.1.{i:06d} finished" for i in (0, 1)), *(f"in.1.{i:06d} unused" for i in (2, 3))]
    assert parent.told(5)[-1]["state"] == "Canceled"
    assert element().ended_at is not None


def test_files_that_failed_and_a_task_that_fails_are_told(parent: SmallParent, queue: ComputingQueue) -> None:
    begun(parent, 2, maxFailure=1)
    end(take(queue), BAD)
    run_agents()
    cycle(2)
    inputs = [i for e in parent.told(5) for one in e["ends"] for i in one["inputs"]]
    assert {(i["end"], i["why"]) for i in inputs} == {("failed", "PAYLOAD_EXIT: exit code 1")}
    assert parent.told(5)[-1]["state"] == "Failed"


def test_a_task_whose_element_is_over_at_the_parent_is_not_retried_here(parent: SmallParent, queue: ComputingQueue) -> None:
    task = begun(parent, 2, maxFailure=1)
    end(take(queue), BAD)
    run_agents()
    for _ in range(2):  # before the parent was told, and after
        answer = person("ada", ("demo", "submitter")).post(f"tasks/{task.id}/retry/")
        assert answer.status_code == 409
        assert answer.json()["detail"] == (
            f"Task {task.id} is not retried: it did element 5 of task 7 of the parent broker {parent.url}, which would hear"
            " nothing of another try here; retry task 7 there."
        )
        cycle(2)
    task.refresh_from_db()
    assert task.status == "failed"


def test_an_element_that_breaks_rules_here_fails_with_the_sentence(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, {**named(), "ramCount": -3}, [input_dataset("in.1", 4)], SITES)
    cycle(4)
    assert not Task.objects.exists()
    assert not CatalogueFile.objects.exists(), "nothing of it stays"
    last = parent.told(5)[-1]
    assert last["state"] == "Failed"
    assert "ramCount" in last["sentence"]
    assert [i["end"] for one in last["ends"] for i in one["inputs"]] == ["unused"] * 4
    assert element().ended_at is not None


def test_merged_outputs_are_told_and_never_what_waits_to_be_merged(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, offset(named(mergeOutput=True), 100), [input_dataset("in.1", 4)], SITES)
    cycle(3)
    run_agents()
    cycle()
    assert run_jobs(queue) == 2
    before = set(File.objects.filter(type="trn_output").values_list("lfn", flat=True))
    assert before == {"um.t1.OUT.000101.txt", "um.t1.OUT.000102.txt"}, "these numbers are of its lot, too"
    cycle()
    assert parent.ends(5) == []
    run_agents(1)
    assert run_jobs(queue) == 1
    cycle()
    ((inputs, outputs),) = parent.ends(5)
    assert inputs == [f"in.1.{i:06d} finished" for i in range(4)]
    assert outputs == ["t1.OUT.000101.txt", "t1.log.000101.tgz"]


def test_a_file_whose_output_is_lost_before_it_was_told_comes_back(parent: SmallParent, queue: ComputingQueue) -> None:
    begun(parent)
    end(take(queue))
    CatalogueFile.objects.filter(dataset__name="t1.OUT").delete()
    cycle()
    assert parent.ends(5) == [(["in.1.000000 unused", "in.1.000001 unused"], [])]


def test_a_parent_that_was_restored_is_told_all_again(parent: SmallParent, queue: ComputingQueue) -> None:
    begun(parent)
    end(take(queue))
    cycle()
    assert len(parent.ends(5)) == 1
    parent.incarnation = str(uuid4())
    parent.offer(6, named(), [input_dataset("in.1", 4)], SITES)
    cycle(2)
    assert len(parent.ends(5)) == 2
    assert parent.told(5)[-1]["incarnation"] != parent.incarnation, "it is that of the pull"
    assert str(ParentBroker.objects.get().incarnation) == parent.incarnation
    cycle()
    assert len(parent.ends(5)) == 2


def test_a_child_that_was_restored_tells_all_again_and_begins_nothing_before(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    cycle()
    Site.objects.update(state="Aborted")  # so that it waits
    cycle()
    assert (element().told, element().task) == ("Acquired", None)
    begin_anew("a test")
    parent.says[5] = {"verdict": "refused", "why": "that broker was restored"}
    Site.objects.update(state="ACTIVE")
    parent.loses["report"] = 1
    cycle()
    assert element().task is None, "the parent may have taken it back"
    cycle()
    assert (element().task, element().refused) == (None, "that broker was restored")
    assert element().ended_at is not None
    assert set(element().work) <= {"id", "try_nr", "owner", "sites", "serials"}, "no more is kept of it"


def test_work_that_was_pulled_from_a_state_that_is_gone_is_given_up(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    cycle()
    parent.incarnation = str(uuid4())
    parent.works = {}
    PulledElement.objects.update(lease_until=F("lease_until") - timedelta(seconds=800))  # so that it is told
    cycle(2)
    assert element().ended_at is not None
    assert "restored" in element().refused


def test_the_task_follows_that_of_the_parent(parent: SmallParent, queue: ComputingQueue) -> None:
    task = begun(parent)
    parent.says[5] = {"priority": 777, "wish": "pause"}
    end(take(queue))
    cycle()
    task.refresh_from_db()
    assert (task.current_priority, task.status, element().priority) == (777, "paused", 777)
    parent.says[5] = {"priority": 777}
    due()
    task.refresh_from_db()
    assert task.status == "running"


@pytest.mark.parametrize("wish", ["pause", "cancel"])
def test_what_the_parent_wishes_of_a_quiet_element_is_asked_for_at_once(
    parent: SmallParent, queue: ComputingQueue, wish: str
) -> None:
    task = begun(parent)
    said = len(parent.told(5))
    cycle(2)
    assert len(parent.told(5)) == said, "nothing happened to it"
    parent.says[5] = {"priority": 777, "wish": wish}
    parent.steered = [{"id": 5, "try_nr": 1}, {"id": 6, "try_nr": 1}, {"id": 5, "try_nr": 2}]
    cycle()
    parent.steered = []
    task.refresh_from_db()
    assert len(parent.told(5)) == said + {"pause": 1, "cancel": 2}[wish], "it tells too that it is being cancelled"
    assert task.current_priority == 777
    assert task.status == {"pause": "paused", "cancel": "aborting"}[wish]


def due() -> None:
    """Half of the lease goes by, and a cycle."""
    PulledElement.objects.update(
        lease_until=F("lease_until") - timedelta(seconds=500), told_at=F("told_at") - timedelta(seconds=500)
    )
    cycle()


def test_a_lease_is_renewed_when_half_of_it_is_gone(parent: SmallParent, queue: ComputingQueue) -> None:
    begun(parent)
    said = len(parent.told(5))
    cycle()
    assert len(parent.told(5)) == said
    before = element().lease_until
    due()
    assert len(parent.told(5)) == said + 1
    assert element().lease_until > before - timedelta(seconds=10)


def test_nothing_more_is_pulled_than_slots_take_and_what_waits_is_told(parent: SmallParent, queue: ComputingQueue) -> None:
    for number in (5, 6):
        parent.offer(number, named(2), [input_dataset("in.1", 2)], SITES, jobs=200, priority=number)
        parent.says[number] = {"priority": number}
    cycle(3)
    assert list(PulledElement.objects.filter(task=None).values_list("element_id", flat=True)) == [5], "6 goes first, and fills it"
    assert parent.asked("pull")[-1]["jobs"] == {"SITE_ALPHA": {"5": 200, "6": 200}}
    ComputingQueue.objects.update(status="brokeroff")
    set_override("elements", "CHILD_DRAINS", True, who="test", why="it drains")
    cycle()
    last = parent.asked("pull")[-1]
    assert (last["sites"]["SITE_ALPHA"]["state"], last["draining"], last["most"]) == ("Draining", True, 0)


def test_what_is_wrong_with_the_parent_is_told_in_plain_words(
    parent: SmallParent, queue: ComputingQueue, settings: Settings
) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    parent.above = [str(identity().instance)]
    cycle(2)
    assert "circle" in why()
    assert parent.asked("pull") == []
    parent.above, parent.clock_ahead = [], timedelta(days=3)
    cycle()
    assert "3 days, 0:00:00 ahead of ours" in why()
    assert len(parent.asked("pull")) == 1, "leases are durations"
    assert 259_000 < ParentBroker.objects.get().clock_ahead_s < 260_000
    parent.clock_ahead, parent.protocol = timedelta(), 2
    cycle()
    assert "speaks version 2" in why()
    settings.PARENT_TOKEN = "another"
    cycle()
    assert why() == "refused (401): the token is unknown"
    settings.PARENT = "http://127.0.0.1:9"
    cycle()
    assert "does not answer" in why()


def test_records_of_a_task_without_input_are_told_by_their_names(parent: SmallParent, queue: ComputingQueue) -> None:
    params = parameters(nEvents=20)
    params["jobParameters"][1]["offset"] = 7
    records = {"name": "seq_number", "vo": "demo", "files": [{"lfn": f"pseudo_lfn.{i:06d}"} for i in (8, 9)]}
    parent.offer(5, params, [records], SITES)
    cycle(3)
    run_agents()
    assert run_jobs(queue) == 2
    cycle(2)
    names = set(File.objects.filter(type="pseudo_input").values_list("lfn", flat=True))
    assert {end for inputs, _ in parent.ends(5) for end in inputs} == {f"{name} finished" for name in names}
    assert {int(name[-6:]) for name in names} == {8, 9}


def test_an_element_whose_serial_numbers_are_used_up_is_given_back_with_what_has_ended(
    parent: SmallParent, queue: ComputingQueue
) -> None:
    parent.offer(5, named(4), [input_dataset("in.1", 4)], SITES, serials=2)
    cycle(3)
    run_agents()
    cycle()
    end(take(queue))
    end(take(queue), BAD)
    due()
    assert element().given_back == "", "its task has yet to find that no number is left"
    File.objects.update(retry_due=None)
    run_agents(3)
    assert Task.objects.get().status == "pending"
    parent.loses["report"] = 1
    cycle(2)
    assert element().given_back == "its lot of serial numbers is used up: 0 are left for jobs of 2 files"
    assert TaskWho.of(Task.objects.get()) == "agent:pull"
    run_agents()
    cycle(3)
    told = [one for inputs, _ in parent.ends(5) for one in inputs]
    assert set(told) == {*(f"in.1.{i:06d} finished" for i in (0, 1)), *(f"in.1.{i:06d} unused" for i in (2, 3))}
    last = parent.told(5)[-1]
    assert (last["state"], last["sentence"]) == ("Canceled", element().given_back)
    assert element().ended_at is not None
    said = len(parent.told(5))
    cycle(2)
    assert len(parent.told(5)) == said


def test_a_task_that_goes_on_only_by_hand_or_stands_still_is_given_back_but_not_one_that_the_parent_pauses(
    parent: SmallParent, queue: ComputingQueue
) -> None:
    task = begun(parent)
    parent.says[5] = {"wish": "pause"}
    due()
    for key in ("RETRY_PAUSE", "RETRY_PAUSE_MAX"):  # no job is made again meanwhile, however slow the machine is
        set_override("jobbroker", key, 3600.0, who="test", why="test")
    end(take(queue))
    end(take(queue), BAD)
    set_override("elements", "STANDSTILL", 3600.0, who="test", why="test")
    hours_ago = timedelta(hours=5)
    PulledElement.objects.update(pulled_at=F("pulled_at") - hours_ago)
    Task.objects.update(command_time=F("command_time") - hours_ago)
    Job.objects.update(ended_at=F("ended_at") - hours_ago)
    Installation.objects.update(works_since=F("works_since") - hours_ago)
    cycle()
    assert element().given_back == ""
    parent.says[5] = {}
    due()
    cycle()
    assert element().given_back == "", "it was told to go on just now"
    Task.objects.update(command_time=F("command_time") - hours_ago, error_dialog="nobody knows")
    cycle()
    task.refresh_from_db()
    assert (task.status, element().given_back) == (
        "aborting", "no job of it was made for over 1h, its task is running: nobody knows",
    )  # fmt: skip


def test_what_waits_for_a_site_that_takes_no_work_any_more_is_given_back(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    cycle()
    Site.objects.update(state="Down")
    set_override("elements", "STANDSTILL", 3600.0, who="test", why="test")
    cycle(2)
    assert (element().status, element().task, element().given_back) == ("Acquired", None, "")
    PulledElement.objects.update(pulled_at=F("pulled_at") - timedelta(hours=5))
    cycle(2)
    assert element().given_back == "", "nothing stands still while this broker is down"
    Installation.objects.update(works_since=F("works_since") - timedelta(hours=5))
    cycle(2)
    last = parent.told(5)[-1]
    assert (last["state"], last["sentence"]) == ("Canceled", "it waits for over 1h, and no site takes work for it")
    assert [i["end"] for one in last["ends"] for i in one["inputs"]] == ["unused"] * 4
    assert element().ended_at is not None


def test_what_ended_at_the_parent_before_it_is_a_task_here_becomes_none(parent: SmallParent, queue: ComputingQueue) -> None:
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    cycle()
    Site.objects.update(state="Aborted")
    cycle()
    begin_anew("a backup of before came back")
    parent.says[5] = {"verdict": "ended", "lease_s": 0.0}
    Site.objects.update(state="ACTIVE")
    cycle(2)
    assert (element().status, element().task, element().ended_at is not None) == ("Canceled", None, True)


def test_what_the_parent_does_not_take_goes_back_to_it_as_unused(parent: SmallParent, queue: ComputingQueue) -> None:
    begun(parent, 2)
    assert run_jobs(queue) == 1
    run_agents()
    parent.says[5] = {"verdict": "held", "why": "ALPHA_DISK is no storage of this grid"}
    cycle(2)
    assert File.objects.filter(report_due=True).exists()
    Task.objects.update(ended_at=F("ended_at") - timedelta(hours=5))
    cycle()
    assert not File.objects.filter(report_due=True).exists()
    parent.says[5] = {}
    due()
    last = parent.told(5)[-1]
    assert (last["state"], last["ends"]) == ("Canceled", [])
    assert last["sentence"] == "the parent does not take what became of its files: ALPHA_DISK is no storage of this grid"
    assert element().ended_at is not None


def test_the_key_of_a_pull_is_kept_until_its_answer_is(parent: SmallParent, queue: ComputingQueue) -> None:
    """What is noted of the parent on the way loses neither the key nor the answer, which the page of the tree shows."""
    parent.offer(5, named(), [input_dataset("in.1", 4)], SITES)
    with patch("brokerage.agents.pull.store_pull", side_effect=RuntimeError("killed")):
        run_agent("pull", looked=True)
    assert not PulledElement.objects.exists()
    cycle()
    first, second = parent.asked("pull")
    assert first["key"] == second["key"]
    assert element().element_id == 5
    assert ParentBroker.objects.get().answer["elements"] == [[5, 1, "SITE_ALPHA"]]
