"""The ask document: read whole or refused with every fault."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from broker_site.foundation.outside_data import OutsideDataError
from brokerage.rules.facts.ask import Ask, Chunk, ChunkDataset, Usage
from tests.unit.brokerage.grids import asks


@settings(max_examples=30)
@given(asks)
def test_an_ask_survives_its_document(asked: Ask) -> None:
    assert Ask.from_document(json.loads(json.dumps(asked.to_document()))) == asked


def test_an_ask_of_all_parts_survives_its_document() -> None:
    asked = Ask(
        output_tokens=("DATADISK",),
        t1_weight=-1,
        chunk=Chunk(site="A", site_skipped_s=60.0, ram_count=3000.0),
        usage=Usage(running_jobs=7, quota_exceeded=True, full_storages=("A_LOCALGROUPDISK",)),
    )
    assert Ask.from_document(json.loads(json.dumps(asked.to_document()))) == asked


def test_absent_and_null_mean_not_given_and_other_names_are_ignored() -> None:
    read = Ask.from_document(
        {"task_id": 7, "ram_count": None, "colour": "red", "chunk": {"files": 2, "datasets": [{"name": "d"}]}}
    )
    assert read == Ask(task_id=7, chunk=Chunk(files=2, datasets=(ChunkDataset(name="d"),)))


def test_all_faults_are_named_at_once_with_their_paths() -> None:
    document = {
        "format": "other/9",
        "task_id": "seven",
        "scout": "yes",
        "ram_count": float("nan"),
        "included_sites": "A,B",
        "excluded_sites": ["A", 3],
        "core_count": 1.5,
        "priority": True,
        "max_walltime_h": -1,
        "chunk": {"files": -0.5, "gb": -2, "datasets": [{"name": 3}]},
        "usage": {"running_jobs": "many"},
    }
    with pytest.raises(OutsideDataError) as caught:
        Ask.from_document(document)
    assert {problem.field for problem in caught.value.problems} == {
        "format",
        "task_id",
        "scout",
        "ram_count",
        "included_sites",
        "excluded_sites[1]",
        "core_count",
        "priority",
        "max_walltime_h",
        "chunk.files",
        "chunk.gb",
        "usage.running_jobs",
        "chunk.datasets[0].name",
    }
