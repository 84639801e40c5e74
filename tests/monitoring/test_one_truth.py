"""Page, JSON, CSV and REST of one question have the same rows in the same order, or refuse it alike, whatever is asked."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

import django_filters
import pytest
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from broker_site.foundation.kernel import clock
from broker_site.foundation.rest.filtering import AgeFilter, AnyOf, NameFilter, TimeFilter
from brokerage.models import ComputingQueue, Job, Pilot
from monitoring.views.lists import LISTS
from tests.arch.source import ROOT
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import run_agents
from tests.monitoring.answers import shown, text
from tests.pages.scene import visitor
from workqueues.models import Task

pytestmark = pytest.mark.django_db
TOLD = {listing.name: listing for listing in LISTS if listing.name in ("tasks", "jobs", "datasets", "files", "queues", "pilots")}
NAMES = ("mc23.a", "mc23.b,c", "!not", "-x", '"', "50%_\\", "=1+1", "*", "ünïcode<b>", "none")
TEXTS = st.sampled_from(NAMES) | st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=6)
NUMBERS = st.sampled_from(["0", "1", "5", ">1", "<=3", "1..9", "9..1", "..", "x", "-1", str(1 << 63)])
TIMES = st.sampled_from(["1h", "-2h", ">2d", "<1d", "2026-11-27", "2000-01-01..2100-01-01", "soon", "2026-02-30"])


def scene() -> None:
    """Tasks with names of every kind, jobs of some of them at two queues."""
    grid("ALPHA", "BETA")
    tasks = [
        submitted(parameters(f"t{n}", userName=("ada", "grace")[n % 2], taskPriority=n, nEvents=20)) for n in range(len(NAMES))
    ]
    run_agents(1, ["refine", "assign", "generate"])
    for task, name in zip(tasks, NAMES, strict=True):
        Task.objects.filter(id=task.id).update(task_name=name, gshare=name, error_dialog=f"waits for {name}")
    now = clock.now()
    for n, queue in enumerate([*ComputingQueue.objects.order_by("name")] * 3):
        number = pilot(queue, f"wn{n}")
        Pilot.objects.filter(id=number).update(
            last_seen=now - timedelta(minutes=4 * n), registered_at=now - timedelta(hours=n // 2)
        )
    ids = Job.objects.values_list("id", flat=True).order_by("id")
    Job.objects.filter(id__in=list(ids)[::3]).update(sub_status="user_cap")


@cache
def asked(name: str) -> st.SearchStrategy[dict[str, str]]:
    """Filters of a list, one to three of them, each by some words."""
    fields = TOLD[name].filters.base_filters  # type: ignore[union-attr]
    of_each = {field: _words(fields[field]) for field in fields}
    chosen = st.lists(st.sampled_from(sorted(of_each)), min_size=1, max_size=3, unique=True)
    return chosen.flatmap(lambda some: st.fixed_dictionaries({field: of_each[field] for field in some}))


def _words(declared: django_filters.Filter) -> st.SearchStrategy[str]:
    word = TEXTS
    if isinstance(declared, AnyOf):
        word = st.sampled_from([*declared.choices, "undone"])
    elif isinstance(declared, TimeFilter | AgeFilter):
        word = TIMES
    elif not isinstance(declared, NameFilter):
        word = NUMBERS
    one = st.tuples(st.sampled_from(["", "", "!", "-"]), word).map("".join)
    return st.lists(one, min_size=1, max_size=3).map(",".join)


def test_page_json_csv_and_rest_agree_and_words_find_what_they_say() -> None:
    scene()
    client = Client()
    client.force_login(visitor())

    @given(st.sampled_from(sorted(TOLD)).flatmap(lambda name: st.tuples(st.just(name), asked(name))))
    @settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
    def agree(question: tuple[str, dict[str, str]]) -> None:
        answers_agree(client, *question)

    agree()
    words_find_what_they_say(client)


def answers_agree(client: Client, name: str, words: dict[str, str]) -> None:
    """The same rows in all forms, or the same refusal."""
    query = urlencode({**words, **({} if name == "queues" else {"page_size": "1000"})})
    data, sheet, rest = (client.get(f"{way}?{query}") for way in (f"/{name}.json", f"/{name}.csv", f"/api/v1/{name}/"))
    page = client.get(f"/{name}/?{query}", follow=True)
    if data.status_code != 200:
        refused_alike(data, sheet, rest, page, query)
        return
    key = "name" if name == "queues" else "id"
    found = [row[key] for row in json.loads(data.content)["rows"]]
    assert rest.status_code == 200, (query, rest.content)
    assert found == [row[key] for row in rest.json()["results"]], query
    if name != "queues":
        assert list(map(str, found)) == [line["id"] for line in csv.DictReader(io.StringIO(text(sheet)))], query
        numbers = re.findall(r'<a href="/pilots/([0-9a-f-]{36})/"', text(page)) if name == "pilots" else shown(page, name)
        assert found == numbers, query


def refused_alike(data: Any, sheet: Any, rest: Any, page: Any, query: str) -> None:
    """400 everywhere, for the same reasons; the page names a filter as its form does."""
    assert [a.status_code for a in (data, sheet, rest, page)] == [400] * 4, query
    wrong = {(e["field"], e["rule"]) for e in data.json()["errors"]}
    for other in (sheet, rest):
        assert other["Content-Type"] == "application/problem+json"
        assert {(e["field"], e["rule"]) for e in other.json()["errors"]} == wrong, query
    said = text(page)
    for field, _ in wrong:
        label = re.search(rf'<label for="filter-{field}">([^<]+)</label>', said)
        assert f"<strong>{label[1] if label else field}</strong>" in said


def words_find_what_they_say(client: Client) -> None:
    """How many rows some questions have."""
    for name, query, n in (
        ("tasks", {"task_name": '"mc23.b,c"'}, 1),
        ("tasks", {"task_name": "mc23.*,none"}, 3),
        ("tasks", {"task_name": "!mc23.*"}, 8),
        ("tasks", {"share": '"!not"'}, 1),
        ("tasks", {"priority": "2..4,9"}, 4),
        ("tasks", {"why": "none"}, 1),
        ("tasks", {"age": "1h"}, 10),
        ("tasks", {"age": ">1h"}, 0),
        ("tasks", {"creation_date": "-2h..-1h"}, 0),
        ("tasks", {"queue": "ALPHA,BETA", "user_name": "ada,grace"}, Job.objects.values("task_id").distinct().count()),
        ("jobs", {"why": "user_cap"}, Job.objects.filter(sub_status="user_cap").count()),
        ("jobs", {"queue": "!ALPHA"}, Job.objects.exclude(computing_queue__name="ALPHA").count()),
        ("jobs", {"ended": "true"}, 0),
        ("pilots", {"slot": "wn1,wn2"}, 2),
        ("pilots", {"state": "gone", "queue": "ALPHA,BETA"}, 3),
        ("queues", {"name": "-ALPHA"}, ComputingQueue.objects.count() - 1),
    ):
        rows = client.get(f"/api/v1/{name}/", query).json()["results"]
        assert len(rows) == n, (name, query)


def test_every_filter_of_a_list_is_documented() -> None:
    told = (ROOT / "docs/reference/filters.md").read_text()
    for listing in LISTS:
        if listing.filters is not None:
            names = ", ".join(f"`{name}`" for name in listing.filters.base_filters)
            assert f"| {listing.name} | {names} |" in told
