"""Tasks with much input that lies only where no further job would start soon: they wait until one of these queues is free. Pure.

Source: facts on gdpconfig 1.2.1, 1.2.7 (task withholder), on agents 6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from broker_site.foundation.gdpconfig.values import pick

CAUSE = "busy_sites"
"""The cause of such a task."""
LEAST_IO = 100.0
"""No task with less I/O is withheld, kB/s."""


class QueueAtData(NamedTuple):
    """A queue with the storages that it reads, and the jobs there that wait, or begin, and that run."""

    name: str
    status: str
    storages: Collection[str]
    queued: int = 0
    running: int = 0

    def free(self, limit: int) -> bool:
        """Whether it takes jobs and has no more waiting than this, or than twice what runs."""
        return self.status == "online" and self.queued <= max(limit, 2 * self.running)


def io_limit(label: str, config: Mapping[str, Any]) -> float:
    """A task with no more I/O is never withheld. `config`: component task_withholder."""
    return max(LEAST_IO, float(pick(config, "LIMIT_IOINTENSITY_<label>", label=label)))


def withheld(places: Sequence[Collection[str]], queues: Sequence[QueueAtData], share: str, config: Mapping[str, Any]) -> str:
    """Why a task is withheld whose datasets are whole at these storages, each at its own; empty where it is not.

    Input that no queue reads whole is none of our business: the brokerage says what becomes of it. `config`: component jobbroker.
    """
    limit = int(pick(config, "NQUEUELIMITSITE_<gshare>", gshare=share) or config["NQUEUELIMITSITE"])
    near = [queue for queue in queues if all(set(queue.storages) & set(storages) for storages in places)]
    if not places or not near or any(queue.free(limit) for queue in near):
        return ""
    names = ", ".join(sorted(queue.name for queue in near)[:3]) + (" ..." if len(near) > 3 else "")
    return f"its input is only at queues that are busy or take no jobs: {names}"
