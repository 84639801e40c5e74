"""`manage.py decide`: the worked examples to the digit, what options change, and how bad documents are refused."""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.roof.conformance.cases import alike
from broker_site.roof.embedded.instance import ROOT

OURS = Path(ROOT) / "examples" / "decide"
SHARED = Path(os.environ.get("GRIDBROKER_CASES") or ROOT.parent / "shared" / "spec" / "cases").parent / "decide-example"
SKIPPED = ("queue", "criterion", "kind")

Decide = Callable[..., dict[str, Any]]


@pytest.fixture
def decide(tmp_path: Path) -> Decide:
    """Decide on documents, or files that hold them: the answer."""

    def decided(task: Any, grid: Any, *options: str, config: Any = None) -> dict[str, Any]:
        arguments = ["decide", "--task", _file(tmp_path, "task", task), "--grid", _file(tmp_path, "grid", grid), *options]
        if config is not None:
            arguments += ["--config", _file(tmp_path, "config", config)]
        out = io.StringIO()
        call_command(*arguments, stdout=out)
        answer: dict[str, Any] = json.loads(out.getvalue())
        return answer

    return decided


def _file(folder: Path, name: str, content: Any) -> str:
    if isinstance(content, Path):
        return str(content)
    path = folder / f"{name}.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def read(name: str) -> Any:
    return json.loads((OURS / name).read_text())


@pytest.fixture
def grid() -> dict[str, Any]:
    found: dict[str, Any] = read("grid.json")
    return found


@pytest.fixture
def task() -> dict[str, Any]:
    found: dict[str, Any] = read("production.json")
    return found


def same(answer: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether an answer says what is expected: weights to 1e-6, reasons free, more numbers allowed."""
    assert (answer["policy"], answer["outcome"]) == (expected["policy"], expected["outcome"])
    assert alike(expected["chosen"], answer["chosen"])
    assert [[s[k] for k in SKIPPED] for s in answer["skipped"]] == [[s[k] for k in SKIPPED] for s in expected["skipped"]]
    for found, wanted in zip(answer["skipped"], expected["skipped"], strict=True):
        assert alike(wanted.get("numbers", {}), {k: found["numbers"][k] for k in wanted.get("numbers", {})})
        assert found["reason"]
    return True


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the worked example of the specification is not at {SHARED}")
def test_the_worked_example_of_the_specification(decide: Decide) -> None:
    answer = decide(SHARED / "task.json", SHARED / "grid.json", "--now", "2026-11-21T12:00:00Z")
    assert same(answer, json.loads((SHARED / "expected.json").read_text()))


@pytest.mark.parametrize(
    ("name", "options"), [("production", ()), ("analysis", ()), ("nucleus", ("--policy", "nucleus", "--seed", "3"))]
)
def test_our_own_examples(decide: Decide, name: str, options: tuple[str, ...]) -> None:
    answer = decide(OURS / f"{name}.json", OURS / "grid.json", *options, config=OURS / "config.json")
    assert same(answer, read(f"{name}.expected.json"))


def test_the_policy_follows_the_label_unless_one_is_named(decide: Decide, task: dict[str, Any], grid: dict[str, Any]) -> None:
    assert decide(task | {"prod_source_label": "user"}, grid)["policy"] == "analysis"
    assert decide(task | {"prod_source_label": "panda"}, grid)["policy"] == "analysis"
    assert decide(task | {"prod_source_label": "test"}, grid)["policy"] == "production"
    assert decide(task | {"prod_source_label": "ptest"}, grid)["policy"] == "generic"
    answer = decide(task, grid, "--policy", "generic")
    assert answer["policy"] == "generic"
    with pytest.raises(CommandError, match=r"there are: .*generic"):
        decide(task, grid, "--policy", "genric")


def test_overrides_change_the_decision(decide: Decide, task: dict[str, Any], grid: dict[str, Any]) -> None:
    config = {"jobbroker": {"NQUEUED_SAT_CAP": 29, "PENDING_PRODUCTION": "2h"}}
    answer = decide(task, grid, config=config)
    assert [c["queue"] for c in answer["chosen"]] == ["NORTH/MCORE"]
    capped = {"pandaserver:prio_mgr": {"CAP_RUNNING_USER_JOBS": 119}}
    throttled = decide(read("analysis.json"), grid, config=capped)
    assert throttled["outcome"] == "pending"
    assert {s["criterion"] for s in throttled["skipped"]} == {"-cap_running_jobs"}
    assert throttled["wait_s"] == 1200


def test_a_group_counts_for_itself(decide: Decide, grid: dict[str, Any]) -> None:
    capped = {"pandaserver:prio_mgr": {"CAP_RUNNING_USER_JOBS": 1, "CAP_RUNNING_GROUP_JOBS": 4999}}
    of_group = read("analysis.json") | {"working_group": "HIGG"}
    assert {s["criterion"] for s in decide(of_group, grid, config=capped)["skipped"]} == {"-cap_running_jobs"}
    capped["pandaserver:prio_mgr"]["CAP_RUNNING_GROUP_JOBS"] = 5000
    assert decide(of_group, grid, config=capped)["outcome"] == "assign"


def test_the_time_decides_what_is_old(decide: Decide, task: dict[str, Any], grid: dict[str, Any]) -> None:
    merging = task | {"merge_output": True}
    assert decide(merging, grid)["outcome"] == "assign"
    later = decide(merging, grid, "--now", "2026-05-04T10:30:00+00:00")
    assert {"queue": "NORTH/MCORE", "criterion": "-inactive"} in [
        {k: s[k] for k in ("queue", "criterion")} for s in later["skipped"]
    ]
    with pytest.raises(CommandError, match="--now"):
        decide(task, grid, "--now", "noon")


def test_a_task_that_nobody_can_run_is_told_the_closest_queue(decide: Decide, task: dict[str, Any], grid: dict[str, Any]) -> None:
    answer = decide(task | {"ram_count": 4500}, grid)
    assert (answer["outcome"], answer["chosen"], answer["closest"]) == ("pending", [], "EAST_MCORE")


def test_the_seed_decides_where_a_policy_draws(decide: Decide, grid: dict[str, Any]) -> None:
    even = copy.deepcopy(grid)
    even["sites"]["SOUTH"]["total_rw"] = even["sites"]["NORTH"]["total_rw"]
    task = read("nucleus.json") | {"chunk": {}}
    drawn = {decide(task, even, "--policy", "nucleus", "--seed", str(n))["chosen"][0]["queue"] for n in range(12)}
    assert drawn == {"NORTH", "SOUTH"}


def change(*path: Any, value: Any) -> Callable[[Any], None]:
    def changed(document: Any) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return changed


GRID_FAULTS: list[tuple[Callable[[Any], None], str]] = [
    (change("queues", "WEST", "maxrss", value=-1), "queues.WEST.maxrss: range: "),
    (change("links", value={}), "links: type: "),
    (change("links", 0, "from", value="MARS"), "links[0].from: reference: "),
    (change("links", 0, "mbps", value={"2h": 1}), "links[0].mbps.2h: unknown: "),
    (change("links", 0, "mbps", value={"1h": "fast"}), "links[0].mbps.1h: type: "),
    (change("links", 0, "mbps", value={"1h": -5}), "links[0].mbps.1h: range: "),
    (change("links", 0, "closeness", value=12), "links[0].closeness: range: "),
    (change("links", 0, "at", value="yesterday"), "links[0].at: time: "),
    (change("jobs", 3, value="many"), "jobs[3]: type: "),
    (change("jobs", 0, "queue", value="MARS"), "jobs[0].queue: reference: "),
    (change("jobs", 0, "queue", value=None), "jobs[0].queue: required: "),
    (change("jobs", 0, "status", value="walking"), "jobs[0].status: choice: "),
    (change("jobs", 0, "n", value=-1), "jobs[0].n: range: "),
    (change("pilots", 0, "last_start", value="soon"), "pilots[0].last_start: time: "),
    (change("slots", 0, "n", value=1.5), "slots[0].n: type: "),
    (change("replicas", 0, "storage", value="MARS_DISK"), "replicas[0].storage: reference: "),
    (change("replicas", 0, "gb", value=-1), "replicas[0].gb: range: "),
    (change("users", 0, "running_jobs", value="all"), "users[0].running_jobs: type: "),
    (change("software", "MARS", value={}), "software.MARS: reference: "),
    (change("software", value=[]), "software: type: "),
    (change("software", "WEST", value=[]), "software.WEST: type: "),
    (change("software", "WEST", "cvmfs", value="atlas"), "software.WEST.cvmfs: type: "),
    (change("software", "WEST", "tags", value=[1]), "software.WEST.tags[0]: type: "),
    (change("software", "WEST", "architectures", value=[{"arch": {}}]), "software.WEST.architectures[0].arch: type: "),
    (change("sites", "NORTH", "total_rw", value=-1), "sites.NORTH.total_rw: range: "),
    (change("now", value="today"), "now: time: "),
]


@pytest.mark.parametrize(("fault", "line"), GRID_FAULTS, ids=[line for _, line in GRID_FAULTS])
def test_a_bad_grid_is_refused_with_path_and_rule(
    decide: Decide, task: dict[str, Any], grid: dict[str, Any], fault: Callable[[Any], None], line: str
) -> None:
    fault(grid)
    with pytest.raises(CommandError) as refused:
        decide(task, grid)
    assert "grid.json is refused:" in str(refused.value)
    assert any(told.startswith(line) for told in str(refused.value).splitlines())


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("[]", "document: type: "),
        ("{", "document: json: "),
        ('{"task_id": 1, "task_id": 2}', "task_id: duplicate: "),
        ({"format": "other"}, "format: format: "),
        ({"ram_count": "much"}, "ram_count: type: "),
        ({"chunk": {"gb": -1}}, "chunk.gb: range: "),
    ],
)
def test_a_bad_task_is_refused_with_path_and_rule(decide: Decide, grid: dict[str, Any], task: Any, line: str) -> None:
    with pytest.raises(CommandError) as refused:
        decide(task, grid)
    assert str(refused.value).splitlines()[1].startswith(line)


@pytest.mark.parametrize(
    "config", [{"jobbroker": {"NQUEUED_SAT_CAPS": 1}}, {"jobbroker": {"NQUEUED_SAT_CAP": 0}}, {"jobbroker": 7}, []]
)
def test_a_bad_configuration_is_refused(decide: Decide, task: dict[str, Any], grid: dict[str, Any], config: Any) -> None:
    with pytest.raises(CommandError, match=r"config\.json is refused"):
        decide(task, grid, config=config)


def test_a_file_that_is_not_there_is_told(decide: Decide, task: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        decide(task, tmp_path / "nowhere.json")
