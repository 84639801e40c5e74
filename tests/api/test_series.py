"""`/api/v1/series/`: what jobs did over time is what their histories say, of the caller's VOs, and bad questions are refused."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.kernel import clock
from brokerage.ledger.tally import count_changes
from brokerage.models import ComputingQueue, Job, JobChange
from brokerage.rules.facts.series import WHATS
from brokerage.states import JOB
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, try_take
from workqueues.models import CatalogueFile, Replica, Task

pytestmark = pytest.mark.django_db(transaction=True)


def bearer(name: str, *vos: str) -> dict[str, str]:
    token = issue_user_token(ensure_user(name, roles=[(vo, "submitter") for vo in vos])).text
    return {"authorization": f"Bearer {token}"}


def ask(query: str, headers: dict[str, str]) -> dict[str, Any]:
    answer = Client().get(f"/api/v1/series/{query}", headers=headers)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def lived(queues: list[ComputingQueue], dice: random.Random) -> None:
    """Tasks of two VOs and two users, some of whose jobs have ended, at times of the last day."""
    assert count_changes(1) == 0
    for n in range(4):
        vo, user = ("demo", "other")[n % 2], ("ada", "bob")[n // 2]
        files = CatalogueFile.objects.filter(dataset=catalogue_dataset(f"{vo}.{n}.in", 6, vo=vo))
        Replica.objects.bulk_create(Replica(file=file, storage=f"{q.name}_DISK") for q in queues[1:] for file in files)
        submitted(reading(f"t{n}", f"{vo}.{n}.in", nFilesPerJob=1, vo=vo, userName=user, maxAttempt=9))
    run_agents(1)
    for queue in queues:
        for _ in range(16):
            if (leased := try_take(queue)) is not None and dice.random() < 0.8:
                end(leased, BAD if dice.random() < 0.4 else None)
    with connection.cursor() as cursor:  # moves of a job keep their order
        cursor.execute(
            "UPDATE brokerage_jobchange SET at = now() - interval '20 h' + (id * 1800 %% 60000 + %s) * interval '1 s'",
            [dice.randrange(3000)],
        )
    while count_changes(7):
        continue


def happened(what: str, **only: object) -> list[tuple[datetime, Job, Task, str]]:
    """The moves that are counted as `what`: when, and of which job."""
    jobs, tasks = Job.objects.select_related("computing_queue").in_bulk(), Task.objects.in_bulk()
    found = []
    for change in JobChange.objects.all():
        names = {change.new} if change.old != "-" or change.new not in JOB.final else set()
        names |= {"made"} if change.old == "-" else set()
        names |= {"started"} if change.old in JOB.starting and change.new in JOB.begun else set()
        if what in names:
            job = jobs[change.job_id]
            found.append((change.at, job, tasks[job.task_id], change.new))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_flows_are_those_of_the_histories_by_anything(seed: int) -> None:
    dice = random.Random(seed)
    lived(grid("ALPHA", "BETA"), dice)
    headers = bearer("both", "demo", "other")
    for step, step_s, days in (("1m", 60, 1), ("5m", 300, 1), ("1h", 3600, 1), ("1d", 86_400, 2)):
        for by in ("", "vo", "queue", "share", "user", "kind"):
            found = ask(f"?what=made,started,finished,failed&window={days}d&step={step}&by={by}", headers)
            start = datetime.fromisoformat(found["start"])
            assert datetime.fromisoformat(found["end"]) - start == timedelta(days=days)
            assert {len(line["points"]) for line in found["lines"]} == {days * 86400 // step_s}
            for what in ("made", "started", "finished", "failed"):
                expected = Counter(
                    (_of(by, job, task), int((at - start).total_seconds()) // step_s) for at, job, task, _ in happened(what)
                )
                got = Counter(
                    {
                        (line["of"], i): n
                        for line in found["lines"]
                        if line["what"] == what
                        for i, n in enumerate(line["points"])
                        if n
                    }
                )
                assert got == expected, (step, by, what)


def _of(by: str, job: Job, task: Task) -> str:
    return {
        "": "",
        "vo": task.vo,
        "queue": job.placed_at.name,
        "share": task.gshare,
        "user": task.user_name,
        "kind": "normal",
    }[by]


def test_levels_now_are_the_jobs_and_a_visitor_sees_those_of_own_vos_only() -> None:
    lived(grid("ALPHA", "BETA"), random.Random(5))
    for vos in (("demo",), ("other",), ("demo", "other")):
        headers = bearer("_".join(vos), *vos)
        found = ask(f"?what={','.join(JOB.live)}&window=1h", headers)
        alive = Job.objects.filter(ended_at=None, task_id__in=Task.objects.filter(vo__in=vos).values("id"))
        expected = Counter(alive.values_list("status", flat=True))
        assert Counter({line["what"]: line["points"][-1] for line in found["lines"]}) == expected
        assert {line["of"] for line in ask("?what=made&by=vo", headers)["lines"]} == set(vos)
        assert {line["of"] for line in ask("?what=made&by=user", headers)["lines"]} == {"ada", "bob"}
    assert ask("?what=made&vo=other", bearer("demo", "demo"))["lines"][0]["points"] == [0] * 288
    errors = ask("?what=failed&by=error&queue=ALPHA", bearer("both", "demo", "other"))["lines"]
    assert (
        sum(sum(line["points"]) for line in errors) == Job.objects.filter(status="failed", computing_queue__name="ALPHA").count()
    )


def test_nothing_counted_yet_gives_zeros() -> None:
    found = ask("?window=1h", bearer("ada", "demo"))
    assert found["counted_at"] is None
    assert found["step_s"] == 60
    assert [(line["what"], line["points"]) for line in found["lines"]] == [
        (what, [0] * 60) for what in ("started", "finished", "failed")
    ]
    assert datetime.fromisoformat(found["end"]) > clock.now()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?what=begun", "what"),
        ("?window=0d", "window"),
        ("?window=365d&step=5m", "window"),
        ("?step=2s", "step"),
        ("?by=task", "by"),
        ("?kind=big", "kind"),
        ("?user=ada&queue=ALPHA", "by"),
        ("?colour=red", "colour"),
    ],
)
def test_a_bad_question_is_refused_with_the_name_of_the_parameter(query: str, field: str) -> None:
    answer = Client().get(f"/api/v1/series/{query}", headers=bearer("ada", "demo"))
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_hostile_texts_are_values_like_others() -> None:
    headers = bearer("ada", "demo")
    for text in ("'; DROP TABLE brokerage_job; --", "%25s", "%F0%9F%90%8D", "x" * 3000):
        assert ask(f"?queue={text}", headers)["lines"]
    assert set(WHATS) >= {"made", "started", *JOB.states}
