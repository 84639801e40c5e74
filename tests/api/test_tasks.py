"""Reading tasks, their data and history: what is shown, filters, pages, and what of other VOs is not there at all."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.people import Person, faults, ids, person, refused
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.models import Dataset, File, Task

pytestmark = pytest.mark.django_db


def submitted_in(vo: str, name: str, **more: Any) -> Task:
    return submitted(parameters(name, vo=vo, **more))


@pytest.fixture
def finished(db: None) -> Task:
    """A task of ada in demo with files, jobs and history behind it."""
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("fin", "in.data"))
    run_agents()
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    return task


def test_a_task_is_read_with_columns_datasets_and_parameters(ada: Person, finished: Task) -> None:
    told = ada.get(f"tasks/{finished.id}/").json()
    assert (told["status"], told["progress"], told["split_rule"], told["trans_path"]) == (
        "done",
        100,
        "NF=2,US=1",
        "make_events.py",
    )
    assert told["task_params"]["taskName"] == "fin"
    assert [(d["type"], d["n_files_finished"]) for d in told["datasets"]] == [("input", 4), ("output", 2), ("log", 2)]
    columns = {f.name for f in Task._meta.concrete_fields}
    assert columns <= set(told), columns - set(told)


def test_the_list_is_newest_first_and_filters_by_each_column(ada: Person) -> None:
    one = submitted_in("demo", "gen.one", processingType="evgen", prodSourceLabel="user")
    two = submitted_in("demo", "sim.two", processingType="simul", prodSourceLabel="managed", userName="zoe")
    assert ids(ada.get("tasks/")) == [two.id, one.id]
    for query, found in (
        ({"status": "registered"}, [two, one]),
        ({"status": "done,failed"}, []),
        ({"status": "done,registered"}, [two, one]),
        ({"vo": "demo"}, [two, one]),
        ({"user_name": "zoe"}, [two]),
        ({"user_name": "z*"}, [two]),
        ({"task_name": "gen.one"}, [one]),
        ({"task_name": "*.two"}, [two]),
        ({"task_name": "s??.*"}, [two]),
        ({"task_name": "gen_one"}, []),
        ({"task_name": "%"}, []),
        ({"processing_type": "simul"}, [two]),
        ({"prod_source_label": "user"}, [one]),
        ({"parent_tid": one.id}, [one]),
        ({"work_queue_name": "default"}, []),
    ):
        assert ids(ada.get("tasks/", **query)) == [t.id for t in found], query


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ({"statsu": "done"}, ("statsu", "unknown")),
        ({"status": "doen"}, ("status", "invalid_choice")),
        ({"status": "done,runing"}, ("status", "invalid_choice")),
        ({"work_queue": "x"}, ("work_queue", "form")),
        ({"work_queue": 1 << 63}, ("work_queue", "range")),
        ({"work_queue": "9..1"}, ("work_queue", "range")),
        ({"age": "soon"}, ("age", "form")),
        ({"creation_date": "2026-02-30"}, ("creation_date", "range")),
        ({"task_name": "a,,b"}, ("task_name", "form")),
        ({"task_name": '"a'}, ("task_name", "form")),
        ({"task_name": "n" * 257}, ("task_name", "length")),
        ({"page_size": "many"}, ("page_size", "range")),
        ({"page_size": 0}, ("page_size", "range")),
        ({"page_size": -5}, ("page_size", "range")),
        ({"cursor": "!!"}, ("cursor", "format")),
        ({"cursor": "cD1hYmM="}, ("cursor", "format")),
        ({"cursor": "cD05OTk5OTk5OTk5OTk5OTk5OTk5OTk5"}, ("cursor", "format")),
        ({"ordering": "error_dialog"}, ("ordering", "unknown")),
    ],
)
def test_a_query_that_is_not_understood_is_refused_with_its_name(
    ada: Person, query: dict[str, Any], fault: tuple[str, str]
) -> None:
    assert faults(ada.get("tasks/", **query), 400) == {fault}


def test_a_misspelt_state_is_told_with_the_nearest(ada: Person) -> None:
    [fault] = ada.get("tasks/", status="done,runing").json()["errors"]
    assert fault["message"] == "'runing' is none of the choices; the nearest one is running"


def test_pages_follow_each_other_without_loss_or_repetition(ada: Person) -> None:
    made = [submitted_in("demo", f"t{n}").id for n in range(5)]
    seen, query = [], {"page_size": "2"}
    while True:
        page = ada.get("tasks/", **query).json()
        seen += [row["id"] for row in page["results"]]
        if not page["next"]:
            break
        query = dict(parse_qsl(urlsplit(page["next"]).query))
    assert seen == made[::-1]


def test_a_page_has_at_most_a_thousand_rows(ada: Person) -> None:
    Task.objects.bulk_create(Task(vo="demo", task_name=f"t{n}", status="registered") for n in range(1005))
    assert len(ids(ada.get("tasks/", page_size=5000))) == 1000
    assert len(ids(ada.get("tasks/"))) == 100


@pytest.mark.parametrize(
    "path", ["tasks/", "datasets/", "tasks/{task}/files/", "tasks/{task}/history/", "tasks/{task}/datasets/"]
)
def test_a_list_asks_as_much_of_the_database_for_many_rows_as_for_one(ada: Person, finished: Task, path: str) -> None:
    address = path.format(task=finished.id)
    ada.get(address)

    def queries(size: int) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert ids_or_rows(ada.get(address, page_size=size))
        return sum("gdpconfig_revision" not in query["sql"] for query in seen)  # looked at every two seconds

    submitted(parameters("other"))
    assert queries(1) == queries(50)


def ids_or_rows(answer: Any) -> list[Any]:
    assert answer.status_code == 200, answer.content
    rows: list[Any] = answer.json()["results"]
    return rows


def test_datasets_are_listed_filtered_and_read(ada: Person, finished: Task) -> None:
    all_of_it = ids_or_rows(ada.get(f"tasks/{finished.id}/datasets/"))
    assert [d["dataset_name"] for d in all_of_it] == ["in.data", "fin.OUT", "fin.log"]
    assert [d["dataset_name"] for d in ids_or_rows(ada.get("datasets/", dataset_name="fin.*"))] == ["fin.log", "fin.OUT"]
    assert ids(ada.get("datasets/", type="input", task=finished.id)) == [all_of_it[0]["id"]]
    assert ada.get(f"datasets/{all_of_it[0]['id']}/").json() == all_of_it[0]


def test_files_are_filtered_by_dataset_type_status_and_name(ada: Person, finished: Task) -> None:
    path = f"tasks/{finished.id}/files/"
    outputs = Dataset.objects.get(type="output")
    assert len(ids(ada.get(path))) == 8
    assert len(ids(ada.get(path, dataset=outputs.id))) == 2
    assert len(ids(ada.get(path, type="log", status="finished"))) == 2
    assert ids(ada.get(path, status="running")) == []
    assert len(ids(ada.get(path, lfn="in.data.*"))) == 4
    assert faults(ada.get(path, dataset="x"), 400) == {("dataset", "form")}


def test_a_file_is_read_with_its_dataset_and_the_moves_that_no_job_caused(ada: Person, finished: Task) -> None:
    file = File.objects.filter(type="input").first()
    assert file is not None
    told = ada.get(f"files/{file.id}/").json()
    assert (told["dataset_name"], told["status"], told["attempt_nr"], told["changes"]) == ("in.data", "finished", 1, [])


def test_the_history_is_the_path_of_the_task(ada: Person, finished: Task) -> None:
    moves = ids_or_rows(ada.get(f"tasks/{finished.id}/history/"))
    assert [m["new"] for m in moves] == ["registered", "defined", "ready", "running", "prepared", "done"]
    assert moves[0]["who"] == "user:ada"


def test_what_belongs_to_another_vo_is_not_there(ada: Person, eve: Person, finished: Task) -> None:
    dataset, file = Dataset.objects.first(), File.objects.first()
    assert dataset is not None
    assert file is not None
    paths = [
        f"tasks/{finished.id}/{rest}" for rest in ("", "datasets/", "files/", "history/", "jobs/", "decisions/")
    ] + [f"datasets/{dataset.id}/", f"files/{file.id}/"]  # fmt: skip
    assert refused((eve.get(path) for path in paths), 404)
    assert {eve.get(path).json()["detail"] for path in paths} == {"There is nothing here, or nothing that you may see."}
    assert not refused((ada.get(path) for path in paths), 404)
    for path in ("tasks/", "datasets/"):
        assert ids(eve.get(path)) == []
        assert ids(eve.get(path, vo="demo")) == []
    assert ids(eve.get("tasks/", task_name="fin")) == []
    assert ids(eve.get("datasets/", task=finished.id)) == []


def test_who_has_no_role_reads_nothing(db: None, finished: Task) -> None:
    nobody = person("nobody")
    assert refused((nobody.get(path) for path in ("tasks/", f"tasks/{finished.id}/", "datasets/", "queues/")), 403)


@pytest.mark.parametrize("role", ["submitter", "production", "operator", "share-editor", "auditor"])
def test_every_role_reads_its_vo(db: None, finished: Task, role: str) -> None:
    assert ids(person("rita", ("demo", role)).get("tasks/")) == [finished.id]


def test_a_superuser_reads_everything(db: None, finished: Task) -> None:
    assert ids(person("root", superuser=True).get("tasks/")) == [finished.id]


@pytest.mark.parametrize("path", ["tasks/{}/", "tasks/{}/files/", "datasets/{}/", "files/{}/", "jobs/{}/", "decisions/{}/"])
@pytest.mark.parametrize("number", [0, 77, (1 << 63) - 1, 1 << 63, 10**40])
def test_a_number_that_nothing_has_is_404_however_large(ada: Person, path: str, number: int) -> None:
    assert ada.get(path.format(number)).status_code == 404


def test_nobody_reads_without_a_credential(client: Any, finished: Task) -> None:
    answer = client.get(f"/api/v1/tasks/{finished.id}/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
