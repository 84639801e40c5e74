"""The room of sites in this process: matches that it may still make at each, taken in blocks and handed back in time.

A match asks here before it leases, which mostly costs nothing: a block is one statement for up to ten matches, and a site that
never advertised has no limits. Thread safe; every process has its own.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from threading import Lock, Thread

from django.db import DatabaseError, InterfaceError, connection

from broker_site.foundation import gdpconfig
from broker_site.foundation.sql.prepared import Call
from brokerage.ledger.site_limits import BLOCK, Block, handing_back, take_room
from brokerage.queries.site_limits import AdvertisedSite, advertised_sites, max_age_s

FRESH_S = 0.5
"""How old what is known of the advertisements may be: a site's first one, its stations, and that it has no room."""
HANDED_BACK = 32
"""Blocks of a site that are known after they were handed back: matches that came to nothing may be of several of them."""

logger = logging.getLogger(__name__)
_NOT_HANDED_BACK = "room of sites is not handed back, it counts as used until they advertise anew: %s"


@dataclass(slots=True)
class _Held:
    """A block of this process: `left` matches of it until `ends_at` (monotonic seconds)."""

    block: Block
    left: int
    ends_at: float

    def take_back(self, n: int) -> int:
        """How many of `n` matches that were not made may be of this block, which has them again."""
        back = min(n, self.block.n - self.left)
        self.left += back
        return back


@dataclass(slots=True)
class _Place:
    """One site: its block, the last ones that were handed back, and until when it is known to have no room."""

    lock: Lock = field(default_factory=Lock)
    held: _Held | None = None
    handed_back: deque[_Held] = field(default_factory=lambda: deque(maxlen=HANDED_BACK))
    none_until: float = 0.0
    size: int = 1


@dataclass(slots=True)
class SiteRoom:
    """What a process holds of the room of all sites."""

    _places: defaultdict[str, _Place] = field(default_factory=lambda: defaultdict(_Place))
    _known: tuple[float, dict[str, AdvertisedSite]] = (0.0, {})
    _reading: Lock = field(default_factory=Lock)
    _keeping: Lock = field(default_factory=Lock)
    _keeper: Thread | None = None

    def take(self, site: str, n: int = 1) -> int | None:
        """How many of `n` matches at the site may be made now; None: the site has no limits.

        Each that is not made is to be given back (`give_back`). Not to be called in a transaction: others wait for its end.
        """
        if site not in self._sites():
            return None
        place, now = self._places[site], time.monotonic()
        with place.lock:
            held = place.held
            if held is None or not held.left or now >= held.ends_at:
                if now < place.none_until:
                    return 0
                held = self._draw(site, place, n, now)
            if held is None:
                return 0
            given = min(n, held.left)
            held.left -= given
            return given

    def give_back(self, site: str, n: int = 1) -> None:
        """So many matches that were taken were not made. Raises nothing: what the database does not take counts as used."""
        place = self._places[site]
        with place.lock:
            place.none_until = 0.0
            if place.held is not None:
                n -= place.held.take_back(n)
            for block in reversed(place.handed_back):
                if n <= 0:
                    break
                if not (n_back := block.take_back(n)):
                    continue
                n -= n_back
                try:
                    handing_back(block.block.id, site, n_back).run()
                except (DatabaseError, InterfaceError) as exc:
                    logger.warning(_NOT_HANDED_BACK, exc)

    def hand_back(self, *, all_of_it: bool = True) -> float | None:
        """Give up what is held, or only blocks whose life is over. When the next one ends (monotonic); None: nothing is held."""
        ends = []
        for site, place in list(self._places.items()):
            with place.lock:
                if (held := place.held) is None:
                    continue
                if not all_of_it and time.monotonic() < held.ends_at:
                    ends.append(held.ends_at)
                    continue
                place.held, left = None, held.left
                place.handed_back.append(held)
            # Not under the lock: a match whose connection is cut would go on waiting for a database that does not answer here.
            handing_back(held.block.id, site, left).run()
        return min(ends, default=None)

    def reason(self, site: str) -> str:
        """Why the site has no room, in words with the numbers; empty: it has some, or no limits."""
        if (known := self._sites().get(site)) is None:
            return ""
        why = known.why_no_room(max_age_s(), time.monotonic() - self._known[0])
        return why or next((now.why_no_room(max_age_s()) for now in advertised_sites([site]).values()), "")

    def stations(self, site: str) -> frozenset[str]:
        """The stations that the site advertises."""
        known = self._sites().get(site)
        return frozenset(known.stations) if known else frozenset()

    def forget(self) -> None:
        """Know and hold nothing, as a new process."""
        self._places.clear()
        self._known = (0.0, {})

    def _draw(self, site: str, place: _Place, n: int, now: float) -> _Held | None:
        """A new block in place of the one that is used up or over. Who uses them up fast gets larger ones."""
        before: list[Call] = []
        used_up = 0
        if (last := place.held) is not None:
            if last.left:
                before = [handing_back(last.block.id, site, last.left)]
            else:
                used_up = last.block.id
            place.held = None
            place.handed_back.append(last)
            place.size = min(BLOCK, 2 * last.block.n) if not last.left and now < last.ends_at else 1
        block = take_room(site, max(n, place.size), max_age_s(), before, used_up)
        if block is None:
            place.none_until = now + FRESH_S
            return None
        with self._keeping:
            place.held = _Held(block, block.n, now + gdpconfig.value("dispatch", "SITE_BLOCK_LIFE"))
            if self._keeper is None:
                self._keeper = Thread(target=self._keep, name="site room", daemon=True)
                self._keeper.start()
        return place.held

    def _sites(self) -> dict[str, AdvertisedSite]:
        at, known = self._known
        if at and time.monotonic() - at <= FRESH_S:
            return known
        if self._reading.acquire(blocking=not at):
            try:
                now = time.monotonic()
                self._known = (now, advertised_sites())
            finally:
                self._reading.release()
        return self._known[1]

    def _keep(self) -> None:
        """Hand blocks back whose life is over, for as long as any is held."""
        try:
            while self._keeper is not None:
                if (ends_at := self.hand_back(all_of_it=False)) is not None:
                    time.sleep(max(0.01, ends_at - time.monotonic()))
                    continue
                with self._keeping:
                    if not any(place.held for place in list(self._places.values())):
                        self._keeper = None
        except (DatabaseError, InterfaceError) as exc:
            logger.warning(_NOT_HANDED_BACK, exc)
            with self._keeping:
                self._keeper = None
        finally:
            connection.close()


SITE_ROOM = SiteRoom()
