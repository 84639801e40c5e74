"""The task broker: each criterion at its limit, data that no nucleus has, the draw, whole decisions against a plain oracle."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from brokerage.policies.analysis import Analysis
from brokerage.policies.nucleus import Nucleus
from brokerage.policies.production import Production
from brokerage.rules.decision.assembly import able_queues, without_nucleus
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.decision.record import config_of, decode, encode, replay
from brokerage.rules.facts.needs import remaining_work
from brokerage.rules.facts.snapshot import Nuclei, Queues
from brokerage.rules.grid.output_storages import OutputStorage, written
from tests.unit.brokerage.grids import CONFIG, ask

IN, NEAR = "", "NEAR"
ROOM = {"free_gb": 5001}
MUCH = {"gb": 100.0, "files": 101, "io_intensity": 201}
BOTH = written(
    [OutputStorage("N_DISK", "DATADISK", 6000.0, True, True), OutputStorage("N_TAPE", "DATATAPE", 5500.0, True, False)]
)

CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, IN),
    ({}, {"free_gb": 5000}, "-space"),
    ({}, {"total_rw": 10 * 86400 * 8}, "-space"),
    ({}, {"state": "DISABLED"}, "-status"),
    ({}, {"files_queued": 1999}, IN),
    ({}, {"files_queued": 2000}, "-transfer_backlog"),
    ({"t1_weight": -1}, {"files_queued": 2000}, IN),
    ({"nucleus": "N"}, {}, IN),
    ({"nucleus": "M"}, {}, "-nonpreassigned"),
    (MUCH, {"available_gb": 10.0, "available_files": 11}, IN),
    (MUCH, {"available_gb": 9.9, "available_files": 11}, "-insize"),
    (MUCH, {"available_gb": 10.0, "available_files": 10}, "-innum"),
    (MUCH | {"gb": 1.0}, {"available_files": 11}, IN),
    (MUCH | {"files": 100}, {"available_gb": 10.0}, IN),
    (MUCH | {"io_intensity": 200}, {}, IN),
    (MUCH | {"io_intensity": 200, "gb": 10_001.0}, {}, "-insize"),
    (MUCH | {"priority": 799}, {}, "-insize"),
    (MUCH | {"priority": 800}, {}, IN),
    (MUCH | {"priority": 800}, {NEAR: {"available_gb": 10.0, "available_files": 11}}, "-insize"),
    (MUCH | {"priority": 800}, {NEAR: {"available_gb": 10.0, "available_files": 11, "files_queued": 2000}}, "-insize"),
    (MUCH | {"priority": 800}, {NEAR: {"available_gb": 10.0, "available_files": 11, "state": "DOWN"}}, IN),
    (MUCH | {"waits_s": 7 * 86400.0}, {}, "-insize"),
    (MUCH | {"waits_s": 7 * 86400.0 + 1}, {}, IN),
    ({}, {"able_queues": 0}, "-job"),
    ({}, {"able_queues": 1}, IN),
    ({}, {"can_send": False}, "-source_blacklist"),
    ({}, {"can_receive": False}, "-destination_blacklist"),
    ({"output_tokens": ("ATLASDATADISK",)}, {"storages": BOTH}, IN),
    ({"output_tokens": ("dst:N_DISK", "ddd:ANY")}, {"storages": BOTH}, IN),
    ({"output_tokens": ("ddd:ANY",)}, {}, IN),
    ({"output_tokens": ("N_D*K",)}, {"storages": BOTH}, IN),
    ({"output_tokens": ("N_DISKS",)}, {"storages": BOTH}, "-match"),
    ({"output_tokens": ("N_DISK",)}, {}, "-match"),
    ({"output_tokens": ("DATATAPE",)}, {"storages": BOTH}, "-destination_blacklist"),
    ({"output_tokens": ("DATADISK", "DATATAPE")}, {"storages": BOTH, "total_rw": 10 * 86400 * 4 * 500}, "-space"),
    ({"output_tokens": ("DATADISK",)}, {"storages": BOTH, "total_rw": 10 * 86400 * 4 * 500}, IN),
]


@pytest.mark.parametrize(("asked", "site", "skipped"), CASES, ids=[f"{case[2]} {case[0]} {case[1]}" for case in CASES])
def test_one_criterion_decides_at_its_limit(asked: dict[str, Any], site: dict[str, Any], skipped: str) -> None:
    own = {column: value for column, value in site.items() if column != NEAR}
    rows = [{"name": "N", **ROOM, **own}] + ([{"name": NEAR, **ROOM, **site[NEAR]}] if NEAR in site else [])
    sites, config = Nuclei.from_rows(rows), {**CONFIG, "PENDING_NUCLEUS": 60.0}
    decision = decide(Nucleus, ask(**asked), sites, config, "1")
    found = skips(decision, Nucleus, ask(**asked), sites, config)
    criterion = found["N"].criterion if "N" in found else IN
    assert ("" if criterion == "-low_weight" else criterion) == skipped
    used = config_of(Nucleus, config)
    assert replay(decode(encode(decision, Nucleus)), Nucleus, ask(**asked), sites, used) == encode(decision, Nucleus)


def test_every_criterion_has_a_case_that_it_decides() -> None:
    shown = {case[2].removeprefix("-") for case in CASES}
    assert {criterion.label for criterion in Nucleus.criteria} - shown == {"no_weight", "low_weight"}


def test_a_share_can_have_a_threshold_of_its_own() -> None:
    config = {**CONFIG, "DISK_THRESHOLD_MC": 6.0}
    sites = Nuclei.from_rows([{"name": "N", **ROOM}])
    assert decide(Nucleus, ask(share="MC"), sites, config, "1").outcome == "pending"
    assert decide(Nucleus, ask(share="Group"), sites, config, "1").outcome == "assign"


def test_one_nucleus_is_drawn_in_proportion_to_its_weight() -> None:
    sites = Nuclei.from_rows(
        [{"name": "IDLE", **ROOM, "total_rw": 1e3}, {"name": "BUSY", **ROOM, "total_rw": 3e3}, {"name": "FULL"}]
    )
    drawn = Counter(decide(Nucleus, ask(), sites, CONFIG, str(seed)).chosen[0].name for seed in range(400))
    assert drawn["IDLE"] == pytest.approx(300, abs=30)
    assert drawn.keys() == {"IDLE", "BUSY"}
    decision = decide(Nucleus, ask(), sites, CONFIG, "1")
    assert set(skips(decision, Nucleus, ask(), sites, CONFIG)) == {"IDLE", "BUSY", "FULL"} - {decision.chosen[0].name}


def test_where_no_nucleus_has_any_input_each_is_as_likely() -> None:
    sites = Nuclei.from_rows([{"name": name, **ROOM} for name in "AB"])
    drawn = Counter(decide(Nucleus, ask(gb=5.0), sites, CONFIG, str(seed)).chosen[0].name for seed in range(200))
    assert drawn["A"] == pytest.approx(100, abs=25)
    decision = decide(Nucleus, ask(gb=5.0), sites, CONFIG, "1")
    assert {Nucleus.criteria[i].label for i in decision.eased} == {"insize", "innum"}


def test_what_a_nucleus_weighs() -> None:
    sites = Nuclei.from_rows([{"name": "N", **ROOM, "total_rw": 9e4, "ahead_rw": 4e3, "available_gb": 3.0, "tape_only": True}])
    decision = decide(Nucleus, ask(gb=4.0), sites, CONFIG, "1")
    assert decision.chosen[0].factors == (1 / 4e3, 0.75, 0.001)


def test_the_work_of_a_task_is_what_its_unused_events_take() -> None:
    assert remaining_work(1000, 400, 250.0) == 150_000
    assert remaining_work(1000, 400, 250.0, "mHS06sPerEvent") == 150
    assert remaining_work(10, 0, None) == 3000
    assert remaining_work(10, 11, 5.0) == 0


def test_the_job_broker_tells_where_a_task_could_run() -> None:
    good = {"requests_3h": 1, "space_gb": 5000}
    queues = Queues.from_rows(
        [
            {"name": "A1", "site": "A", **good, "closeness": -1},
            {"name": "A2", "site": "A", **good, "activated": 999},
            {"name": "A3", "site": "A", **good, "status": "offline"},
            {"name": "B1", "site": "B", **good, "maxrss": 100},
        ]
    )
    task = ask(cpu_time=1, events=1, ram_count=1000, priority=900, nucleus="B")
    able = able_queues(Production, *without_nucleus(task, queues), CONFIG)
    assert dict(able) == {"A": 2}
    assert able["B"] == 0


def test_the_hint_asks_for_one_job_and_not_for_the_input_of_the_whole_task() -> None:
    near = {"requests_3h": 1, "space_gb": 5000}
    queues = Queues.from_rows(
        [
            {"name": "ALL", "site": "N1", **near, "available_gb": 1000.0},
            {"name": "MOST", "site": "N0", **near, "available_gb": 950.0, "missing_files": 50},
            {"name": "LOCAL", "site": "N2", **near, "available_gb": 950.0, "missing_files": 50, "use_only_local_data": True},
            {"name": "ONLY", "site": "N3", **near, "available_gb": 950.0, "missing_files": 50, "source_ok": False},
            {"name": "SMALL", "site": "N4", **near, "maxwdir": 100},
            {"name": "EMPTY", "site": "N5", **near | {"requests_3h": 0}, "available_gb": 1000.0},
            {"name": "SHORT", "site": "N6", **near, "mintime": 9999},
        ]
    )
    task = ask(cpu_time=1, events=1, io_intensity=300, gb=1000.0, files=1000, job_gb=1.0)
    assert dict(able_queues(Production, *without_nucleus(task, queues), CONFIG)) == dict.fromkeys(("N0", "N1", "N2", "N3"), 1)
    assert able_queues(Analysis, *without_nucleus(task, queues), CONFIG)["N0"] == 1


def test_a_queue_is_able_for_the_site_where_it_writes() -> None:
    good = {"requests_3h": 1, "space_gb": 5000, "site": "A"}
    queues = Queues.from_rows([{"name": "A1", **good}, {"name": "A2", **good, "output_site": "B"}])
    able = able_queues(Production, *without_nucleus(ask(cpu_time=1, events=1), queues), CONFIG)
    assert dict(able) == {"A": 1, "B": 1}
