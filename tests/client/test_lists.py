"""Lists and details: pipe and terminal, JSON lines, CSV, ids, limits, filters; every page of a long list; hostile texts."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from brokerage.ledger.tally import count_changes
from brokerage.models import Job, JobSpec
from brokerage.rules.dispatch.settlement import Report
from tests.builders import grid, parameters, submitted
from tests.client.broker import Broker, texts
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.models import Dataset, GlobalShare, Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]

HOSTILE = "\x1b]0;mine\x07\x1b[2J\u202egpj.exe\u009b31m\r\nbroker: all is well"
"""Changes the title, clears the screen, turns letters round, colours, and begins a line of its own."""


def unsafe(text: str) -> list[str]:
    """What a terminal must not get from a server, beside our own colours and line ends."""
    ours = re.sub(r"\x1b\[(\d*m|K)|\r(?=\x1b\[K)", "", text)
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", ours)


def test_a_pipe_gets_tabs_and_a_terminal_a_table_in_utc(ada: Broker) -> None:
    numbers = [submitted(parameters(f"t{n}", taskPriority=n)).id for n in range(3)]
    said = ada("ls")
    assert (said.code, said.err) == (0, "")
    assert texts(said.rows, 0) == [str(n) for n in reversed(numbers)]
    assert texts(said.rows, 1) == ["registered"] * 3
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", said.rows[0][5])
    shown = ada.on_terminal("ls", columns=60)
    head, *lines = shown.out.splitlines()
    assert "\x1b[" in head
    assert "CREATED (UTC)" in head
    assert len(lines) == 3
    plain = ada.on_terminal("ls", NO_COLOR="1").out
    assert "\x1b" not in plain


def test_json_lines_csv_ids_and_addresses(ada: Broker, url: str) -> None:
    task = submitted(parameters("t1"))
    assert ada("ls", "--json=id,task_name").documents == [{"id": task.id, "task_name": "t1"}]
    whole = ada("ls", "--json").documents
    assert whole[0]["user_name"] == "ada"
    (row,) = csv.DictReader(io.StringIO(ada("ls", "--csv").out))
    assert (row["id"], row["name"]) == (str(task.id), "t1")
    assert ada("ls", "-q").out == f"{task.id}\n"
    assert ada("show", str(task.id), "--url").out == f"{url}/tasks/{task.id}/\n"
    assert ada("ls", "status=done", "--url").out == f"{url}/tasks/?status=done\n"
    assert ada("show", "--json", str(task.id)).documents[0]["task_params"]["taskName"] == "t1"


def test_ones_own_tasks_are_listed_and_pages_are_opened(ada: Broker, url: str) -> None:
    mine = submitted(parameters("t1", userName="ada")).id
    Task.objects.filter(id=submitted(parameters("t2")).id).update(user_name="bob")
    assert ada("ls", "--mine", "-q").out == f"{mine}\n"
    assert ada("ls", "--mine", "--url").out == f"{url}/tasks/?user_name=ada\n"
    assert ada("ls", "--mine", "-u", "bob").code == 2
    browser = ada.folder / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened\n')
    browser.chmod(0o755)
    assert ada("task", "show", str(mine), "--web", BROWSER=f"{browser} %s").code == 0
    assert (ada.folder / "opened").read_text() == f"{url}/tasks/{mine}/\n"
    assert ada("ls", "status=done", "--web", BROWSER=f"{browser} %s").out == ""
    assert (ada.folder / "opened").read_text() == f"{url}/tasks/?status=done\n"
    none = ada("ls", "--web", BROWSER="/bin/false %s")
    assert (none.code, f"No browser opens here: {url}/tasks/" in none.err) == (2, True)


def test_a_long_list_is_read_page_after_page_and_says_where_it_was_cut(ada: Broker) -> None:
    first = submitted(parameters("t0"))
    Task.objects.bulk_create(Task(**{**_columns(first), "task_name": f"many.{n}"}) for n in range(1200))
    said = ada("ls", "-n", "0", "-q")
    assert said.code == 0, said.err
    every = said.out.split()
    assert every == [str(n) for n in Task.objects.order_by("-id").values_list("id", flat=True)]
    assert len(every) == 1201
    cut = ada("ls", "-q")
    assert (len(cut.out.split()), "more than 100" in cut.err) == (100, True)
    sevens = Task.objects.filter(task_name__endswith="7").order_by("-id").values_list("id", flat=True)
    assert ada("ls", "-n", "0", "task_name=many.*7", "-q", "status=registered").out.split() == [str(n) for n in sevens]
    assert len(ada("ls", "-n", "0", "--since", "1h", "-q").out.split()) == 1201
    assert ada("ls", "--since", "0s", "-q").out == ""


def _columns(task: Task) -> dict[str, object]:
    names = (field.attname for field in Task._meta.concrete_fields if field.attname != "id")
    return {name: getattr(task, name) for name in names}


def test_jobs_queues_shares_and_datasets_are_listed_and_shown(ada: Broker) -> None:
    (queue,) = grid("ALPHA")
    production = GlobalShare.objects.create(name="Production", vo="demo", value=70)
    GlobalShare.objects.create(name="Reco", vo="demo", value=30, parent=production)
    task = submitted(parameters("t1"))
    run_agents()
    run_jobs(queue)
    run_agents()
    jobs = ada("job", "ls", f"task={task.id}")
    assert texts(jobs.rows, 2) == ["finished"] * 4
    number = jobs.rows[0][0]
    assert ada("job", "show", number).out.startswith(f"Job {number} t1.")
    assert "activated -> sent" in ada("job", "show", number).out
    assert ada("job", "show", number).out.splitlines()[3] == "  1 core, 500 MB, no limit of time"
    Job.objects.filter(id=number).update(core_count=8)
    JobSpec.objects.filter(job_id=number).update(walltime_s=7200)
    assert ada("job", "show", number).out.splitlines()[3] == "  8 cores, 500 MB, at most 2 h 0 min"
    assert ada("queue", "ls").rows[0][:3] == ["ALPHA", "online", "SITE_ALPHA"]
    assert "maxrss 8000" in ada("queue", "show", "ALPHA").out
    assert ada("queue", "show", "NONE").code == 3
    assert [row[0] for row in ada("share", "tree").rows][:2] == ["Production", "  Reco"]
    shown = ada("share", "show", "Reco").out
    assert shown.startswith("Share Reco of demo, below Production\n  value 30")
    assert "_" not in shown, "words, not names of columns"
    assert ada("share", "show", "None").code == 3
    assert {row[2] for row in ada("dataset", "ls", f"task={task.id}").rows} >= {"output", "log", "pseudo_input"}
    assert "100 %: 4 of 4 done" in ada("show", str(task.id)).out
    (output,) = ada("dataset", "ls", f"task={task.id}", "type=output", "-q").out.split()
    told = ada("dataset", "show", output)
    assert told.code == 0, told.err
    assert told.out.startswith(f"Dataset {output} ")
    assert f"(demo): output of task {task.id}\n" in told.out
    assert "  4 files: 4 used, 4 finished\n" in told.out
    assert ada("dataset", "show", output, "--json=id,n_files").documents == [{"id": int(output), "n_files": 4}]
    assert ada("dataset", "show", output, "--url").out.endswith(f"/datasets/{output}/\n")
    assert ada("dataset", "show", "999999").code == 3


def test_errors_are_listed_once_each_by_place_and_of_a_task(ada: Broker, url: str) -> None:
    (alpha,) = grid("ALPHA")
    count_changes(1)  # the first call only begins
    task = submitted(parameters("t1", userName="ada", nEvents=50, nEventsPerJob=10, maxAttempt=1))
    run_agents(3)
    for n in range(4):
        end(take(alpha), Report("failed", error_code="STAGEIN", error_message=f"no file /data/{n}/x.{n}"))
    end(take(alpha), Report("failed", error_code="PAYLOAD", exit_code=65, error_message=HOSTILE))
    count_changes(10_000)
    first, second = ada("errors").rows
    assert first[1:8] == ["4", "1", "pilot", "STAGEIN", "0", "ALPHA 4", "ada 4"]
    assert (first[10], second[1], second[5]) == ("no file *", "1", "65")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", first[8])
    assert unsafe(ada.on_terminal("errors", columns=300).out) == []
    assert ada("errors", "-q", "-n", "1").out.split() == [first[0]]
    assert ada("errors", f"error={first[0]}", "--json=code,jobs").documents == [{"code": "STAGEIN", "jobs": 4}]
    assert ada("errors", "queue=ALPHA").rows[0][2] == ""  # by queue tasks are not counted
    assert ada("errors", "--by", "site").rows == [["SITE_ALPHA", "4", "STAGEIN"], ["SITE_ALPHA", "1", "PAYLOAD"]]
    assert ada("errors", "--by", "site", "code=PAY*", "--json=site,jobs").documents == [{"site": "SITE_ALPHA", "jobs": 1}]
    assert [row[:2] for row in ada("errors", "--by", "queue", "code=PAY*").rows] == [["ALPHA", "1"]]
    assert [row[:2] for row in ada("errors", "queue=ALPHA", "--by", "user").rows] == [["(others)", "4"], ["(others)", "1"]]
    assert [row[:2] for row in ada("errors", "--task", str(task.id)).rows] == [["STAGEIN", "4"], ["PAYLOAD", "1"]]
    assert ada("errors", "queue=ALPHA", "--window", "7d", "--url").out == f"{url}/errors/?queue=ALPHA&window=7d\n"
    assert ada("errors", "--window", "1y").code == 5
    assert ada("errors", "--task", "999999").code == 3
    for words in (("--by", "queue"), ("queue=ALPHA",), ("--window", "1h")):
        assert ada("errors", "--task", str(task.id), *words).code == 2


def test_nothing_that_a_server_sends_steers_a_terminal(ada: Broker) -> None:
    (queue,) = grid()
    task = submitted(parameters("t1", nEvents=10, maxAttempt=1))
    run_agents()
    run_jobs(queue, replace(BAD, error_message=HOSTILE))
    run_agents()
    Task.objects.filter(id=task.id).update(error_dialog=HOSTILE, task_name=f"t1{HOSTILE}")
    job = ada("job", "ls", "-q").out.strip()
    of_task = [(verb, str(task.id)) for verb in ("show", "why", "watch")]
    for words in (("ls",), *of_task, ("job", "show", job), ("job", "ls")):
        for form in ((), ("--json",)):
            shown = ada.on_terminal(*words, *form, columns=400)
            assert unsafe(shown.out) == [], words
            assert not [line for line in shown.out.splitlines() if line.startswith("broker: all is well")]
            piped = ada(*words, *form)
            assert unsafe(piped.out) == [], words
    assert "\\x1b[2J" in ada("ls").out
    assert unsafe(ada("ls", f"{HOSTILE}=1").err) == []
    assert unsafe(ada.on_terminal("api", "GET", f"/tasks/{task.id}/").out) == []


def test_a_dataset_is_also_told_by_a_name_that_one_alone_has(ada: Broker) -> None:
    grid()
    task = submitted(parameters("t1"))
    run_agents()
    name, number = Dataset.objects.filter(task=task, type="output").values_list("dataset_name", "id").get()
    assert ada("dataset", "show", name).out.startswith(f"Dataset {number} {name} (demo)")
    other = submitted(parameters("t2"))
    run_agents()
    Dataset.objects.filter(task=other, type="output").update(dataset_name=name)
    several = ada("dataset", "show", name)
    assert (several.code, f"{number} of task {task.id}" in several.err) == (2, True)
    none = ada("dataset", "show", "t1.nothing")
    assert (none.code, "there is no dataset 't1.nothing'" in none.err) == (3, True)


def test_an_empty_list_says_so_on_a_terminal_alone(ada: Broker) -> None:
    assert ada.on_terminal("ls", "status=done").out.strip() == "broker: there is none"
    assert (ada("ls", "status=done").out, ada("ls", "status=done").err) == ("", "")
