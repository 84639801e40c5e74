"""Whether the input of a task is near enough to a queue, and readable in the way the task wants."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, Relaxation, Verdicts, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags, Floats, Ints
from brokerage.rules.facts.snapshot import Queues


@filters(
    Criterion(
        "io",
        "{missing_gb:.1f} GB in {missing_files} files of its input are missing, less than {size_gb:g} GB and {files} files may",
        gap=("missing_gb", "size_gb"),
        returns=True,
    ),
    keys=("IO_INTENSITY_CUTOFF", "SIZE_CUTOFF_TO_MOVE_INPUT", "NUM_CUTOFF_TO_MOVE_INPUT"),
)
def io_intensity(ask: Ask, queues: Queues, config: Config) -> tuple[Verdicts, Numbers]:
    """A task with much I/O runs only where little of its input is missing. Source: seed 000; facts on the brokerage 2.3 row 24a.

    Where no queue has enough on disk, tape counts too, and where none has enough at all nothing is judged. Not for merging, nor
    where the task names its one queue.
    """
    missing_gb = ask.chunk.gb - queues.available_gb
    size_gb, files = config["SIZE_CUTOFF_TO_MOVE_INPUT"], config["NUM_CUTOFF_TO_MOVE_INPUT"]
    numbers = {"missing_gb": missing_gb, "missing_files": queues.missing_files, "size_gb": size_gb, "files": files}
    if (ask.io_intensity or 0.0) <= config["IO_INTENSITY_CUTOFF"] or ask.merge or ask.bound_to_one:
        return (True,), numbers

    def near(on_tape_gb: Floats | float, on_tape: Ints | int) -> tuple[Flags]:
        return ((missing_gb - on_tape_gb < size_gb) & (queues.missing_files - on_tape < files),)

    return Relaxation(near(0.0, 0), (lambda: near(queues.tape_gb, queues.tape_files), lambda: (True,))), numbers


@filter("remoteio", "the task reads its input directly, the queue does not allow it")
def remoteio(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """A task that only reads directly needs a queue with direct access; not for merging. Source: seed 000."""
    judged = ask.direct_access_only and not ask.merge
    return queues.direct_access_lan if judged else True, {"direct_access_lan": queues.direct_access_lan}


@filter("non_local", "{missing_files} files of the input are not there, and the queue reads only local data", returns=True)
def non_local(_ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """A queue that reads only local data needs all the input there. Source: facts on the brokerage 2.6."""
    return queues.reads_elsewhere | queues.local, {"missing_files": queues.missing_files}


@filter("max_io_intensity", "the task's I/O is {io_intensity:.0f} kB/s, {most:.0f} kB/s at most", gap=("io_intensity", "most"))
def max_io_intensity(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """The I/O intensity of the task is within the queue's limit, 0 = none; not for merging. Source: facts 2.3 row 23c."""
    intensity = ask.io_intensity or 0.0
    numbers = {"io_intensity": intensity, "most": queues.max_io_intensity}
    return True if ask.merge else intensity <= queues.most_io_intensity, numbers
