"""Whether the input of an analysis task is where it would run."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, Relaxation, Verdicts, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.local_input import LOCALITY_KEYS, wants_local_input
from brokerage.rules.facts.overload import OVERLOAD_KEYS, overloaded
from brokerage.rules.facts.snapshot import Queues


@filters(Criterion("locality", "{missing_files} files of the input are not there", returns=True), keys=LOCALITY_KEYS)
def locality(ask: Ask, queues: Queues, config: Config) -> tuple[Verdicts, Numbers]:
    """All input is there on disk, or the queue reads it through a cache.

    Where nobody has it so, tape counts too, then one whole dataset of several, and last queues without input: the second pass,
    in which no queue reads through a cache. Source: seed 000, analysis; facts on the brokerage 3.2.
    """
    numbers = {"missing_files": queues.missing_files}
    if not wants_local_input(ask, config):
        return (_without_cache(queues),), numbers
    copied = ask.avoid_vp or ask.merge or ask.scout or ask.use_local_io  # never read through a cache (facts 3.2)
    at_hand = queues.local if copied else queues.local | queues.virtual
    laxer = (
        lambda: (at_hand | (queues.missing_files <= queues.tape_files),),
        lambda: (queues.whole_datasets > 0,),
        lambda: (_without_cache(queues),),
    )
    return Relaxation((at_hand,), laxer), numbers


def _without_cache(queues: Queues) -> Flags | bool:
    """Queues wherever the input is, but a queue of virtual placement only where it has all of it."""
    return queues.local | ~queues.virtual if queues.virtual.any() else True


@filters(
    Criterion("vp", "it reads through a cache, which the task avoids"),
    Criterion("overloaded_vp", "it reads through a cache, and {queued} jobs wait", returns=True),
    keys=OVERLOAD_KEYS,
)
def virtual_placement(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """Queues of virtual placement only for tasks that do not avoid them, and while they are not overloaded. Source: seed 000."""
    numbers = {"queued": queues.queued_in_all_states}
    if not queues.virtual.any():
        return (True, True), numbers
    return (~queues.virtual if ask.avoid_vp else True, ~(queues.virtual & overloaded(queues, config))), numbers


@filter("fileunavailable", "{missing_files} files of the input are not there, and the queue reads only local data", returns=True)
def file_unavailable(_ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """A queue that reads only local data needs all the input there. Source: facts on the brokerage 3.3."""
    return queues.reads_elsewhere | queues.local, {"missing_files": queues.missing_files}
