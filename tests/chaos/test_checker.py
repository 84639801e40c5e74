"""The history checker finds nothing in a clean run and every planted violation in a spoilt one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from psycopg2.extensions import make_dsn

from brokerage.models import Job
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from tests.builders import grid, reading
from tests.chaos.checker import check
from tests.flow.steps import end, run_agents, take
from workqueues.ledger.submit import submit
from workqueues.models import CatalogueDataset, CatalogueFile, Replica

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "key-1"


class Campaign:
    """A finished task of two jobs with real files, and what its clients were told."""

    def __init__(self, folder: Path) -> None:
        (queue,) = grid("ALPHA", path=str(folder))
        self.storage = folder / "ALPHA"
        self.storage.mkdir()
        dataset = CatalogueDataset.objects.create(vo="demo", name="in.data", state="closed")
        for number in range(4):
            size, checksum = self.write(f"in.{number}", f"line {number}\n")
            file = CatalogueFile.objects.create(dataset=dataset, lfn=f"in.{number}", fsize=size, checksum=checksum)
            Replica.objects.create(file=file, storage="ALPHA_DISK")
        params = reading("t1", "in.data")
        columns = {"task_name": "t1", "vo": "demo", "prod_source_label": "user", "task_type": "prod", "processing_type": "evgen"}
        self.task, _ = submit(params, columns, "ada", "user:ada", KEY, "digest")
        self.history: list[dict[str, Any]] = [
            {"operation": "submit", "actor": "ada", "key": KEY, "name": "t1", "answer": 201, "task": self.task.id}
        ]
        run_agents()
        for _ in range(2):
            self._run(take(queue))
        run_agents()

    def write(self, name: str, text: str) -> tuple[int, str]:
        """Put a file on storage; its size and adler32."""
        path = self.storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return len(text), f"{zlib.adler32(text.encode()):08x}"

    def _run(self, leased: Any) -> None:
        document = job_document(leased.job_id)
        lines = "".join((self.storage / entry["lfn"]).read_text() for entry in document["inputs"])
        made = []
        for output in document["outputs"]:
            name = str(Path(output["path"]).relative_to(self.storage))
            size, checksum = self.write(name, lines if output["type"] == "output" else "log\n")
            made.append(ReportedOutput(output["lfn"], size, checksum, output["storage"]))
        ended = end(leased, Report("finished", made))
        told = [{"lfn": o.lfn, "size": o.size, "checksum": o.checksum} for o in made]
        said = {"job": leased.job_id, "epoch": leased.epoch, "status": "finished", "outputs": told, "recorded": ended}
        self.history.append({"operation": "report", "actor": "pilot", "answer": 200, **said})

    def checked(self) -> dict[str, Any]:
        """What the checker says."""
        names = {"user": "user", "password": "password", "host": "host", "port": "port", "dbname": "dbname"}
        known = connection.get_connection_params()
        return check(make_dsn(**{name: known[key] for key, name in names.items() if known.get(key)}), self.history, lines=True)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


@pytest.fixture
def unguarded() -> Iterator[None]:
    """The database lets every move pass."""
    guarded = ("brokerage_job", "workqueues_task", "workqueues_dataset", "workqueues_file")
    for word in ("DISABLE", "ENABLE"):
        with connection.cursor() as cursor:
            for table in guarded:
                cursor.execute(f"ALTER TABLE {table} {word} TRIGGER USER")
        if word == "DISABLE":
            yield


def sql(text: str) -> Callable[[Campaign], None]:
    """Spoils the database."""

    def spoil(campaign: Campaign) -> None:
        with connection.cursor() as cursor:
            cursor.execute(text)

    return spoil


def lost_output(campaign: Campaign) -> None:
    next(campaign.storage.glob("demo/t1.OUT/*")).unlink()


def damaged_output(campaign: Campaign) -> None:
    next(campaign.storage.glob("demo/t1.OUT/*")).write_text("line 7\n")


def stray_file(campaign: Campaign) -> None:
    campaign.write("demo/t1.OUT/stray.txt", "line 1\n")


def forgotten_submission(campaign: Campaign) -> None:
    campaign.history.append({"operation": "submit", "actor": "ada", "key": "key-2", "name": "t2", "answer": 201, "task": 77})


def last_report(campaign: Campaign) -> dict[str, Any]:
    """What the pilot was told last."""
    return [line for line in campaign.history if line["operation"] == "report"][-1]


def other_answer(campaign: Campaign) -> None:
    last_report(campaign)["recorded"] = "failed"


def two_leases(campaign: Campaign) -> None:
    campaign.history.append({**last_report(campaign), "epoch": 2})


def forbidden(campaign: Campaign) -> None:
    campaign.history.append({**last_report(campaign), "answer": 403})


JOB = "(SELECT min(id) FROM brokerage_job)"
SPOILT: tuple[tuple[Callable[[Campaign], None], tuple[str, ...]], ...] = (
    (lost_output, ("e: a registered file is not on storage", "b: a line of a finished input is in no output")),
    (damaged_output, ("e: a file on storage is not as registered", "b: a line is in outputs more often")),
    (stray_file, ("e: a file on storage is not registered",)),
    (forgotten_submission, ("a: an acknowledged submission is not there", "a: a submission made another number of tasks")),
    (other_answer, ("e: an acknowledged settlement is not in the database",)),
    (two_leases, ("e: a job was settled under two leases",)),
    (forbidden, ("e: a pilot's report was answered 403",)),
    (sql(f"DELETE FROM brokerage_jobchange WHERE new = 'sent' AND job_id = {JOB}"), ("d: job: the history is no path",)),
    (
        sql(f"UPDATE brokerage_jobchange SET new = 'merging' WHERE new = 'holding' AND job_id = {JOB}"),
        ("d: job: a move that is not",),
    ),
    (sql("UPDATE brokerage_jobchange SET at = at - interval '1 day' WHERE new = 'holding'"), ("d: job: times go back",)),
    (sql("UPDATE workqueues_taskchange SET new = 'failed' WHERE new = 'done'"), ("d: task: the last move is not",)),
    (sql("DELETE FROM brokerage_jobresult"), ("e: an ended job without result",)),
    (
        sql("UPDATE workqueues_cataloguefile SET fsize = 1 WHERE lfn LIKE 't1.OUT%'"),
        ("e: a finished output is not in the catalogue",),
    ),
    (sql("UPDATE workqueues_file SET attempt_nr = 2 WHERE type = 'input'"), ("g: the number of tries",)),
    (sql("UPDATE workqueues_task SET status = 'failed'"), ("h: the end of a task does not follow",)),
    (sql("UPDATE brokerage_jobspec SET decision_id = NULL"), ("i: a job without a decision",)),
    (sql("UPDATE workqueues_dataset SET n_files_finished = 1 WHERE type = 'input'"), ("k: counters of a dataset",)),
    (
        sql("UPDATE brokerage_jobinput SET status = 'returned'"),
        ("b: a file is finished without a use", "e: an input of a job is not"),
    ),
)
"""Ways to spoil a campaign, and the violations that each of them is."""


def test_a_clean_run_has_no_violation(campaign: Campaign) -> None:
    answer = campaign.checked()
    assert answer["violations"] == []
    assert answer["looked_at"]["rules"] > 20
    assert answer["looked_at"]["lines"] == 4
    assert set(Job.objects.values_list("status", flat=True)) == {"finished"}


def test_every_planted_violation_is_found_with_its_ids(campaign: Campaign, unguarded: None) -> None:
    """One campaign for all: each way spoils what the ones before left, so only what is new is looked at."""
    known: set[tuple[str, int]] = set()
    for spoil, expected in SPOILT:
        spoil(campaign)
        found = [(f"{v['check']}: {v['what']}", v) for v in campaign.checked()["violations"]]
        new = [text for text, v in found if (text, v["n"]) not in known and v["ids"]]
        for what in expected:
            assert any(text.startswith(what) for text in new), (what, new)
        known = {(text, v["n"]) for text, v in found}
