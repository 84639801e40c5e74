"""A file's way as users are told it: the same sentence on page, JSON, REST and command line; commands and limits with rights."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.models import Audit
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.models import LinkLoad, LocalCopy, Transfer, TransferChange, TransferLink, TransferWish
from brokerage.queries.file_arrival import arrival_of
from brokerage.rules.explain.file_arrival import REASON_WORDS, sentence
from brokerage.rules.transfers.reasons import REASONS
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from tests.builders import catalogue_dataset, grid, parameters, submitted
from tests.monitoring.answers import MOST_STATEMENTS, counted, shown, text
from tests.pages.scene import visitor
from workqueues.models import CatalogueFile, Dataset, Task, TaskThrottle

pytestmark = pytest.mark.django_db
TURN = (
    "d.000000 is not at BETA_DISK yet: it waits for its turn on the link from SITE_ALPHA to SITE_BETA: 0 under way; "
    "0 go before it."
)


@pytest.fixture
def task() -> Task:
    grid("ALPHA", "BETA")
    catalogue_dataset("d", 2)
    return submitted(parameters("t"))


def wish_of(n: int) -> FileWish:
    file = CatalogueFile.objects.order_by("id")[n]
    return FileWish(file.id, "BETA_DISK", "input", PRODUCTION_INPUT, "demo", "ada", dataset_id=1)


def asked(task: Task, **more: Any) -> int:
    (transfer,) = ask([wish_of(0)._replace(**{"task_id": task.id, **more})], "test")
    assert transfer is not None
    return transfer


def client(name: str = "ada", role: str = "operator") -> Client:
    made = Client()
    made.force_login(visitor(name, role))
    return made


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("explain_file", *arguments, stdout=out)
    return out.getvalue().strip()


def test_page_json_rest_and_command_say_the_same_sentence(task: Task) -> None:
    transfer, ada = asked(task), client()
    assert told("d", "d.000000", "--at", "BETA_DISK") == TURN
    assert json.loads(told("d", "d.000000", "--at", "BETA_DISK", "--json"))["why"] == TURN
    assert TURN in text(ada.get(f"/transfers/{transfer}/"))
    assert ada.get(f"/transfers/{transfer}.json").json()["why"] == TURN
    assert ada.get(f"/api/v1/transfers/{transfer}/").json()["why"] == TURN
    query = {"dataset": "d", "lfn": "d.000000", "storage": "BETA_DISK"}
    assert ada.get("/api/v1/transfers/why/", query).json()["why"] == TURN


def test_the_list_has_the_same_rows_as_its_data_and_the_links_above(task: Task) -> None:
    transfer, ada = asked(task), client()
    page = ada.get(f"/transfers/?status=queued&task={task.id}")
    assert shown(page, "transfers") == [transfer]
    assert "SITE_ALPHA" in text(page)
    assert [row["id"] for row in ada.get("/transfers.json").json()["rows"]] == [transfer]
    assert text(ada.get("/transfers.csv")).splitlines()[1].startswith(f"{transfer},")
    (link,) = ada.get("/api/v1/links/").json()["results"]
    assert (link["source"], link["destination"], link["queued"], link["queued_bytes"]) == ("SITE_ALPHA", "SITE_BETA", 1, 1000)
    assert shown(client("eve", "submitter").get("/transfers/?task=77"), "transfers") == []


@pytest.mark.parametrize("address", ["/transfers/", "/links/", "/links/SITE_ALPHA/SITE_BETA/", "/transfers/{id}/"])
def test_a_page_needs_few_statements(task: Task, address: str) -> None:
    transfer, ada = asked(task), client()
    with CaptureQueriesContext(connection) as statements:
        assert ada.get(address.format(id=transfer)).status_code == 200
    assert counted(statements) <= MOST_STATEMENTS


def test_a_copy_that_no_mover_has_taken_is_told_alike_in_the_list_and_on_its_page(task: Task) -> None:
    transfer, ada = asked(task), client()
    run_agent("transfer", looked=True)
    row = Transfer.objects.get(id=transfer)
    assert row.status == "submitted"
    (listed,) = ada.get("/transfers.json").json()["rows"]
    assert "it waits for a mover since" in listed["why"]
    assert listed["why"] in ada.get(f"/transfers/{transfer}.json").json()["why"]
    LocalCopy.objects.update(status="copying", claimed_until=Now() + timedelta(minutes=1))
    (listed,) = ada.get("/transfers.json").json()["rows"]
    assert "it is being copied from ALPHA_DISK since" in listed["why"]


def test_a_file_that_was_brought_is_told_to_be_there_also_to_who_names_no_place(task: Task) -> None:
    transfer = asked(task)
    assert finish([TransferMove(transfer)], "mover") == [transfer]
    arrival = arrival_of(Transfer.objects.get(id=transfer).file)
    assert sentence(arrival) == f"{arrival.lfn} is at BETA_DISK, as a cache copy."


def test_a_failed_transfer_is_asked_for_again_by_the_task_that_wanted_it(task: Task) -> None:
    transfer = asked(task, job_id=7)
    end_unmet([TransferMove(transfer, "gave up", reason="timeout")], "failed", "test")
    answer = client().post(f"/api/v1/transfers/{transfer}/retry/", {}, content_type="application/json")
    assert answer.status_code == 202, answer.content
    again = answer.json()["id"]
    assert again != transfer
    wish = TransferWish.objects.get(transfer_id=again)
    assert (wish.job_id, wish.task_id, wish.role) == (None, task.id, "input")
    assert Audit.objects.filter(act="transfer.retry", outcome="done").count() == 1


def test_a_transfer_that_rests_is_due_at_once_and_its_history_says_who_wanted_that(task: Task) -> None:
    transfer = asked(task)
    Transfer.objects.filter(id=transfer).update(next_at=Now() + timedelta(hours=1))
    answer = client().post(f"/api/v1/transfers/{transfer}/retry/", {"comment": "disk is back"}, content_type="application/json")
    assert (answer.status_code, answer.json()["id"]) == (202, transfer)
    assert Transfer.objects.get(id=transfer).next_at is None
    change = TransferChange.objects.filter(transfer_id=transfer).latest("id")
    assert (change.old, change.new, change.why) == ("queued", "queued", "to be tried again now: disk is back")
    assert change.who.endswith("ada")
    answer = client().post(f"/api/v1/transfers/{transfer}/retry/", {}, content_type="application/json")
    assert answer.status_code == 409, "it does not rest"


def test_what_nobody_wants_any_more_is_not_asked_for_again(task: Task) -> None:
    transfer = asked(task, task_id=None)
    end_unmet([TransferMove(transfer, "gave up", reason="timeout")], "failed", "test")
    answer = client().post(f"/api/v1/transfers/{transfer}/retry/", {}, content_type="application/json")
    assert (answer.status_code, Transfer.objects.count()) == (409, 1)


def test_a_running_transfer_is_cancelled_and_says_who_did(task: Task) -> None:
    transfer = asked(task)
    begun = [TransferMove(transfer, new_key=uuid4(), source="ALPHA_DISK", site="SITE_ALPHA")]
    move_transfers(begun, "submitting", "test", claim_s=60).run()
    path = f"/api/v1/transfers/{transfer}/cancel/"
    assert client("eve", "submitter").post(path, {}, content_type="application/json").status_code == 403
    answer = client().post(path, {"comment": "not now"}, content_type="application/json")
    assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (202, "cancelled", "operator")
    assert "by ada: an operator ended it (ada cancelled it: not now)" in told("d", "d.000000", "--at", "BETA_DISK")
    assert client().post(path, {}, content_type="application/json").status_code == 409


def test_a_file_that_came_is_there_as_a_cache_copy(task: Task) -> None:
    finish([TransferMove(asked(task))], "test")
    assert told("d", "d.000000", "--at", "BETA_DISK") == "d.000000 is at BETA_DISK, as a cache copy."


def test_a_blocked_link_holds_files_with_its_reason_until_it_is_opened(task: Task) -> None:
    asked(task)
    ada, form = client(), "/links/SITE_ALPHA/SITE_BETA/edit/"
    ada.post(form, {"act": "block", "hours": "2", "blocked_why": "new fibre"})
    assert "it cannot be brought now: ALPHA_DISK: new fibre" in told("d", "d.000000", "--at", "BETA_DISK")
    ada.post(form, {"act": "open"})
    assert not TransferLink.objects.exists()
    assert told("d", "d.000000", "--at", "BETA_DISK") == TURN
    assert Audit.objects.filter(act="link.edit").count() == 2


def test_sentence_and_table_tell_the_limit_that_the_agent_goes_by(task: Task) -> None:
    asked(task)
    ada, later = client(), clock.now() + timedelta(minutes=5)
    (row,) = ada.get("/links.json").json()["rows"]
    assert (row["max_active"], row["most_active"], row["halved_until"]) == (None, 60, None)
    set_override("transfers", "LINK_ACTIVE", 0, who="test", why="closed")
    assert "the link from SITE_ALPHA to SITE_BETA, on which no transfer may begin" in told("d", "d.000000", "--at", "BETA_DISK")
    TransferLink.objects.create(
        source_id="SITE_ALPHA", destination_id="SITE_BETA", max_active=2, halved_until=later,
        counted_since=clock.now(), n_done=1, n_failed=4,
    )  # fmt: skip
    (row,) = ada.get("/links.json").json()["rows"]
    assert (row["max_active"], row["most_active"], row["attempts_done"], row["attempts_failed"]) == (2, 1, 1, 4)
    (active,) = ask([wish_of(1)._replace(task_id=task.id)], "test")
    assert active is not None
    begun = [TransferMove(active, new_key=uuid4(), source="ALPHA_DISK", site="SITE_ALPHA")]
    move_transfers(begun, "submitting", "test", claim_s=60).run()
    words = "where 1 of 1 transfers are under way, half as many as else since many failed; 0 go before it"
    assert words in told("d", "d.000000", "--at", "BETA_DISK")
    set_override("transfers", "STORAGE_ACTIVE", 1, who="test", why="narrow")
    TransferLink.objects.all().delete()
    set_override("transfers", "LINK_ACTIVE", 5, who="test", why="open")
    words = "it waits for room at BETA_DISK, to which 1 of 1 transfers are under way"
    assert words in told("d", "d.000000", "--at", "BETA_DISK")


def test_opening_a_link_keeps_what_it_is_judged_by(task: Task) -> None:
    TransferLink.objects.create(
        source_id="SITE_ALPHA", destination_id="SITE_BETA", blocked_until=clock.now() + timedelta(hours=1), blocked_why="x",
        counted_since=clock.now(), n_failed=4,
    )  # fmt: skip
    client().post("/links/SITE_ALPHA/SITE_BETA/edit/", {"act": "open"})
    link = TransferLink.objects.get()
    assert (link.blocked_until, link.n_failed) == (None, 4)


def test_a_link_shows_what_the_brokerage_is_told_of_it(task: Task) -> None:
    for activity, files in (("Production Input", 3), ("Production Output", 4)):
        LinkLoad.objects.create(
            source="SITE_ALPHA", destination="SITE_BETA", activity=activity, files=files, bytes=10**9, mbps_1h=12.5, mbps_1d=8
        )
    link = client().get("/api/v1/links/SITE_ALPHA/SITE_BETA/").json()
    assert (link["load_files"], link["load_bytes"], link["mbps_1h"], link["mbps_1d"]) == (7, 2 * 10**9, 12.5, 8)
    page = text(client().get("/links/SITE_ALPHA/SITE_BETA/"))
    assert "12.50 MB/s in 1 h" in page
    assert "7 files" in page


def test_a_task_tells_where_its_outputs_are_wanted_and_why_it_is_throttled(task: Task) -> None:
    Dataset.objects.create(
        task=task, dataset_name="t.out", vo="demo", type="output", status="defined", n_files=1, collected_at="BETA_DISK",
    )  # fmt: skip
    catalogue_dataset("t.out", 1, storage="BETA_DISK")
    TaskThrottle.objects.create(task=task, cause="disk_transfers", why="120 GB are on the way, 100 GB may be")
    page = text(client().get(f"/tasks/{task.id}/"))
    assert "1 of 1" in page.split("Where outputs are wanted")[1].split("</section>")[0]
    told_by_rest = client().get(f"/api/v1/tasks/{task.id}/waiting/").json()
    assert [cause["cause"] for cause in told_by_rest["throttles"]] == ["disk_transfers"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"max_active": -1}, "max_active"),
        ({"mb_per_s": 0}, "mb_per_s"),
        ({"mb_per_s": "nan"}, "mb_per_s"),
        ({"blocked_until": "2001-01-01T00:00:00Z", "blocked_why": "x"}, "blocked_until"),
        ({"blocked_why": "x"}, "blocked_until"),
        ({"max_activ": 1}, "max_activ"),
    ],
)
def test_a_bad_limit_names_its_field_and_changes_nothing(task: Task, body: dict[str, Any], field: str) -> None:
    answer = client().patch("/api/v1/links/SITE_ALPHA/SITE_BETA/", body, content_type="application/json")
    assert answer.status_code == 422
    assert field in {error["field"] for error in answer.json()["errors"]}
    assert not TransferLink.objects.exists()


def test_a_limit_is_set_by_rest(task: Task) -> None:
    path = "/api/v1/links/SITE_ALPHA/SITE_BETA/"
    answer = client().patch(path, {"max_active": 3, "mb_per_s": 12.5}, content_type="application/json")
    assert (answer.status_code, answer.json()["max_active"], answer.json()["limit_mb_per_s"]) == (200, 3, 12.5)
    assert client("eve", "submitter").patch(path, {}, content_type="application/json").status_code == 403
    assert client().get("/api/v1/links/SITE_ALPHA/NOWHERE/").status_code == 404


def test_a_file_or_storage_that_is_not_there_is_an_error(task: Task) -> None:
    with pytest.raises(CommandError, match=r"no file x"):
        told("d", "x")
    with pytest.raises(CommandError, match=r"nearest name is BETA_DISK"):
        told("d", "d.000000", "--at", "BETA_DIKS")


def test_every_reason_has_words() -> None:
    assert set(REASON_WORDS) == set(REASONS)


def test_task_and_queue_pages_tell_of_files_on_their_way(task: Task) -> None:
    asked(task)
    ada = client()
    assert "Files on their way" in text(ada.get(f"/tasks/{task.id}/"))
    assert "SITE_ALPHA" in text(ada.get("/queues/BETA/")).split("Files on their way")[1]
