"""A file's way as users are told it: the same sentence on page, JSON, REST and command line; commands and limits with rights."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.models import Audit
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.models import Transfer, TransferLink, TransferWish
from brokerage.rules.explain.file_arrival import REASON_WORDS
from brokerage.rules.transfers.reasons import REASONS
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from tests.builders import catalogue_dataset, grid, parameters, submitted
from tests.monitoring.answers import MOST_STATEMENTS, counted, shown, text
from tests.pages.scene import visitor
from workqueues.models import CatalogueFile, Task

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


def asked(task: Task, **more: Any) -> int:
    file = CatalogueFile.objects.order_by("id")[0]
    plain = FileWish(file.id, "BETA_DISK", "input", PRODUCTION_INPUT, "demo", "ada", task_id=task.id, dataset_id=1)
    (transfer,) = ask([plain._replace(**more)], "test")
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
