"""When a child gives an element back by itself, and how long it then rests at the parent (rows W1, W6; decisions J3, J4). Pure.

A child gives back what can make no progress any more there: its lot of serial numbers is used up, only an operator would let its
task go on, or nothing has happened for too long. While jobs of it live it goes on, and as long as the parent wants it to pause.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from broker_site.foundation.gdpconfig.texts import duration_text
from workqueues.rules.jobs.retry_pause import RetryPause
from workqueues.states import TASK
from workqueues.states.elements import ELEMENT


@dataclass(frozen=True, slots=True)
class StandingElement:
    """A pulled element as it stands at the child.

    `status`: of the element; `task_status`: of its task, empty: it is none yet; `idle_s`: seconds since its last job ended, since
    somebody commanded its task, since it came, or last moved on before its first job, or since the child itself was down;
    `live_jobs`: whether jobs of it wait or run; `paused`: the parent wants it to pause; `quarantined`: agents failed on its task
    too often; `serials_left`: numbers that are left of its lot for one of its outputs, None: no lot limits it; `files_left`:
    files of which jobs are yet to be made; `said`: what is said of its task; `sites`: where it may run; `held`: files are held
    back, as a storage is down or they are in doubt; `limit_s`: so long it may be idle.
    """

    status: str
    task_status: str = ""
    idle_s: float = 0.0
    limit_s: float = 0.0
    live_jobs: bool = False
    paused: bool = False
    quarantined: bool = False
    serials_left: int | None = None
    files_left: int = 0
    said: str = ""
    sites: Collection[str] = ()
    held: bool = False


class IdleLimits(NamedTuple):
    """For how long nothing may happen of an element, s; and how long its work may stay away while the parent answers else."""

    standstill_s: float
    unfetched_s: float


class ChildSites(NamedTuple):
    """Sites of the child: those that take work, and those at which jobs wait or run."""

    open: Collection[str] = ()
    busy: Collection[str] = ()


def why_given_back(element: StandingElement, sites: ChildSites) -> str:
    """Why the child gives it back, in a sentence; empty: it keeps it, as it may while it waits for its turn."""
    if element.status not in ELEMENT.returnable or element.live_jobs or element.paused:
        return ""
    if element.task_status and element.task_status not in TASK.accepting("abort"):
        return ""  # it ends by itself
    if why := _stopped(element):
        return why
    if element.idle_s <= element.limit_s or _waits_its_turn(element, sites):
        return ""
    for_long = f"for over {duration_text(element.limit_s)}"
    if element.task_status:
        return f"no job of it was made {for_long}, its task is {element.task_status}{_said(element)}"
    if element.status == "Acquired":
        return f"it waits {for_long}, and no site takes work for it"
    return f"its work could not be fetched {for_long}"


def _waits_its_turn(element: StandingElement, sites: ChildSites) -> bool:
    """Whether others come first at a site where it may run: it is not better off elsewhere."""
    if not element.task_status:
        return element.status == "Acquired" and any(site in sites.open for site in element.sites)
    return element.task_status in TASK.generating and not element.held and any(site in sites.busy for site in element.sites)


def _stopped(element: StandingElement) -> str:
    """Why its task does not go on by itself."""
    if element.task_status == "exhausted":
        return f"its task is exhausted, and goes on only by hand{_said(element)}"
    if element.quarantined:
        return f"agents failed on its task too often, and it goes on only by hand{_said(element)}"
    left = element.serials_left
    if element.task_status == "pending" and left is not None and left < element.files_left:
        return f"its lot of serial numbers is used up: {left} are left for jobs of {element.files_left} files"
    return ""


def _said(element: StandingElement) -> str:
    return f": {element.said}" if element.said else ""


def returns_in_a_row(before: int, *, tried: bool, progress: bool) -> int:
    """How often an element was given back in a row without the end of a file, this time included if it counts.

    `tried`: the child had jobs of it, or says that it cannot be done there; else it does not count. `progress`: a file of it
    ended in this try.
    """
    return 1 if progress else before + tried


def is_given_up(n: int, most: int) -> bool:
    """Whether its files fail, as it was given back so often in a row. `most`: 0: it never is."""
    return 0 < most <= n


def given_up(n: int, why: str) -> str:
    """Why files fail that children gave back so often in a row, in a sentence."""
    return f"given back by child brokers {n} times in a row" + (f"; the last time: {why}" if why else "")


def rest_s(n: int, pause: RetryPause) -> float:
    """Seconds for which it rests after it was given back for the n-th time in a row."""
    return pause.after(max(n, 1))


def resting(giver: str, until: datetime | None, n: int) -> str:
    """Why no site may have it while it rests, in a sentence."""
    times = "" if n <= 1 else f", as children did {n} times in a row"
    end = f" until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if until else ""
    return f"{giver} gave it back{times}; it rests{end}"


def sites_in_rest(sites: Collection[str], of_giver: Collection[str], n: int) -> frozenset[str]:
    """The sites that may have it while it rests: first those of others than the child that gave it back, then none."""
    return frozenset(sites) - frozenset(of_giver) if n <= 1 else frozenset()
