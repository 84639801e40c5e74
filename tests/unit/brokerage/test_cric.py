"""CRIC's documents become what our tables hold: units, defaults, numbers as text; a faulty entry is told, others are taken."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from brokerage.rules.grid.attributes import BadGrid, GridNames
from brokerage.rules.grid.cric import read_queues, read_sites, read_storages, recognised
from brokerage.rules.grid.cric_metrics import read_closeness, read_network, read_software
from brokerage.rules.grid.document import Entry
from tests.grid import cric
from tests.grid.conftest import GOOD

KNOWN = GridNames({"SITE-A", "SITE-B"}, {"A_DATADISK", "A_SCRATCHDISK", "A_TAPE"}, {"ALPHA", "BETA"})
NOW = datetime(2026, 5, 4, 8, tzinfo=UTC)


def columns(entries: Any) -> dict[str, Any]:
    found: dict[str, Any] = {entry.name: entry.columns for entry in entries if isinstance(entry, Entry)}
    return found


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (cric.SITES, "cric-sites"),
        (cric.STORAGES, "cric-storages"),
        (cric.QUEUES, "cric-queues"),
        (cric.SOFTWARE, "software"),
        (cric.NETWORK, "network"),
        (cric.CLOSENESS, "closeness"),
        (GOOD, "grid"),
        ({}, ""),
        ([], ""),
        ({"a": 1}, ""),
        ("text", ""),
        ([{"src": "A"}], ""),
    ],
)
def test_a_document_is_recognised_by_what_it_has(document: object, kind: str) -> None:
    assert recognised(document) == kind


def test_sites_have_their_role_from_the_data_policies() -> None:
    found = columns(read_sites(cric.SITES).sites)
    assert [(name, c["state"], c["nucleus"]) for name, c in found.items()] == [
        ("SITE-A", "ACTIVE", True),
        ("SITE-B", "DISABLED", False),
    ]
    assert found["SITE-A"]["attributes"]["tier_level"] == 1


def test_space_comes_in_units_of_1024_to_the_third_and_tape_and_states_as_cric_writes_them() -> None:
    found = columns(read_storages(cric.STORAGES, KNOWN).storages)
    disk, scratch, tape = found["A_DATADISK"], found["A_SCRATCHDISK"], found["A_TAPE"]
    assert (disk["free_gb"], disk["expired_gb"]) == (pytest.approx(1073.741824), pytest.approx(536.870912))
    assert (scratch["free_gb"], scratch["expired_gb"]) == (pytest.approx(5 * 1.073741824), None)
    assert (tape["free_gb"], tape["is_tape"], disk["is_tape"], scratch["is_tape"]) == (None, True, False, False)
    assert disk["status"] == {"read_lan": "ON", "write_wan": "OFF"}
    assert disk["attributes"]["token"] == "ATLASDATADISK"
    assert "path" not in disk


def test_queues_have_numbers_as_text_defaults_for_what_is_missing_and_what_nobody_knows() -> None:
    wanted = read_queues(cric.QUEUES, KNOWN)
    assert wanted.faulty == {"queue": {}}
    found = columns(wanted.queues)
    assert list(found) == ["ALPHA", "BETA", "GAMMA", "DELTA", "EPSILON", "ZETA"]
    alpha, beta = found["ALPHA"], found["BETA"]
    assert [alpha[name] for name in ("corecount", "corepower", "maxrss", "minrss", "maxtime", "mintime", "maxwdir")] == [
        *(8, 11.5, 16000, 0, 172800, 0, 160000),
    ]
    assert [alpha["attributes"].get(name) for name in ("timefloor", "direct_access_lan", "direct_access_wan", "is_cvmfs")] == [
        *(60, True, False, False),
    ]
    assert alpha["attributes"]["copytools"] == {"rucio": {}}
    assert alpha["attributes"]["cloud"] == "C1,C2"
    assert alpha["attributes"]["astorages"] == {"es_events": ["ANYTHING"]}
    assert (beta["type"], beta["status"], beta["attributes"]["releases"]) == ("production", "online", ["Athena-1", "AUTO"])
    assert (beta["maxwdir"], found["GAMMA"]["maxwdir"]) == (16336, 16336)
    assert "local_pilots" not in alpha
    assert (wanted.queues or [])[0].storages == (
        ("read_lan", "A_DATADISK", 1),
        ("read_lan", "A_TAPE", 2),
        ("write_lan", "A_DATADISK", 1),
        ("write_lan_analysis", "A_SCRATCHDISK", 1),
    )


def test_an_unreadable_work_area_follows_the_largest_input() -> None:
    read = columns(read_queues({"Q": {"atlas_site": "SITE-A", "maxwdir": "?", "maxinputsize": 5000}}, KNOWN).queues)
    assert read["Q"]["maxwdir"] == 7000


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"maxrss": "plenty"}, "queues.EPSILON.maxrss: type: "),
        ({"maxrss": -1}, "queues.EPSILON.maxrss: range: "),
        ({"maxwdir": "-5"}, "queues.EPSILON.maxwdir: range: "),
        ({"corepower": {}}, "queues.EPSILON.corepower: type: "),
        ({"status": "broken"}, "queues.EPSILON.status: choice: "),
        ({"releases": "Athena-1, AUTO"}, "queues.EPSILON.releases: type: expected a list of texts"),
        ({"fairsharepolicy": "group=(A|B:0%"}, "queues.EPSILON.fairsharepolicy: format: "),
        ({"type": "special"}, "queues.EPSILON.type: choice: "),
        ({"atlas_site": "MARS"}, "queues.EPSILON.atlas_site: reference: there is no site "),
        ({"atlas_site": None}, "queues.EPSILON.atlas_site: required: "),
        ({"nickname": "OTHER"}, "queues.EPSILON.nickname: name: "),
        ({"astorages": {"read_lan": ["MARS_DISK"]}}, "queues.EPSILON.astorages.read_lan[0]: reference: there is no storage"),
        ({"astorages": []}, "queues.EPSILON.astorages: type: "),
        ({"note": "a\0b"}, "queues.EPSILON.note: characters: "),
        ({"note": float("inf")}, "queues.EPSILON.note: range: "),
    ],
)
def test_a_faulty_queue_is_told_and_the_others_are_taken(change: dict[str, Any], fault: str) -> None:
    document = copy.deepcopy(cric.QUEUES)
    document["EPSILON"] |= change
    wanted = read_queues(document, KNOWN)
    assert list(wanted.faulty["queue"]) == ["EPSILON"]
    assert wanted.faulty["queue"]["EPSILON"].startswith(fault)
    assert len(wanted.queues or ()) == 5


def test_however_many_queues_are_faulty_the_good_ones_are_taken_and_no_faulty_one() -> None:
    faulty = {f"BAD{i}": {"atlas_site": "SITE-A", "astorages": {"read_lan": ["MARS_DISK"]}} for i in range(300)}
    wanted = read_queues(faulty | cric.QUEUES, KNOWN)
    assert len(wanted.faulty["queue"]) == 300
    assert len(wanted.queues or ()) == 6


def test_names_that_are_none_are_faults_of_their_entry() -> None:
    wanted = read_queues({**cric.QUEUES, "A/MCORE": {"atlas_site": "SITE-A"}, "LIST": []}, KNOWN)
    assert {name: fault.split(": ")[1] for name, fault in wanted.faulty["queue"].items()} == {"A/MCORE": "name", "LIST": "type"}
    storages = read_storages({**cric.STORAGES, "X": {"site": "MARS"}, "Y": {"site": "SITE-A", "space_free": -1}}, KNOWN)
    assert {name: fault.split(": ")[:2] for name, fault in storages.faulty["storage"].items()} == {
        "X": ["storages.X.site", "reference"],
        "Y": ["storages.Y.space_free", "range"],
    }


@pytest.mark.parametrize("document", [[], {}, 7, {"A": {"atlas_site": "MARS"}}, {"ALL": {}}])
def test_a_document_of_which_nothing_can_be_used_is_refused(document: object) -> None:
    with pytest.raises(BadGrid):
        read_queues(document, KNOWN)


@pytest.mark.parametrize("policies", [True, 1, 1.5])
def test_a_site_whose_data_policies_are_none_is_told_and_the_others_are_taken(policies: object) -> None:
    wanted = read_sites({"A": {"datapolicies": policies}, "B": {"datapolicies": ["Nucleus"]}})
    assert list(columns(wanted.sites)) == ["B"]
    assert wanted.faulty["site"]["A"].startswith("sites.A.datapolicies: type: expected a list of texts")


@pytest.mark.parametrize("own", [True, "plenty", -1])
def test_only_cric_s_own_figures_of_space_count(own: object) -> None:
    wanted = read_storages({"D": {"site": "SITE-A", "free_gb": own, "expired_gb": own, "space_free": 1}}, KNOWN)
    assert columns(wanted.storages)["D"]["free_gb"] == pytest.approx(1.073741824)


@pytest.mark.parametrize("metrics", [{"mbps": {"fts": {"1h": 5}}}, {"files": {"queued": {"Express": {"latest": 5}}}}])
def test_a_link_without_time_is_told_and_the_others_are_taken(metrics: object) -> None:
    good = {"files": {"queued": {"Express": {"latest": 3, "timestamp": NOW.isoformat()}}}}
    wanted = read_network({"SITE-A:SITE-B": metrics, "SITE-B:SITE-A": good}, KNOWN, NOW)
    assert [(link["from"], link["files_queued"]) for link in wanted.links or ()] == [("SITE-B", 3)]
    assert "timestamp" in wanted.faulty["link"]["SITE-A:SITE-B"]


def test_software_of_queues_that_are_here_and_of_all_is_taken() -> None:
    wanted = read_software(cric.SOFTWARE, KNOWN)
    assert list(wanted.software or {}) == ["ALPHA", "ALL"]
    assert wanted.faulty == {"software": {}}
    broken = read_software({**cric.SOFTWARE, "BETA": {"cvmfs": "atlas"}}, KNOWN)
    assert broken.faulty["software"]["BETA"].startswith("software.BETA.cvmfs: type: ")
    assert list(broken.software or {}) == ["ALPHA", "ALL"]
    with pytest.raises(BadGrid):
        read_software({"MARS": {}}, KNOWN)


def test_network_metrics_have_a_row_for_each_time_and_old_ones_are_left_out() -> None:
    wanted = read_network(cric.NETWORK, KNOWN, NOW)
    rows = [(e["from"], e["to"], e["activity"], e["files_queued"], e["mbps"], f"{e['at']:%H:%M}") for e in wanted.links or ()]
    assert rows == [
        ("SITE-A", "SITE-B", "Production Output", 42, {}, "07:50"),
        ("SITE-A", "SITE-B", "fts", 0, {"1h": 85, "1d": 60.5}, "07:45"),
    ]
    assert list(wanted.faulty["link"]) == ["SITE-B:SITE-A"]
    assert "expected a number from 0 on" in wanted.faulty["link"]["SITE-B:SITE-A"]


def test_closeness_is_a_row_of_its_own() -> None:
    wanted = read_closeness(cric.CLOSENESS, KNOWN)
    assert [(e["from"], e["to"], e["activity"], e["closeness"], e["at"]) for e in wanted.links or ()] == [
        ("SITE-A", "SITE-B", "closeness", 4, None),
        ("SITE-B", "SITE-A", "closeness", -1, None),
    ]
    assert wanted.faulty["link"]["links[3]"].startswith("links[3].closeness: range: ")
