"""A small grid document that is right in every respect; tests change one thing in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD: dict[str, Any] = {
    "format": "gridbroker-grid/1",
    "sites": {"NORTH": {"state": "ACTIVE", "nucleus": True}, "SOUTH": {}},
    "storages": {
        "NORTH_DISK": {
            "site": "NORTH",
            "free_gb": 5000,
            "status": {"read_lan": "ON", "write_lan": "ON"},
            "path": "storage/north",
        },
        "SOUTH_DISK": {"site": "SOUTH", "type": "SCRATCHDISK", "path": "/data/south"},
    },
    "queues": {
        "NORTH": {
            "nickname": "NORTH",
            "atlas_site": "NORTH",
            "status": "online",
            "type": "unified",
            "corecount": "8",
            "maxrss": 16000,
            "minrss": None,
            "corepower": "11.5",
            "releases": ["ANY"],
            "tier": "T1",
            "astorages": {"read_lan": ["NORTH_DISK", "SOUTH_DISK"], "write_lan": ["NORTH_DISK"], "es_events": ["X"]},
            "local_pilots": 2,
        },
        "SOUTH": {
            "atlas_site": "SOUTH",
            "type": "unified",
            "astorages": {"read_lan": ["SOUTH_DISK"], "write_lan": ["SOUTH_DISK"]},
        },
    },
}


@pytest.fixture
def good() -> dict[str, Any]:
    return copy.deepcopy(GOOD)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Any], str]:
    """Writes a document and gives its path; texts are written as they are."""

    def write(document: Any) -> str:
        file = tmp_path / "grid.json"
        file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return str(file)

    return write
