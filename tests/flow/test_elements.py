"""Work for other brokers, from a task to its end: cut, pulled, reported, taken back, cancelled; the child speaks over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from brokerage.ledger.task_changes import follow_priority
from brokerage.queries.invariants import check
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.child_broker import SLOTS, Child, ended
from tests.flow.steps import LIFE, run_agents, run_jobs
from workqueues.ledger.commands import command
from workqueues.ledger.elements import inboxes
from workqueues.ledger.installation import begin_anew
from workqueues.models import ChildBroker, Element, ElementChange, ElementInbox, File, FileChange, Replica, Task

pytestmark = pytest.mark.django_db(transaction=True)

AGENTS = (*LIFE, "offer")


def files_of(work: dict[str, Any]) -> list[str]:
    return [file["lfn"] for file in work["inputs"][0]["files"]]


def divided(n_files: int, name: str = "t", **more: Any) -> Task:
    """A task of so many files for child brokers, cut."""
    catalogue_dataset(f"{name}.in", n_files)
    task = submitted(reading(name, f"{name}.in", workTo="children", **more))
    run_agents(2, AGENTS)
    task.refresh_from_db()
    return task


def states(task: Task) -> list[str]:
    return list(Element.objects.filter(task=task).order_by("id").values_list("status", flat=True))


def is_sound() -> bool:
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
    return True


def test_a_child_does_the_work_of_a_task() -> None:
    grid("ALPHA")
    task = divided(4)
    assert (task.status, states(task)) == ("ready", ["Available"])
    assert is_sound()
    child = Child()
    (head,) = child.pulled()
    assert (head["site"], head["n_files"], head["jobs"]) == ("SITE_ALPHA", 4, 2)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("running", ["Acquired"])
    (work,) = child.work(head)
    a, b, c, d = files_of(work)
    assert work["inputs"][0]["files"][0]["copies"][0]["storage"] == "ALPHA_DISK"
    assert is_sound()
    (verdict,) = child.report(child.of(head, "Running", ended(work, 1, a, b)))
    assert (verdict["verdict"], verdict["settled"]) == ("held", 2)
    assert is_sound()
    (verdict,) = child.report(child.of(head, "Done", ended(work, 1, a, b), ended(work, 2, c, d)))
    assert (verdict["verdict"], verdict["settled"]) == ("ended", 2)
    assert is_sound()
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("done", ["Done"])
    assert File.objects.filter(task=task, type="output", status="finished").count() == 2
    assert ElementInbox.objects.get(task=task).status == "Done"
    assert is_sound()


def test_own_queues_do_not_touch_it_and_other_tasks_are_not_for_children() -> None:
    (queue,) = grid("ALPHA")
    task = divided(4)
    submitted(parameters("own"))
    run_agents(2, AGENTS)
    assert run_jobs(queue) == 4
    assert states(task) == ["Available"]
    assert Element.objects.count() == 1


def test_who_is_first_does_it() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", workTo="first"))
    run_agents(2, ("refine", "feed", "offer"))
    run_agents(1, AGENTS)
    assert run_jobs(queue) == 2
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert (task.status, Element.objects.count()) == ("done", 0)
    assert is_sound()


def test_the_same_key_again_gives_the_same_and_no_more() -> None:
    grid("ALPHA")
    divided(4)
    child, key = Child(), str(uuid4())
    first = child.pull(key=key).json()["elements"]
    ChildBroker.objects.update(last_contact=F("last_contact") - timedelta(days=1))
    assert child.pull(key=key).json()["elements"] == first
    assert len(first) == 1
    assert clock.now() - ChildBroker.objects.get().last_contact < timedelta(hours=1), "it was heard of"  # type: ignore[operator]
    assert child.pull().json()["why"] == {"negotiating": 1}


def test_an_answer_that_the_broker_of_before_an_update_kept_is_given_again_as_it_was() -> None:
    grid("ALPHA")
    divided(4)
    child, key = Child(), str(uuid4())
    first = child.pull(key=key).json()
    ChildBroker.objects.update(last_pull={"most": 100, "answer": {"why": first["why"], "elements": first["elements"]}})
    again = child.pull(key=key).json()
    assert [again[name] for name in ("why", "elements", "steered")] == [first[name] for name in ("why", "elements", "steered")]
    assert first["elements"]


def test_a_site_is_known_as_soon_as_it_is_there_and_others_never() -> None:
    grid("ALPHA")
    child = Child(sites={"SITE_ALPHA": SLOTS, "SITE_BETA": SLOTS})
    for _ in range(2):
        assert child.pull().json()["errors"][0]["field"] == "sites.SITE_BETA"
    grid("BETA")
    assert [child.pull().status_code for _ in range(2)] == [200, 200]


def test_what_is_not_settled_when_the_lease_ends_is_available_again_under_other_numbers() -> None:
    grid("ALPHA")
    task = divided(4)
    west, east = Child(), Child("east")
    (head,) = west.pulled()
    (work,) = west.work(head)
    a, b, c, d = files_of(work)
    west.report(west.of(head, "Running", ended(work, 1, a, b)))
    Element.objects.update(lease_until=F("lease_until") - timedelta(days=1))
    run_agents(1, AGENTS)
    assert states(task) == ["Available"]
    assert is_sound()
    (late,) = west.report(west.of(head, "Running", ended(work, 2, c, d)))
    assert late["verdict"] == "refused"
    (again,) = east.pulled()
    (other,) = east.work(again)
    assert files_of(other) == [c, d]
    east.report(east.of(again, "Done", ended(other, 1, c, d)))
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert task.status == "done"
    assert File.objects.filter(task=task, type="output").count() == 2
    assert is_sound()


def test_a_failure_at_a_child_is_the_last_one() -> None:
    grid("ALPHA")
    task = divided(4)
    child = Child()
    (head,) = child.pulled()
    (work,) = child.work(head)
    a, b, c, d = files_of(work)
    child.report(child.of(head, "Failed", ended(work, 1, a, b), ended(work, 2, c, d, end="failed")))
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("finished", ["Done"])
    assert is_sound()


def given_back(child: Child, head: dict[str, Any], why: str = "its lot is used up", state: str = "Canceled") -> dict[str, Any]:
    """A child says that it is done with an element, whatever it has not settled."""
    (verdict,) = child.report({**child.of(head, state), "sentence": why})
    return verdict


def test_what_a_child_gives_back_goes_to_others_at_once_and_to_itself_after_a_rest() -> None:
    grid("ALPHA", "BETA")
    dataset = catalogue_dataset("in.data", 4)
    Replica.objects.bulk_create(Replica(file=file, storage="BETA_DISK") for file in dataset.files.all())
    task = submitted(reading("t", "in.data", workTo="children"))
    run_agents(2, AGENTS)
    west, east = Child(), Child("east", sites={"SITE_BETA": SLOTS})
    (head,) = west.pulled()
    (work,) = west.work(head)
    a, b, c, d = files_of(work)
    west.report(west.of(head, "Running", ended(work, 1, a, b)))
    (verdict,) = west.report(west.of(head, "Running", {"inputs": [{"lfn": c, "end": "unused"}, {"lfn": d, "end": "unused"}]}))
    assert (verdict["verdict"], verdict["settled"], states(task)) == ("held", 2, ["Running"])
    assert run_agent("offer", looked=True) is not None
    assert states(task) == ["Running"], "they stay in it as long as its end may follow"
    (verdict,) = west.report({**west.of(head, "Canceled"), "sentence": "no numbers"})
    assert (verdict["verdict"], states(task)) == ("ended", ["Available"])
    assert west.report(west.of(head, "Canceled"))[0]["verdict"] == "ended", "as the answer may be lost"
    assert (west.pulled(), east.pulled()) == ([], []), "it is located first"
    assert is_sound()
    run_agents(1, AGENTS)
    row = Element.objects.get()
    assert (row.n_returned, row.returned_by.name, row.sentence) == (1, "west", "no numbers")  # type: ignore[union-attr]
    assert ElementChange.objects.latest("id").why == "west gave it back: no numbers; 2 of its 4 files are left"
    assert west.pulled() == []
    (again,) = east.pulled()
    (other,) = east.work(again)
    assert files_of(other) == [c, d]
    first = {item["offset"] for item in work["parameters"]["jobParameters"] if "offset" in item}
    assert first.isdisjoint({item["offset"] for item in other["parameters"]["jobParameters"] if "offset" in item})
    assert west.report(west.of(head, "Running", ended(work, 2, c, d)))[0]["verdict"] == "refused"
    east.report(east.of(again, "Running"))
    assert given_back(east, again)["verdict"] == "ended"
    run_agents(1, AGENTS)
    assert (west.pulled(), east.pulled()) == ([], []), "given back twice in a row it rests for everybody"
    assert "east gave it back, as children did 2 times in a row; it rests until" in Element.objects.get().why_waiting
    Element.objects.update(rests_until=F("rests_until") - timedelta(days=1))
    run_agents(1, AGENTS)
    (third,) = west.pulled()
    (work,) = west.work(third)
    west.report(west.of(third, "Done", ended(work, 1, c, d)))
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("done", ["Done"])
    assert File.objects.filter(task=task, type="output", status="finished").count() == 2
    assert is_sound()


def test_files_of_an_element_that_is_given_back_again_and_again_fail_with_the_reason() -> None:
    set_override("elements", "MOST_RETURNS", 2, who="test", why="test")
    grid("ALPHA")
    task = divided(4)
    child = Child()
    for state, n in (("Canceled", 0), ("Failed", 1), ("Failed", 2)):
        (head,) = child.pulled()
        given_back(child, head, "no such user", state)
        assert Element.objects.get().n_returned == n, "it does not count where the child neither tried nor says it cannot"
        Element.objects.filter(status="Available").update(rests_until=F("rests_until") - timedelta(days=1))
        run_agents(1, AGENTS)
        assert is_sound()
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("failed", ["Failed"])
    note = FileChange.objects.filter(task_id=task.id, new="failed").latest("id")
    assert note.why == "given back by child brokers 2 times in a row; the last time: west gave it back: no such user"
    assert File.objects.filter(task=task, type="input", status="failed").count() == 4


def test_records_that_are_given_back_in_part_are_cut_anew() -> None:
    grid("ALPHA")
    task = submitted(parameters("mc", workTo="children"))
    run_agents(2, AGENTS)
    child = Child()
    (head,) = child.pulled()
    (work,) = child.work(head)
    child.report(child.of(head, "Canceled", ended(work, 1, "pseudo_000002")))
    assert run_agent("offer", looked=True) is not None
    assert states(task) == ["Done"], "they rest first, as any element that is given back"
    run_agents(2, AGENTS)
    assert states(task) == ["Done", "Available", "Available"]
    assert is_sound()


def test_ends_that_cannot_be_taken_hold_up_no_others() -> None:
    grid("ALPHA")
    divided(6)
    child = Child()
    (head,) = child.pulled()
    (work,) = child.work(head)
    jobs = [ended(work, n + 1, *files_of(work)[2 * n : 2 * n + 2]) for n in range(3)]
    jobs[1]["outputs"][0]["storage"] = "NOWHERE"
    (verdict,) = child.report(child.of(head, "Running", *jobs))
    assert (verdict["verdict"], verdict["settled"]) == ("held", 4)
    assert "NOWHERE, which the grid of this broker does not know" in verdict["why"]
    assert child.report(child.of(head, "Running", *jobs))[0]["settled"] == 0
    assert is_sound()
    assert given_back(child, head)["verdict"] == "ended"
    row = Element.objects.get()
    assert (row.status, row.n_files_finished, row.n_returned) == ("Available", 4, 1)
    assert is_sound()


def test_an_aborted_task_ends_once_its_children_say_so() -> None:
    grid("ALPHA")
    task = divided(4)
    child = Child()
    (head,) = child.pulled()
    task.refresh_from_db()
    command(task.id, "kill", "ada")
    run_agents(1, AGENTS)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("aborting", ["CancelRequested"])
    (verdict,) = child.report(child.of(head, "Running"))
    assert verdict["wish"] == "cancel"
    child.report(child.of(head, "Canceled"))
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert (task.status, states(task)) == ("aborted", ["Canceled"])
    assert is_sound()


def test_a_child_that_was_restored_loses_what_it_had_and_a_restored_parent_adopts_nothing_unknown() -> None:
    grid("ALPHA")
    task = divided(4)
    child = Child()
    (head,) = child.pulled()
    child.incarnation = str(uuid4())
    (verdict,) = child.report(child.of(head, "Running"))
    assert (verdict["verdict"], states(task)) == ("refused", ["Available"])
    (head,) = child.pulled()
    before = child.parent
    begin_anew("a test")
    (verdict,) = child.report(child.of(head, "Running"))
    assert verdict["verdict"] == "held"  # it was pulled before the backup, and is known
    assert child.pull().json()["incarnation"] != before
    assert is_sound()


def test_records_of_a_task_without_input_keep_their_numbers() -> None:
    grid("ALPHA")
    task = submitted(parameters("mc", workTo="children"))
    run_agents(2, AGENTS)
    child = Child()
    (head,) = child.pulled()
    (work,) = child.work(head)
    assert (work["parameters"]["nEvents"], head["jobs"]) == (40, 4)
    names = [f"pseudo_{n:06d}" for n in range(1, 5)]
    child.report(child.of(head, "Done", *(ended(work, n, name) for n, name in enumerate(names, 1))))
    run_agents(2, AGENTS)
    task.refresh_from_db()
    assert task.status == "done"
    assert is_sound()


def test_records_that_no_listed_site_may_have_say_so_and_speak_of_no_reading() -> None:
    grid("ALPHA")
    submitted(parameters("mc", workTo="children", includedSite="NOWHERE"))
    run_agents(2, AGENTS)
    assert Element.objects.get().why_waiting == "no site may have it by the lists of its task"


def test_teams_lists_and_places_say_who_gets_it() -> None:
    grid("ALPHA", "BETA")
    task = divided(4, team="red")
    blue = Child("blue", "blue")
    assert blue.pulled() == []
    assert Child("elsewhere", sites={"SITE_BETA": SLOTS}).pulled() == []
    assert Child("full", sites={"SITE_ALPHA": {"pending_slots": 0, "running_slots": 0}}).pulled() == []
    assert Child("drained", sites={"SITE_ALPHA": {**SLOTS, "state": "Draining"}}).pulled() == []
    busy = {"SITE_ALPHA": {str(task.current_priority): 20}}
    assert Child("busy").pulled(jobs=busy) == []
    assert len(Child("lower").pulled(jobs={"SITE_ALPHA": {str(task.current_priority - 1): 20}})) == 1


@pytest.mark.parametrize(
    ("more", "status", "field"),
    [
        ({"sites": {"NOWHERE": SLOTS}}, 422, "sites.NOWHERE"),
        ({"sites": {"SITE_ALPHA": {"pending_slots": -1, "running_slots": 1}}}, 422, "sites.SITE_ALPHA.pending_slots"),
        ({"protocol": 0}, 422, "protocol"),
        ({"now": "yesterday"}, 422, "now"),
    ],
)
def test_what_a_child_says_wrongly_is_refused_by_name(more: dict[str, Any], status: int, field: str) -> None:
    grid("ALPHA")
    answer = Child().pull(**more)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (status, field)
    assert ElementChange.objects.count() == 0
    assert answer.json()["detail"] in ChildBroker.objects.get().last_error


def test_a_pull_names_the_elements_of_which_something_else_is_wished_than_its_child_was_told() -> None:
    grid("ALPHA")
    task = divided(4)
    child, other = Child(), Child("east")
    (head,) = child.pulled()

    def told() -> dict[str, Any]:
        """What the child hears of it, once: it is named until then, to nobody else, and no more afterwards."""
        mine = [{"id": head["id"], "try_nr": head["try_nr"]}]
        assert (child.pull().json()["steered"], other.pull().json()["steered"]) == (mine, [])
        (verdict,) = child.report(child.of(head, "Acquired"))
        assert child.pull().json()["steered"] == []
        return {"wish": verdict["wish"], "priority": verdict["priority"]}

    assert child.pull().json()["steered"] == []
    command(task.id, "pause", "user:ada")
    assert told() == {"wish": "pause", "priority": 500}
    command(task.id, "resume", "user:ada")
    assert told() == {"wish": "go", "priority": 500}
    follow_priority(task.id, 800)
    assert told() == {"wish": "go", "priority": 800}
    command(task.id, "kill", "user:ada")
    run_agents(1, AGENTS)
    assert told() == {"wish": "cancel", "priority": 800}


def test_what_comes_back_from_a_silent_child_has_the_priority_that_its_task_has_now() -> None:
    grid("ALPHA")
    task = divided(4)
    child = Child()
    (head,) = child.pulled()
    child.report(child.of(head, "Acquired"))
    follow_priority(task.id, 800)
    Element.objects.update(lease_until=F("lease_until") - timedelta(days=1))
    run_agents(2, AGENTS)
    (again,) = Child("east").pulled()
    assert again["priority"] == 800


def test_elements_of_a_paused_task_stand_aside_until_it_goes_on() -> None:
    grid("ALPHA")
    task = divided(4)
    child = Child()
    command(task.id, "pause", "user:ada")
    run_agents(2, AGENTS)
    assert Element.objects.get(task=task).is_aside
    assert child.pulled() == []
    command(task.id, "resume", "user:ada")
    run_agents(2, AGENTS)
    assert not Element.objects.get(task=task).is_aside
    assert len(child.pulled()) == 1
    assert is_sound()


def test_a_report_of_many_elements_that_go_on_costs_no_more_statements_than_of_one() -> None:
    grid("ALPHA")
    gdpconfig.set_override("elements", "ELEMENT_FILES", "2", who="ada", why="test")
    task = divided(12)
    child = Child()
    heads = child.pulled()
    assert len(heads) == 6
    Element.objects.update(lease_until=F("lease_until") - timedelta(seconds=60))
    before = dict(Element.objects.values_list("id", "lease_until"))
    said = {"sentence": "waits for slots"}
    with CaptureQueriesContext(connection) as of_one:
        child.report(child.of(heads[0], "Acquired") | said)
    with CaptureQueriesContext(connection) as of_all:
        verdicts = child.report(*(child.of(head, "Acquired") | said for head in heads))
    counted = [[query for query in each if "gdpconfig" not in query["sql"]] for each in (of_one, of_all)]
    assert len(counted[0]) == len(counted[1])
    assert [(v["verdict"], v["wish"]) for v in verdicts] == [("held", "go")] * 6
    for element in Element.objects.filter(task=task):
        assert element.sentence == "waits for slots"
        later = (element.lease_until or task.creation_date) - (before[element.id] or element.status_since)
        assert later > timedelta(seconds=50)
    assert is_sound()


def test_the_inbox_of_a_task_tells_its_progress_however_many_others_move(monkeypatch: pytest.MonkeyPatch) -> None:
    grid("ALPHA")
    monkeypatch.setattr(inboxes, "MOST_TASKS", 1)
    gdpconfig.set_override("elements", "ELEMENT_FILES", "2", who="ada", why="test")
    first, second = divided(4), divided(4, name="u")
    child = Child()
    heads = child.pulled(most=2)
    (work, _) = child.work(*heads)
    child.report(child.of(heads[0], "Running", ended(work, 1, *files_of(work))))
    assert {head["task_id"] for head in heads} == {first.id}
    for _ in range(2):
        inboxes.refresh_inboxes()
    told = {inbox.task_id: inbox for inbox in ElementInbox.objects.all()}
    assert (told[first.id].counts, told[first.id].percent_complete) == ({"Acquired": 1, "Running": 1}, 50)
    assert (told[second.id].counts, told[second.id].percent_complete) == ({"Available": 2}, 0)
    assert all(inbox.is_open for inbox in told.values())
