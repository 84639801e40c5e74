"""`examples/grids/world.json`: made by its script, uses everything that a grid document can say, and is imported in no time."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.core.management import call_command

from broker_site.roof.embedded.instance import ROOT
from brokerage.models import ComputingQueue, Link, Site, Software
from brokerage.queries.world import load_snapshot
from brokerage.rules.grid.attributes import (
    ACCESS_STATES,
    ACCESSES,
    FURTHER,
    QUEUE,
    QUEUE_STATUSES,
    QUEUE_TYPES,
    SITE,
    STORAGE,
    Table,
    moment,
)
from brokerage.rules.grid.document import read_grid
from brokerage.rules.grid.measurements import LINK, MEASURED, SLOT, SOFTWARE, read_facts
from brokerage.rules.grid.queue_columns import queue_rows, queue_storages
from brokerage.rules.grid.update import read_update, schema
from examples.grids.make_world import world, written

WORLD = Path(ROOT / "examples" / "grids" / "world.json")

SWITCHES = {
    *("useJumboJobs", "gpu", "grandly_unified", "nSimEvents", "minEventsForJumbo", "maxDiskPerCore", "use_only_local_data"),
    *("disableReassign", "jobChunkSize", "bareNucleus", "secondaryNucleus", "allowed_processing", "excluded_processing"),
    *("per_core_attr", "allow_no_pilot"),
}
"""Switches that `catchall` can hold."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(WORLD.read_text(encoding="utf-8"))
    return found


def test_the_script_makes_exactly_this_file(document: dict[str, Any]) -> None:
    assert written(world()) == WORLD.read_text(encoding="utf-8")
    assert WORLD.stat().st_size < 600_000


def test_it_is_of_the_size_of_a_real_grid_and_right(document: dict[str, Any]) -> None:
    assert len(document["sites"]) >= 40
    assert len(document["queues"]) >= 120
    assert sum(site.get("nucleus", False) for site in document["sites"].values()) >= 10
    assert list(jsonschema.Draft202012Validator(schema()).iter_errors(document)) == []
    read_update(document)


def used(table: Table, entries: Any) -> set[str]:
    """The attributes of a table that some entry has with another value than the default."""
    found = {
        name for entry in entries for name, value in entry.items() if name in table and value not in (None, table[name].default)
    }
    return found & set(table)


@pytest.mark.parametrize(
    ("part", "table"),
    [
        ("sites", SITE),
        ("storages", STORAGE),
        ("queues", {**QUEUE, **FURTHER}),
        ("links", LINK),
        ("slots", SLOT),
        ("measured", MEASURED),
    ],
)
def test_every_attribute_is_used(document: dict[str, Any], part: str, table: Table) -> None:
    entries = document[part].values() if isinstance(document[part], Mapping) else document[part]
    assert set(table) - used(table, entries) == set()


def test_every_choice_and_switch_is_used(document: dict[str, Any]) -> None:
    queues = document["queues"].values()
    assert {q.get("status", "online") for q in queues} == set(QUEUE_STATUSES)
    assert {q.get("type", "production") for q in queues} == set(QUEUE_TYPES)
    assert {q.get("jobseed") for q in queues} >= set(FURTHER["jobseed"].choices)
    switches = {item.partition("=")[0] for q in queues for item in q.get("catchall", "").split(",") if item}
    assert switches == SWITCHES
    assert {role for q in queues for role in q["astorages"]} == {
        *("read_lan", "write_lan", "read_lan_analysis", "write_lan_analysis"),
    }
    states = [(access, s) for storage in document["storages"].values() for access, s in storage.get("status", {}).items()]
    assert {access for access, _ in states} == set(ACCESSES)
    assert {state for _, state in states} == set(ACCESS_STATES)


def test_software_is_published_in_every_way(document: dict[str, Any]) -> None:
    published = document["software"]
    assert {part for found in published.values() for part in found} == set(SOFTWARE)
    auto = {name for name, queue in document["queues"].items() if queue.get("releases") == ["AUTO"]}
    assert auto == set(published) - {"ALL"}
    hardware = [part for found in published.values() for part in found.get("architectures", ())]
    assert {part["type"] for part in hardware} == {"cpu", "gpu"}
    assert {"any", "excl"} <= {value for part in hardware for values in part.values() for value in values}


def test_names_are_invented_and_plain(document: dict[str, Any]) -> None:
    assert all(re.fullmatch(r"[A-Z0-9_]+", name) for part in ("sites", "storages", "queues") for name in document[part])


@pytest.mark.django_db
def test_it_is_imported_and_a_second_time_changes_nothing(document: dict[str, Any], record_property: Any) -> None:
    def run() -> tuple[str, float]:
        out, began = io.StringIO(), time.perf_counter()
        call_command("import_grid", str(WORLD), stdout=out)
        return out.getvalue().splitlines()[-1], time.perf_counter() - began

    first, took = run()
    again, took_again = run()
    assert first.startswith(f"{len(document['sites'])} sites ({len(document['sites'])} added); ")
    assert again.count("unchanged") == 7
    assert ComputingQueue.objects.count() == len(document["queues"])
    assert Link.objects.count() == len(document["links"])
    assert Software.objects.filter(queue="ALL").exists()
    assert Site.objects.get(name="AMBERFELL").attributes == {"tier_level": 1}
    record_property("told", f"import of world.json: {took:.2f} s, again {took_again:.2f} s")


@pytest.mark.django_db
def test_what_is_loaded_from_the_database_is_what_the_document_says(document: dict[str, Any]) -> None:
    call_command("import_grid", str(WORLD), verbosity=0)
    grid, now = read_grid(document), moment(document["now"])
    facts = replace(read_facts(document, grid), pilots=())
    loaded = load_snapshot(now)
    wanted = {row["name"]: row for row in queue_rows(grid, facts, now, queue_storages(grid))}
    found = {row["name"]: row for row in queue_rows(loaded.grid, loaded.facts, now, queue_storages(loaded.grid))}
    assert found == wanted
