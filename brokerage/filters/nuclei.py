"""Which sites can collect the output of a task."""

from __future__ import annotations

from math import nan

import numpy as np

from brokerage.rules.decision.declare import Criterion, Numbers, Relaxation, Verdicts, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags, Floats
from brokerage.rules.facts.snapshot import Nuclei
from brokerage.rules.grid.output_storages import all_meant, tokens_to_place

GB_PER_HS06_DAY = 0.25 / 10 / 24 / 3600
"""Output that tasks will still write to their nucleus, GB per HS06 s that remains: 0.25 GB per day of a core of 10 HS06."""


@filter("nonpreassigned", "the task collects its output at {nucleus}", chosen=True)
def nonpreassigned_nucleus(ask: Ask, nuclei: Nuclei, _config: Config) -> tuple[Flags | bool, Numbers]:
    """A task that names a nucleus keeps it. Source: facts on the brokerage 5."""
    return (nuclei.name == ask.nucleus) if ask.nucleus else True, {"nucleus": ask.nucleus or ""}


@filter("status", "the site is {state}, not ACTIVE", returns=True)
def nucleus_status(_ask: Ask, nuclei: Nuclei, _config: Config) -> tuple[Flags, Numbers]:
    """The site is ACTIVE. Source: seed 001, task brokerage."""
    return nuclei.state == "ACTIVE", {"state": nuclei.state}


@filter(
    "space",
    "{left_gb:.0f} GB would be left on its storage, more than {least_gb:.0f} GB are wanted",
    kind="temporary",
    gap=("least_gb", "left_gb"),
    keys=("DISK_THRESHOLD", "DISK_THRESHOLD_<queue>"),
)
def nucleus_space(ask: Ask, nuclei: Nuclei, config: Config) -> tuple[Flags, Numbers]:
    """Free and expired space, less what its tasks will still write, is over the threshold. Source: seed 001, task brokerage.

    The space is that of the storage which the output goes to, of the fullest one where it goes to several.
    """
    of_share = config.get(f"DISK_THRESHOLD_{ask.share}")
    least = (config["DISK_THRESHOLD"] if of_share is None else of_share) * 1000.0
    left = _space_gb(ask, nuclei) - nuclei.total_rw * GB_PER_HS06_DAY
    return left > least, {"left_gb": left, "least_gb": least}


def _space_gb(ask: Ask, nuclei: Nuclei) -> Floats:
    tokens = tokens_to_place(ask.output_tokens)
    if not tokens:
        return nuclei.free_gb

    def fullest(table: Nuclei) -> Floats:
        storages = [all_meant(text, tokens) for text in table.storages.tolist()]
        return np.array([min((s.free_gb for s in some), default=nan) if some else nan for some in storages], dtype=np.float64)

    space = nuclei.derived(("space", tokens), fullest, ("storages",))
    return np.where(np.isnan(space), nuclei.free_gb, space)


@filters(
    Criterion(
        "insize",
        "{available_gb:.1f} GB of the input are there, {least_gb:.1f} GB are wanted",
        gap=("least_gb", "available_gb"),
        returns=True,
    ),
    Criterion(
        "innum",
        "{available_files} files of the input are there, {least_files:.0f} are wanted",
        gap=("least_files", "available_files"),
        returns=True,
    ),
    keys=(
        *("INPUT_SIZE_THRESHOLD", "INPUT_SIZE_FRACTION", "INPUT_NUM_THRESHOLD", "INPUT_NUM_FRACTION"),
        *("MIN_IO_INTENSITY_WITH_LOCAL_DATA", "MIN_INPUT_SIZE_WITH_LOCAL_DATA", "MAX_TASK_PRIO_WITH_LOCAL_DATA"),
        "DATA_LOCATION_CHECK_PERIOD",
    ),
)
def nucleus_input(ask: Ask, nuclei: Nuclei, config: Config) -> tuple[Verdicts, Numbers]:
    """A part of much input is there, of its size and of its files; on tape counts. Source: seed 001; facts on the brokerage 5.

    Where no nucleus has enough, a task of little I/O and not too much input, or of high priority, goes without; any task does
    that has waited long.
    """
    gb, files = ask.chunk.gb, ask.chunk.files
    least_gb, least_files = gb * config["INPUT_SIZE_FRACTION"] / 100, files * config["INPUT_NUM_FRACTION"] / 100
    numbers = {
        "available_gb": nuclei.available_gb,
        "least_gb": least_gb,
        "available_files": nuclei.available_files,
        "least_files": least_files,
    }
    if ask.waits_s > config["DATA_LOCATION_CHECK_PERIOD"]:
        return (True, True), numbers
    strict = (
        (nuclei.available_gb >= least_gb) if gb > config["INPUT_SIZE_THRESHOLD"] else True,
        (nuclei.available_files >= least_files) if files > config["INPUT_NUM_THRESHOLD"] else True,
    )
    little = (ask.io_intensity or 0.0) <= config["MIN_IO_INTENSITY_WITH_LOCAL_DATA"]
    spared = little and gb <= config["MIN_INPUT_SIZE_WITH_LOCAL_DATA"]
    spared = spared or ask.priority >= config["MAX_TASK_PRIO_WITH_LOCAL_DATA"]
    return Relaxation(strict, (lambda: (True, True),)) if spared else strict, numbers


@filter("job", "none of its queues can run the jobs", kind="temporary")
def nucleus_job(_ask: Ask, nuclei: Nuclei, _config: Config) -> tuple[Flags, Numbers]:
    """A queue of the site passes the job broker, where that has been asked. Source: seed 001; facts on the brokerage 5."""
    return nuclei.able_queues != 0, {"able_queues": nuclei.able_queues}


@filter(
    "transfer_backlog",
    "{files_queued} files wait for transfer to it, fewer than {cap} are wanted",
    kind="temporary",
    gap=("files_queued", "cap"),
    keys=("NQUEUED_NUC_CAP",),
)
def transfer_backlog(ask: Ask, nuclei: Nuclei, config: Config) -> tuple[Flags | bool, Numbers]:
    """Fewer files than the cap wait for transfer to it.

    Not judged when t1Weight is negative. Source: seed 001, task brokerage.
    """
    cap = config["NQUEUED_NUC_CAP"]
    return (nuclei.files_queued < cap) | (ask.t1_weight < 0), {"files_queued": nuclei.files_queued, "cap": cap}


@filters(
    Criterion("match", "it has no storage for {tokens}"),
    Criterion("source_blacklist", "its storage cannot be read from elsewhere", "temporary"),
    Criterion("destination_blacklist", "its storage cannot be written from elsewhere", "temporary"),
)
def nucleus_outputs(ask: Ask, nuclei: Nuclei, _config: Config) -> tuple[tuple[Flags | bool, Flags | bool, Flags | bool], Numbers]:
    """There is a storage for each output, not in downtime; without tokens it is the default one. Source: facts 5.

    Outputs that stay where they are made want none.
    """
    tokens = tokens_to_place(ask.output_tokens)
    numbers = {"tokens": ", ".join(tokens)}
    if not tokens:
        return (True, nuclei.can_send, nuclei.can_receive), numbers

    def where(what: str) -> Flags:
        return nuclei.where_text(
            "storages", (what, tokens), lambda text: all(getattr(s, what) for s in all_meant(text, tokens) or ())
        )

    matching = nuclei.where_text("storages", ("match", tokens), lambda text: all_meant(text, tokens) is not None)
    return (matching, where("read_wan"), where("write_wan")), numbers
