"""A grid document is read whole or refused whole, with path and rule of each fault; the published schema says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from broker_site.roof.embedded.instance import ROOT
from brokerage.feeds.document import parse_document
from brokerage.rules.grid.document import BadGrid, read_grid
from brokerage.rules.grid.update import read_update, schema
from tests.grid.faults import FAULTS, SCHEMA_CANNOT_TELL, put

SCHEMA = Path(ROOT / "docs" / "reference" / "grid.schema.json")


def told(document: Any) -> list[tuple[str, str]]:
    with pytest.raises(BadGrid) as bad:
        read_update(document)
    return [(p.field, p.rule) for p in bad.value.problems]


def test_numbers_may_come_as_text_and_empty_means_the_default(good: dict[str, Any]) -> None:
    north, south = read_grid(good).queues
    assert (north.columns["corecount"], north.columns["corepower"], north.columns["minrss"]) == (8, 11.5, 0)
    assert (south.columns["status"], south.columns["maxrss"]) == ("online", 0)


def test_unknown_attributes_of_a_queue_are_kept_and_unused_parts_are_noted(good: dict[str, Any]) -> None:
    good |= {"jobs": [{"queue": "NORTH"}], "links": [{}], "users": []}
    good["sites"]["NORTH"] |= {"tier_level": 1, "total_rw": 7}
    good["storages"]["NORTH_DISK"]["token"] = "T"
    grid = read_grid(good)
    assert grid.queues[0].columns["attributes"] == {"releases": ["ANY"], "tier": "T1", "astorages": {"es_events": ["X"]}}
    assert grid.queues[0].storages == (
        ("read_lan", "NORTH_DISK", 1),
        ("read_lan", "SOUTH_DISK", 2),
        ("write_lan", "NORTH_DISK", 1),
    )
    assert [n.split(":")[0] for n in grid.notes] == [
        "jobs", "sites.NORTH.tier_level", "storages.NORTH_DISK.token", "queues.NORTH.astorages.es_events",
    ]  # fmt: skip
    assert (grid.sites[0].columns["attributes"], grid.storages[0].columns["attributes"]) == ({"tier_level": 1}, {"token": "T"})


@pytest.mark.parametrize(("change", "path", "rule"), FAULTS, ids=[f"{path[:40]}-{rule}" for _, path, rule in FAULTS])
def test_a_fault_is_told_with_its_path_and_rule(good: dict[str, Any], change: Any, path: str, rule: str) -> None:
    change(good)
    assert (path, rule) in told(good)


def test_a_reference_to_a_misspelt_name_is_told_with_the_nearest(good: dict[str, Any]) -> None:
    good["queues"]["NORTH"]["atlas_site"] = "NORT"
    with pytest.raises(BadGrid) as refused:
        read_grid(good)
    [fault] = [p for p in refused.value.problems if p.field == "queues.NORTH.atlas_site"]
    assert fault.message == "the document has no site 'NORT'; the nearest known one is NORTH"


def test_all_faults_are_told_at_once(good: dict[str, Any]) -> None:
    good["queues"]["NORTH"] |= {"maxrss": -1, "status": "off"}
    good["storages"]["SOUTH_DISK"]["site"] = "WEST"
    assert {path for path, _ in told(good)} == {"queues.NORTH.maxrss", "queues.NORTH.status", "storages.SOUTH_DISK.site"}


@pytest.mark.parametrize(
    ("change", "first"),
    [
        (put("sites", value=dict.fromkeys(map(str, range(300)), 1)), "sites.0"),
        (put("sites", value={f"A {i}": {} for i in range(300)}), "sites.A 0"),
        (put("queues", "NORTH", "astorages", "read_lan", value=["WEST"] * 300), "queues.NORTH.astorages.read_lan[0]"),
        (put("links", value=[{}] * 300), "links[0].from"),
    ],
)
def test_two_hundred_faults_are_told(good: dict[str, Any], change: Any, first: str) -> None:
    change(good)
    paths = [path for path, _ in told(good)]
    assert (len(paths), first in paths) == (200, True)


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        (b"", "", "json"),
        (b"{", "", "json"),
        (b"\xff", "", "json"),
        (b"[]", "", "type"),
        (b"null", "", "type"),
        (b'{"format": NaN}', "", "json"),
        (b"[" * 100_000, "", "json"),
        (b'{"sites": ' + b'{"a":' * 30 + b"1" + b"}" * 31, "sites" + ".a" * 20, "depth"),
        (b'{"sites": {"A": {}, "A": {}}}', "sites.A", "duplicate"),
        (b'{"queues": {"A": {"maxrss": 1, "maxrss": 2}}}', "queues.A.maxrss", "duplicate"),
    ],
)
def test_a_text_that_is_no_document_is_refused(text: bytes, path: str, rule: str) -> None:
    with pytest.raises(BadGrid) as bad:
        read_grid(parse_document(text))
    assert (path, rule) in [(p.field, p.rule) for p in bad.value.problems]


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema()
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_schema_takes_what_we_take_and_refuses_what_we_refuse(good: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    assert list(validator.iter_errors(good)) == []
    for change, path, rule in FAULTS:
        document = json.loads(json.dumps(good))
        change(document)
        elsewhere = rule in SCHEMA_CANNOT_TELL or path.endswith((".nickname", ".path", ".fairsharepolicy"))
        assert elsewhere or not validator.is_valid(document), f"{path}: {rule}"
