"""Small grids and random ones for the tests of the broker, and the configuration without overrides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from broker_site.foundation.gdpconfig.values import Config
from brokerage.config_keys import SERVER
from brokerage.rules.facts.ask import Ask, Chunk
from brokerage.rules.facts.snapshot import Queues

PARTS = (("jedi", "jobbroker"), ("jedi", "taskbrokerage"), ("jedi", "core"), ("jedi", "anal_jobbroker"), (SERVER, "prio_mgr"))
CONFIG = {key: value for app, part in PARTS for key, value in Config().component(part, app=app).items()}


def queues(**columns: Any) -> Queues:
    """One queue Q with these values, where pilots ask for work."""
    return piloted([{"name": "Q", **columns}])


def piloted(rows: Iterable[Mapping[str, Any]]) -> Queues:
    """The queues of these rows; where nothing else is said, pilots ask for work."""
    return Queues.from_rows({"requests_3h": 9, **row} for row in rows)


def ask(**values: Any) -> Ask:
    """A task of one core that gives nothing else; `events`, `gb`, `chunk_site` and the like are those of its chunk."""
    chunk = Chunk(
        n_events=values.pop("events", 0),
        files=values.pop("files", 0),
        gb=values.pop("gb", 0.0),
        job_gb=values.pop("job_gb", None),
        ram_count=values.pop("chunk_ram", None),
        site=values.pop("chunk_site", None),
        site_skipped_s=values.pop("skipped_s", 0.0),
    )
    return Ask(**values, chunk=chunk)


ROWS: dict[str, list[Any]] = {
    "site": ["A", "B", "C"],
    "status": ["online", "online", "online", "offline", "test"],
    "corecount": [-1, 0, 1, 4, 8],
    "corepower": [0.0, 10.0, 12.5],
    "maxrss": [0.0, 2000.0, 4000.0, 16000.0],
    "minrss": [0.0, 0.0, 2001.0],
    "maxtime": [0.0, 3600.0, 86400.0],
    "mintime": [0.0, 0.0, 1800.0],
    "maxwdir": [0.0, 5000.0, 80000.0],
    "direct_access_lan": [False, True],
    "space_gb": [None, 100.0, 200.0, 5000.0],
    "allowed_processing": ["", "", "simul|reco", "reco"],
    "excluded_processing": ["", "", "simul"],
    "defined": [0, 0, 1, 3],
    "activated": [0, 1, 7, 20],
    "running": [0, 1, 10, 20],
    "requests_3h": [0, 5, 5, 5],
}
"""The values that random queues are made of."""

ASKS: dict[str, list[Any]] = {
    "task_id": [1, 2],
    "processing_type": ["simul", "reco", ""],
    "site": [None, None, None, "Q01", "Q0*, B"],
    "included_sites": [(), (), ("A", "Q02"), ("*1*",)],
    "excluded_sites": [(), (), ("C",), ("Q*0",)],
    "banned_sites": [(), (), (), ("A",), ("C", "B")],
    "stations": [(), (), (), ("st1", "st2")],
    "station_sites": [(), ("A",), ("B", "C")],
    "core_count": [None, 0, 1, 4, 8],
    "ram_count": [None, 0, 1900, 2000],
    "ram_unit": [None, "MB", "MBPerCore"],
    "base_ram_count": [None, 100],
    "cpu_time": [None, 100, 3600],
    "cpu_time_unit": ["HS06sPerEvent", "mHS06sPerEvent"],
    "cpu_efficiency": [None, 0, 90],
    "base_walltime": [None, 0, 1800],
    "out_disk_count": [None, 500],
    "out_disk_unit": [None, "kBPerEvent", "MB", "GB"],
    "work_disk_count": [None, 1000],
    "events": [0, 100, 1000],
    "gb": [0.0, 4.0, 60.0],
}
"""The values that random tasks are made of."""


Values = Mapping[str, Sequence[Any]]
seeds = st.integers(0, 2**24 - 1)
"""A task or a queue is drawn as one number: hypothesis takes far longer over forty values, and they vary no more."""


def random_task(dice: Random, values: Values) -> Ask:
    return ask(**{name: dice.choice(some) for name, some in values.items()})


def random_row(dice: Random, values: Values) -> dict[str, Any]:
    return {column: dice.choice(some) for column, some in values.items()}


def random_tasks(values: Values) -> st.SearchStrategy[Ask]:
    return seeds.map(lambda seed: random_task(Random(seed), values))


def random_grids(values: Values, most: int, suffixes: Sequence[str] = ("",)) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Up to `most` candidates, each with a name of its own that ends with one of the suffixes."""
    dice = st.lists(seeds.map(Random), max_size=most)
    return dice.map(
        lambda drawn: [{"name": f"Q{i:02}{one.choice(suffixes)}"} | random_row(one, values) for i, one in enumerate(drawn)]
    )


def random_case(dice: Random, size: int) -> tuple[Ask, list[dict[str, Any]]]:
    """A task and a grid of that many queues."""
    rows = [{"name": f"Q{i:02}", **random_row(dice, ROWS)} for i in range(size)]
    return random_task(dice, ASKS), rows


grids = random_grids(ROWS, 8)
asks = random_tasks(ASKS)
