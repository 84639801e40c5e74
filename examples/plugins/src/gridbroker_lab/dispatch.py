"""Which waiting job a pilot of the laboratory gets: the oldest, whoever's it is."""

from __future__ import annotations

from collections.abc import Iterator

from brokerage.plugin_api import DispatchPolicy, Fitting, Turn, WaitingQueue, dispatch_policy


@dispatch_policy
class LabOldest(DispatchPolicy):
    """First come, first served: neither shares nor priorities count."""

    name = "lab-oldest"

    def order(self, fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
        """The task queues that suit the pilot, by the oldest job of their highest priority."""
        yield from sorted(fitting, key=lambda waiting: waiting.job_id)

    def cpu_class(self, cpu_time_s: int) -> int:
        """Jobs wait together by whole hours."""
        return -(-cpu_time_s // 3600) * 3600
