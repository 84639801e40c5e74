"""The page of errors: each once, the most frequent first, with how many jobs, where, and one to look at."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from brokerage.ledger.error_tasks import forget_tasks
from brokerage.ledger.tally import count_changes
from brokerage.models import ComputingQueue, ErrorTask, Job, TallyMark
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.facts.rollups import DAY_S
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, run_agents, take
from tests.monitoring.answers import text
from tests.pages.scene import PASSWORD, visitor

pytestmark = pytest.mark.django_db(transaction=True)

LOST = [Report("failed", error_code="STAGEIN", error_message=f"no file /data/{n}/x.{n}") for n in range(4)]
OTHER = Report("failed", error_code="PAYLOAD", exit_code=65, error_message="<b>segfault</b>")


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(visitor())
    return made


def fail(queue: ComputingQueue, reports: list[Report], owner: str = "ada") -> None:
    """One job of an owner for each of these ends, counted."""
    count_changes(1)  # the first call only begins
    submitted(parameters(f"t.{owner}", userName=owner, nEvents=10 * len(reports), nEventsPerJob=10, maxAttempt=1))
    run_agents(3)
    for report in reports:
        end(take(queue), report)
    count_changes(10_000)


def counts_moved_on() -> None:
    """The agent counts again, so nobody is told what was read before."""
    TallyMark.objects.update(counted_at=clock.now())


def rows(client: Client, address: str = "/errors.json") -> list[dict[str, Any]]:
    answer = client.get(address)
    assert answer.status_code == 200, text(answer)
    return json.loads(answer.content)["rows"]


def test_errors_that_differ_in_numbers_and_paths_are_one_and_the_most_frequent_comes_first(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, [*LOST, OTHER])
    first, second = rows(client)
    assert (first["code"], first["jobs"], first["queues"], first["message"]) == ("STAGEIN", 4, [["ALPHA", 4]], "no file *")
    assert (second["code"], second["exit_code"], second["jobs"]) == ("PAYLOAD", 65, 1)
    assert sum(first["points"]) == 4
    assert Job.objects.get(id=first["job_id"]).status == "failed"
    page = text(client.get("/errors/"))
    assert page.index("STAGEIN") < page.index("PAYLOAD")
    assert "&lt;b&gt;segfault" in client.get("/errors/").content.decode()
    assert f'href="/jobs/{first["job_id"]}/"' in page
    assert [row["code"] for row in rows(client, "/errors.json?code=!STAGEIN&queue=AL*")] == ["PAYLOAD"]
    assert rows(client, "/errors.json?queue=BETA") == []
    jobs = rows(client, f"/jobs.json?error={first['id']}")
    assert (len(jobs), {job["error_code"] for job in jobs}) == (4, {"STAGEIN"})
    assert len(rows(client, f"/tasks.json?error={second['id']}")) == 1
    for address in ("/errors.json?cod=x", "/errors.csv?code=a,,b"):
        assert client.get(address).status_code == 400
    lines = list(csv.DictReader(io.StringIO(text(client.get("/errors.csv?window=7d")))))
    assert [(line["id"], line["jobs"]) for line in lines] == [(row["id"], str(row["jobs"])) for row in rows(client)]


def test_errors_are_told_and_asked_by_owner(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, LOST[:1])
    fail(queue, [*LOST[1:], OTHER], "grace")
    first, second = rows(client)
    assert (first["users"], first["n_users"]) == ([["grace", 3], ["ada", 1]], 2)
    assert second["users"] == [["grace", 1]]
    page = text(client.get("/errors/"))
    assert 'href="/users/grace/"' in page
    assert 'href="/errors/?user_name=grace">grace</a><span class="num">4</span>' in page
    (of_ada,) = rows(client, "/errors.json?user=ada")
    assert (of_ada["code"], of_ada["jobs"], of_ada["users"], of_ada["queues"]) == ("STAGEIN", 1, [["ada", 1]], [])
    (at_alpha, _) = rows(client, "/errors.json?queue=ALPHA")
    assert (at_alpha["jobs"], at_alpha["queues"], at_alpha["users"]) == (4, [["ALPHA", 4]], [])
    (coded,) = rows(client, "/errors.json?code=STAGEIN&vo=demo")
    assert (coded["jobs"], coded["queues"], coded["n_users"]) == (4, [["ALPHA", 4]], 2)
    found = client.get("/api/v1/errors/?user_name=!ada").json()["results"]
    assert [(row["code"], row["jobs"], row["users"]) for row in found] == [
        ("STAGEIN", 3, [{"user_name": "grace", "jobs": 3}]), ("PAYLOAD", 1, [{"user_name": "grace", "jobs": 1}]),
    ]  # fmt: skip
    for address in ("/errors.json", "/errors.csv", "/api/v1/errors/"):
        told = client.get(f"{address}?user_name=ada&queue=ALPHA")
        assert (told.status_code, [(e["field"], e["rule"]) for e in told.json()["errors"]]) == (400, [("user_name", "together")])
    page = text(client.get("/errors/?user_name=ada&queue=ALPHA"))
    assert "<strong>Owner</strong>: errors are counted by queue and by owner, not by both" in page  # as the form calls it
    assert 'href="/errors/?user_name=grace"' in page  # which leaves the queue out
    (series,) = client.get("/api/v1/series/?what=failed&by=error&user=ada").json()["lines"]
    assert sum(series["points"]) == 1


def test_tasks_that_met_an_error_are_counted_once_each_in_the_window(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, LOST[:2])
    fail(queue, [*LOST[2:], OTHER], "grace")

    def told(query: str = "", address: str = "/errors.json") -> list[tuple[str, int | None, bool]]:
        return [(row["code"], row["n_tasks"], row["more_tasks"]) for row in rows(client, f"{address}{query}")]

    both = [("STAGEIN", 2, False), ("PAYLOAD", 1, False)]
    assert told() == told("?window=7d") == told("?vo=demo") == both
    assert told("?user=ada") == [("STAGEIN", 1, False)]
    assert told("?queue=ALPHA") == [("STAGEIN", None, False), ("PAYLOAD", None, False)]
    found = client.get("/api/v1/errors/?code=STAGEIN").json()["results"]
    assert [(row["n_tasks"], row["more_tasks"]) for row in found] == [(2, False)]
    lines = list(csv.DictReader(io.StringIO(text(client.get("/errors.csv")))))
    assert [(line["n_tasks"], line["more_tasks"]) for line in lines] == [("2", "false"), ("1", "false")]
    (stagein, _) = rows(client)
    assert f'<a href="/tasks/?error={stagein["id"]}">2</a>' in text(client.get("/errors/"))
    # A task of which the last job ended so before the window is none of it, though others are.
    ErrorTask.objects.filter(group__user_name="ada").update(last_at=clock.now() - timedelta(days=2))
    counts_moved_on()
    assert told() == [("STAGEIN", 1, False), ("PAYLOAD", 1, False)]
    assert told("?window=7d") == both


def test_a_number_of_tasks_that_is_not_known_is_told_as_at_least_so_many(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, LOST[:2])
    TallyMark.objects.update(tasks_from=clock.now() + timedelta(hours=1))
    assert [(row["n_tasks"], row["more_tasks"]) for row in rows(client)] == [(1, True)]
    assert ">1+</a>" in text(client.get("/errors/"))
    ErrorTask.objects.all().delete()
    counts_moved_on()
    assert [(row["n_tasks"], row["more_tasks"]) for row in rows(client)] == [(0, True)]
    assert ">their tasks</a>" in text(client.get("/errors/"))


def test_an_error_of_very_many_tasks_is_told_as_so_many_and_more(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, LOST[:2])
    (one,) = ErrorTask.objects.all()
    ErrorTask.objects.bulk_create(
        [
            ErrorTask(group=one.group, task_id=one.task_id + n, first_at=one.first_at, last_at=one.last_at)
            for n in range(1, 10_050)
        ]
    )
    counts_moved_on()
    assert [(row["n_tasks"], row["more_tasks"]) for row in rows(client)] == [(10_000, True)]
    assert ">10,000+</a>" in text(client.get("/errors/"))
    assert (forget_tasks(DAY_S, 20), forget_tasks(DAY_S, 1000), forget_tasks(DAY_S, 1000)) == (20, 30, 0)


def test_nobody_sees_errors_of_vos_that_they_may_not_look_into(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, LOST[:1])
    client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
    assert rows(client) == []
    assert "No job ended badly" in text(client.get("/errors/"))


def test_a_window_that_is_none_is_told(client: Client) -> None:
    assert client.get("/errors.json?window=1y").status_code == 400
    page = client.get("/errors/?window=1y")
    assert (page.status_code, "is no window" in text(page)) == (200, True)


def test_sites_stand_against_the_codes_of_their_errors(client: Client) -> None:
    for name, owner, reports in (("ALPHA", "ada", [*LOST, OTHER]), ("BETA", "grace", [OTHER])):
        (queue,) = grid(name)
        fail(queue, reports, owner)
        ComputingQueue.objects.filter(name=name).update(status="offline")
    told = [("ALPHA", "STAGEIN", 4), ("ALPHA", "PAYLOAD", 1), ("BETA", "PAYLOAD", 1)]
    found = [(row["site"], row["code"], row["jobs"]) for row in rows(client, "/errors/sites.json")]
    assert found == [(str(ComputingQueue.objects.get(name=queue).site.name), code, n) for queue, code, n in told]
    lines = list(csv.DictReader(io.StringIO(text(client.get("/errors/sites.csv?queue=BETA")))))
    assert [(line["code"], line["jobs"]) for line in lines] == [("PAYLOAD", "1")]
    page = text(client.get("/errors/"))
    table = page.partition('<table class="matrix heat">')[2].partition("</table>")[0]
    assert re.findall(r'<td class="heat(\d)">(?:<a[^>]*>)?(?:<span[^>]*>)?([\d·]+)', table) == [
        ("5", "4"), ("1", "1"), ("0", "·"), ("1", "1"),
    ]  # fmt: skip
    (address,) = re.findall(r'<a href="([^"]+)">4</a>', table)
    assert [(row["code"], row["jobs"]) for row in rows(client, unescape(address).replace("/errors/", "/errors.json"))] == [
        ("STAGEIN", 4)
    ]
    assert "matrix heat" not in text(client.get("/errors/?user_name=ada"))
    assert client.get("/errors/sites.json?cod=x").status_code == 400


def test_nobody_sees_sites_of_errors_of_vos_that_they_may_not_look_into(client: Client) -> None:
    (queue,) = grid("ALPHA")
    fail(queue, [LOST[0], OTHER])
    client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
    assert rows(client, "/errors/sites.json") == []
