"""Whether a task of a user has to run where its input is. Source: seed 000, analysis; facts on the brokerage 3.2."""

from __future__ import annotations

from brokerage.rules.facts.ask import Ask, Config

ANYWHERE_PRIORITY = 2000
"""From this priority of the submission on a task runs wherever it may."""

LOCALITY_KEYS = ("IO_INTENSITY_CUTOFF_USER", "DATA_CHECK_TIMEOUT_USER")


def wants_local_input(ask: Ask, config: Config) -> bool:
    """Whether queues without the input are skipped: not for high priority, little I/O, or a task that has waited long.

    A task whose I/O is not known has much; unset keys spare nobody.
    """
    priority = ask.priority if ask.task_priority is None else ask.task_priority
    cutoff, patience = config["IO_INTENSITY_CUTOFF_USER"], config["DATA_CHECK_TIMEOUT_USER"]
    little = cutoff is not None and ask.io_intensity is not None and ask.io_intensity <= cutoff
    tired = patience is not None and ask.waits_s > patience
    return priority < ANYWHERE_PRIORITY and not little and not tired
