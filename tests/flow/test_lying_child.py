"""A child broker that tells what cannot be: nothing of it is taken, it hears why, and other children are not held up."""

from __future__ import annotations

from datetime import timedelta
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue, QueueStorage
from brokerage.queries.invariants import check
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.child_broker import Child, ended, made
from tests.flow.steps import LIFE, run_agents
from workqueues.models import CatalogueFile, ChildBroker, Element, File, FileChange
from workqueues.queries import child_brokers
from workqueues.queries.child_brokers import stands

pytestmark = pytest.mark.django_db(transaction=True)


def scene() -> tuple[Child, dict[str, Any], dict[str, Any], list[str]]:
    """A child with an element of two files of four."""
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    set_override("elements", "ELEMENT_FILES", 2, who="ada", why="test", app="jedi")
    submitted(reading("t", "in.data", workTo="children"))
    run_agents(2, (*LIFE, "offer"))
    child = Child()
    (head,) = child.pulled(most=1)
    (work,) = child.work(head)
    return child, head, work, [file["lfn"] for file in work["inputs"][0]["files"]]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ({"lfn": "../../etc/passwd"}, "outputs[0].lfn: a name of a file has no slash"),
        ({"lfn": "a\nb"}, "outputs[0].lfn: a name of a file has no slash"),
        ({"path": "../../../etc/passwd"}, "outputs[0].path: must be a path below the root"),
        ({"path": "/etc/passwd"}, "outputs[0].path: must be a path below the root"),
    ],
)
def test_names_and_paths_that_lead_elsewhere(spoil: dict[str, Any], told: str) -> None:
    child, head, _, (a, _) = scene()
    end = {"inputs": [{"lfn": a, "end": "finished"}], "outputs": [made("t.OUT", "t.OUT.000001.txt") | spoil]}
    answer = child.call("report", elements=[child.of(head, "Running", end)])
    assert answer.status_code == 422
    assert told in answer.json()["detail"]
    assert set(File.objects.filter(lfn=a).values_list("status", flat=True)) == {"running"}


@pytest.mark.parametrize(
    ("lfn", "path"), [("t.OUT.000001.txt", "demo/in.data/in.data.000001"), ("t.OUT.000901.txt", ""), ("other", ""), ("é", "")]
)
def test_files_of_others(lfn: str, path: str) -> None:
    child, head, _, (a, _) = scene()
    output = made("t.OUT", lfn, **({"path": path} if path else {}))
    end = {"inputs": [{"lfn": a, "end": "finished"}], "outputs": [output]}
    (verdict,) = child.report(child.of(head, "Running", end))
    assert (verdict["verdict"], verdict["settled"]) == ("held", 0)
    assert "ends with another name" in verdict["why"] or "with a serial number of this try, 1 to 40" in verdict["why"]
    assert set(File.objects.filter(lfn=a).values_list("status", flat=True)) == {"running"}
    assert not CatalogueFile.objects.filter(lfn=lfn).exists()


def test_it_takes_no_names_of_another_child() -> None:
    west, head, work, files = scene()
    east = Child("east")
    (other,) = east.pulled(most=1)
    (its_work,) = east.work(other)
    its_files = [file["lfn"] for file in its_work["inputs"][0]["files"]]
    good = ended(its_work, 1, *its_files)
    stolen = {"inputs": [{"lfn": files[0], "end": "finished"}], "outputs": good["outputs"]}
    (verdict,) = west.report(west.of(head, "Running", stolen))
    assert "with a serial number of this try" in verdict["why"]
    (verdict,) = east.report(east.of(other, "Done", good))
    assert (verdict["verdict"], verdict["settled"]) == ("ended", 2)
    (verdict,) = west.report(west.of(head, "Done", ended(work, 1, *files)))
    assert (verdict["verdict"], verdict["settled"]) == ("ended", 2)
    assert set(Element.objects.values_list("status", flat=True)) == {"Done"}
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def test_a_child_does_not_keep_its_parent_counting() -> None:
    grid("ALPHA")
    answer = Child().pull(jobs={"SITE_ALPHA": {str(priority): 0 for priority in range(501)}})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "jobs.SITE_ALPHA: more than 500 entries"


def test_of_many_pulls_at_once_one_gets_something() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 8)
    set_override("elements", "ELEMENT_FILES", 1, who="ada", why="test", app="jedi")
    submitted(reading("t", "in.data", workTo="children"))
    run_agents(2, (*LIFE, "offer"))
    child = Child()
    answers: list[dict[str, Any]] = []

    def pull(wait: Barrier) -> None:
        try:
            wait.wait()
            answers.append(child.pull(most=2).json())
        finally:
            connection.close()

    wait = Barrier(6)
    threads = [Thread(target=pull, args=(wait,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(answer["elements"]) for answer in answers) == [0, 0, 0, 0, 0, 2]
    assert all(answer["why"] == {"negotiating": 2} for answer in answers if not answer["elements"])
    assert Element.objects.filter(status="Negotiating").count() == 2


def test_files_that_come_back_unused_while_their_element_goes_on_fail_in_the_end() -> None:
    """A child that says at once of every file that it did not use it, and of no element that it is done with it."""
    grid("ALPHA")
    set_override("elements", "MOST_RETURNS", 3, who="ada", why="test")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", workTo="children"))
    run_agents(2, (*LIFE, "offer"))
    child, rests, lost = Child(), [], "no room"
    for n in range(3):
        (head,) = child.pulled()
        (work,) = child.work(head)
        ends = [{"lfn": file["lfn"], "end": "unused", "why": lost} for file in work["inputs"][0]["files"]]
        (verdict,) = child.report(child.of(head, "Running", {"inputs": ends}))
        assert (verdict["verdict"], verdict["settled"]) == ("held", 2)
        assert run_agent("offer", looked=True) is not None
        assert child.pulled() == [], "they rest"
        if n < 2:
            due = File.objects.filter(task=task, type="input").latest("id").retry_due
            assert due is not None
            rests.append((due - clock.now()).total_seconds())
        run_agents(1, (*LIFE, "offer"))  # hours later
    assert rests == pytest.approx([900, 1200], abs=60)
    assert set(File.objects.filter(task=task, type="input").values_list("status", flat=True)) == {"failed"}
    why = "given back by child brokers 3 times in a row; the last time: no room"
    assert FileChange.objects.filter(task_id=task.id, why=why).count() == 2
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def test_one_child_does_not_take_the_whole_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has slots without end, and never says what became of anything; others find work on."""
    grid("ALPHA")
    set_override("elements", "MOST_HELD", 3, who="ada", why="test")
    catalogue_dataset("in.data", 8)
    set_override("elements", "ELEMENT_FILES", 1, who="ada", why="test", app="jedi")
    submitted(reading("t", "in.data", workTo="children"))
    run_agents(2, (*LIFE, "offer"))
    greedy, other = Child(sites={"SITE_ALPHA": {"pending_slots": 10**6, "running_slots": 10**6}}), Child("east")
    assert len(greedy.pulled(most=2)) == 2
    assert len(greedy.pulled(most=100)) == 1
    answer = greedy.pull(most=100).json()
    assert (answer["elements"], answer["why"]) == ([], {"holds_most": 3})
    ((_, stand), *_) = [known for known in stands() if known[0].name == "west"]
    assert (stand.held, stand.holds_most) == (3, True)
    monkeypatch.setattr(child_brokers, "MOST_COUNTED", 1)
    ((_, stand), *_) = [known for known in stands() if known[0].name == "west"]
    assert (stand.held, stand.holds_most) == (3, True), "of one that has very many it is known without counting them all"
    assert len(other.pulled(most=100)) == 3
    Element.objects.filter(child__name="west").update(lease_until=clock.now() - timedelta(hours=1))
    run_agents(1, ("offer",))
    assert len(greedy.pulled(most=1)) == 1


def test_outputs_are_where_the_child_has_a_site() -> None:
    """Another storage of the grid is none of a child that tells of one site: this end is refused, the others are taken."""
    child, head, work, (a, b) = scene()
    grid("BETA")
    elsewhere = ended(work, 1, a)
    elsewhere["outputs"][0]["storage"] = "BETA_DISK"
    (verdict,) = child.report(child.of(head, "Running", elsewhere, ended(work, 2, b)))
    assert (verdict["verdict"], verdict["settled"]) == ("held", 1)
    assert verdict["why"].endswith("is at storage BETA_DISK, which no site of this child has or uses")
    QueueStorage.objects.create(
        queue=ComputingQueue.objects.get(site="SITE_ALPHA"), storage_id="BETA_DISK", access="write_lan", position=2
    )
    (verdict,) = child.report(child.of(head, "Running", elsewhere))
    assert (verdict["settled"], verdict["why"]) == (1, ""), "its queue writes there"


def test_two_brokers_with_one_token_do_not_take_all_from_each_other_with_every_message() -> None:
    first, head, _, _ = scene()
    twin = Child("twin", sites=first.sites)
    twin.token = first.token
    (other,) = twin.pulled(most=1)
    assert Element.objects.get(id=head["id"]).child is None or head["id"] == other["id"], "what the first had is taken back"
    row = ChildBroker.objects.get(name="west")
    assert row.last_error == "another broker speaks with the token of its child"
    for answer in (first.pull(), first.call("report", elements=[]), first.call("fetch", elements=[])):
        assert answer.status_code == 409
        assert answer.json()["detail"] == (
            "another broker speaks with the token of its child, as within the last 10min already: each broker needs a token of"
            " its own"
        )
    assert twin.report(twin.of(other, "Running"))[0]["verdict"] == "held"
    assert twin.call("report", elements="none").status_code == 422, "another fault since then makes no difference"
    assert first.pull().status_code == 409
    ChildBroker.objects.filter(name="west").update(replaced_at=clock.now() - timedelta(minutes=11))
    assert first.call("report", elements=[]).status_code == 200, "another one took its place, and is known by now"


def test_a_child_that_was_restored_with_the_key_of_a_pull_goes_on_at_once() -> None:
    child, _, _, _ = scene()
    key = str(uuid4())
    child.pull(key=key, most=1)
    child.incarnation = str(uuid4())
    assert child.pull(key=key, most=1).status_code == 200
    assert child.call("report", elements=[]).status_code == 200


def test_files_are_not_finished_without_what_was_to_be_made_of_them() -> None:
    child, head, work, (a, b) = scene()
    (verdict,) = child.report(child.of(head, "Done", {"inputs": [{"lfn": a, "end": "finished"}]}, ended(work, 2, b)))
    assert (verdict["verdict"], verdict["settled"]) == ("held", 1)
    assert verdict["why"] == "files are told to be finished, but no output of theirs in t.OUT"
    (verdict,) = child.report(child.of(head, "Done", ended(work, 1, a), ended(work, 2, b)))
    assert (verdict["verdict"], verdict["settled"]) == ("ended", 1)
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
