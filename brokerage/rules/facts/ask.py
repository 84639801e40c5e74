"""What the brokerage needs to know of a task and of the chunk of its input that it wants to place.

Here: the frozen `Ask`, its JSON document (format gridbroker-ask/1) and what its units mean. Not here: how an ask is read from the
database (`brokerage.queries`), and what follows from it at a queue (`brokerage.rules.facts.needs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, Strict

from broker_site.foundation.gdpconfig.texts import thawed
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import OutsideDataError, Whole, found, problem, read

Config = Mapping[str, Any]
"""Plain key names to typed values: defaults with overrides, as `gdpconfig.component` gives them."""

FORMAT = "gridbroker-ask/1"

HIGH_PRIORITY, VERY_HIGH_PRIORITY, EXPRESS_PRIORITY = 800, 900, 1000
"""From the first on a task goes only to its nucleus, from the second it prefers it, from the third it is express (seed 000)."""


Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Amount = Annotated[Number, Field(ge=0)]
Count = Annotated[Whole, Field(ge=0)]
Switch = Annotated[bool, Strict()]


@dataclass(frozen=True, slots=True)
class ChunkDataset:
    """One input dataset of the chunk: how much of it the chunk takes."""

    name: str = ""
    master: Switch = False
    files: Count = 0
    gb: Amount = 0.0


@dataclass(frozen=True, slots=True)
class Chunk:
    """The input to place: events in one job (of the largest, as jobs are cut), and files and size (GB = 10^9 bytes) of all of it.

    `job_gb` is the largest input of one job; None where the whole chunk may be one job. `ram_count` is what earlier tries of its
    files needed, in the unit of the task. `site` names the queues where files wait to be merged, `site_skipped_s` for how long
    those have been skipped.
    """

    n_events: Count = 0
    files: Count = 0
    gb: Amount = 0.0
    job_gb: Amount | None = None
    ram_count: Amount | None = None
    site: str | None = None
    site_skipped_s: Amount = 0.0
    datasets: tuple[ChunkDataset, ...] = ()

    @property
    def largest_gb(self) -> float:
        """Size of the largest input of one job, GB."""
        return self.gb if self.job_gb is None else self.job_gb


@dataclass(frozen=True, slots=True)
class Usage:
    """What the user of a task (or its working group) has on the grid: jobs and cores, and where the disk quota is used up."""

    running_jobs: Count = 0
    queued_jobs: Count = 0
    running_cores: Count = 0
    queued_cores: Count = 0
    quota_exceeded: Switch = False
    full_storages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """One task and one chunk, as the brokers see them. None = not given; every unit as the task parameter has it.

    `priority` is the current one, `task_priority` that of the submission. `container_sources` are the places of the container by
    the tags of the whole grid; `release` is `project-version`. `output_tokens` name the storages that outputs go to, by name or
    type. `waits_s`: seconds since something was last made for the task. `read_wan`: its input may be read over the network.
    `station_sites`: sites that offer one of `stations`, by what they advertised last.
    """

    task_id: Count = 0
    vo: str = ""
    prod_source_label: str = ""
    processing_type: str = ""
    working_group: str | None = None
    user: str | None = None
    share: str | None = None
    resource_type: str | None = None
    priority: Whole = 0
    task_priority: Whole | None = None
    waits_s: Amount = 0.0
    cloud: str | None = None
    nucleus: str | None = None
    site: str | None = None
    included_sites: tuple[str, ...] = ()
    excluded_sites: tuple[str, ...] = ()
    banned_sites: tuple[str, ...] = ()
    stations: tuple[str, ...] = ()
    station_sites: tuple[str, ...] = ()
    core_count: Count | None = None
    max_core_count: Count | None = None
    ram_count: Amount | None = None
    ram_unit: str | None = None
    base_ram_count: Amount | None = None
    merge_core_count: Count | None = None
    merge_ram_count: Amount | None = None
    cpu_time: Amount | None = None
    cpu_time_unit: str | None = None
    cpu_efficiency: Amount | None = None
    base_walltime: Amount | None = None
    walltime_s: Amount | None = None
    max_walltime_h: Amount | None = None
    out_disk_count: Amount | None = None
    out_disk_unit: str | None = None
    work_disk_count: Amount | None = None
    work_disk_unit: str | None = None
    n_gb_per_job: Amount | None = None
    io_intensity: Amount | None = None
    disk_io: Amount | None = None
    architecture: str | None = None
    release: str | None = None
    container_name: str | None = None
    container_sources: tuple[str, ...] = ()
    nightly: Switch = False
    only_tags_for_fc: Switch = False
    ip_connectivity: str | None = None
    ip_stack: str | None = None
    direct_access_only: Switch = False
    use_local_io: Switch = False
    read_wan: Switch = False
    avoid_vp: Switch = False
    output_tokens: tuple[str, ...] = ()
    t1_weight: Number = 0.0
    event_service: Count = 0
    n_jumbo_jobs: Count | None = None
    scout: Switch = False
    merge: Switch = False
    merge_output: Switch = False
    chunk: Chunk = field(default_factory=Chunk)
    usage: Usage = field(default_factory=Usage)

    @property
    def preassigned(self) -> bool:
        """Whether the task itself, or where its files wait to be merged, says where it runs; such queues need not be online."""
        return bool(self.site or self.chunk.site)

    @property
    def bound_to_one(self) -> bool:
        """Whether the task names exactly one place."""
        return bool(self.site) and not self.chunk.site and "," not in (self.site or "").strip(", ")

    @property
    def urgent(self) -> bool:
        """Express: processing type urgent, or priority 1000 and more (seed 000)."""
        return self.processing_type == "urgent" or self.priority >= EXPRESS_PRIORITY

    @property
    def high(self) -> bool:
        """Priority 800 and more, or scouts (seed 000)."""
        return self.priority >= HIGH_PRIORITY or self.scout

    @classmethod
    def from_document(cls, document: object) -> Ask:
        """Read a JSON document.

        Absent or null = not given, names that we do not know are ignored. Raises OutsideDataError with all faults.
        """
        wrong: list[Problem] = []
        if isinstance(document, Mapping) and (form := document.get("format", FORMAT)) != FORMAT:
            wrong.append(problem("format", "format", f"expected {FORMAT!r}, found {found(form)}"))
        try:
            ask = read(cls, _without_nulls(document))
        except OutsideDataError as error:
            raise OutsideDataError([*wrong, *error.problems]) from None
        if wrong:
            raise OutsideDataError(wrong)
        return ask

    def to_document(self) -> dict[str, Any]:
        """The JSON document from which `from_document` makes an equal ask."""
        return {"format": FORMAT, **thawed(asdict(self))}


def _without_nulls(value: Any) -> Any:
    """A JSON value without the members that are null."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


SIGNED = frozenset(name for name, declared in Ask.__annotations__.items() if declared.startswith(("Whole", "Number")))
"""Numbers that may be negative."""


LEAST_MERGE_RAM_MB = 2000.0


def as_merging(ask: Ask, config: Config) -> Ask:
    """The ask as it is decided on. `config`: MERGE_PREASSIGNMENT, s.

    Files that earlier tries needed more memory for raise the memory. Merge jobs have the cores and the memory (plain MB) that the
    task gives for merging, and run where their files are until the queues there have been skipped for long.
    """
    chunk = ask.chunk
    if chunk.site and chunk.site_skipped_s >= config["MERGE_PREASSIGNMENT"]:
        ask = replace(ask, chunk=replace(chunk, site=None))
    if ask.merge and ask.merge_core_count is not None:
        ask = replace(ask, core_count=ask.merge_core_count)
    if ask.merge and ask.merge_ram_count:
        return replace(ask, ram_count=max(ask.merge_ram_count, chunk.ram_count or 0.0, LEAST_MERGE_RAM_MB), ram_unit="MB")
    if (chunk.ram_count or 0.0) > (ask.ram_count or 0.0):
        ask = replace(ask, ram_count=chunk.ram_count)
    return ask
