"""Part of the agent transfer: which attempts begin, and handing them to backends.

An attempt has its key before a backend hears of it: who is killed between leaves a claim, and when that is over the same is
handed over again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from broker_site.foundation.agency.batches import in_halves, one_by_one
from broker_site.foundation.agency.run import Run
from brokerage.agents.transfer_ends import Ends
from brokerage.ledger.transfers.ageing import cancel_without_wish
from brokerage.ledger.transfers.claims import TurnCome, beginning, by_key, lock_due
from brokerage.ledger.transfers.ends import end_unmet, finish_seen
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.ledger.transfers.rests import NewSource, Rest, plan_anew, rest
from brokerage.queries.copy_orders import OrderFacts, order_facts
from brokerage.queries.copy_places import copies_of, copy_places, link_facts
from brokerage.queries.transfer_room import (
    active,
    closed_destinations,
    due_links,
    heads,
    link_limits,
    link_rates,
    share_weights,
    sites_with_destination,
)
from brokerage.rules.transfers.plan import Grid, Plan, plan
from brokerage.rules.transfers.room import Picked, Room, Waiting, Way, pick
from brokerage.transfers.choice import NoBackend, backend_of
from brokerage.transfers.port import Backend, CopyOrder

MOST = 1000
"""Attempts that begin in one transaction at most."""
HINDERED = 20
"""So many transfers of a link that cannot be used are looked at in a run: is there another way, and if not they tell why."""
FULL_S = 2.0
"""So long those rest whose endpoints have no room, so that others of their link are seen."""
EXPRESS_URGENCY = 1_000_000_000
ATTEMPTS = UUID("6f1c3a52-8d57-4d0e-9a55-0b6a1c8f7d21")
"""Name space of the keys of attempts."""


def key_of(transfer: int, attempt: int) -> UUID:
    """The key of an attempt: the same for the same."""
    return uuid5(ATTEMPTS, f"{transfer}/{attempt}")


class Attempts:
    """The attempts that one run of the agent begins."""

    def __init__(self, run: Run, config: Mapping[str, Any], known: Mapping[str, Backend]) -> None:
        self._run, self._config, self._known = run, config, known

    def begin(self, *, hindered_too: bool) -> int:
        """Begin what is due and has room, and hand it over: how many began, ended or are planned from elsewhere.

        `hindered_too`: also look at some transfers of links that cannot be used now.
        """
        with beginning() as mine:
            if not mine:
                return 0
            if (due := self.due(hindered_too=hindered_too)) is None:
                return 0
            grid, room, picked = due
            turns = lock_due(picked.begin)
            plans = self._plan(turns, grid, room)
            begun = self._begin([p for p in plans if p[1].verdict == "begin"])
            self._rest(picked.hindered, [p for _, p in plans if p.verdict == "rest"])
            anew = [p for _, p in plans if p.verdict == "elsewhere"]
            plan_anew([NewSource(p.due.waiting.id, p.source.name, p.source.site, p.source.tape) for p in anew if p.source])
        self.submit_again(begun)
        return len(begun) + len(anew) + self._end([p for _, p in plans])

    def due(self, *, hindered_too: bool) -> tuple[Grid, Room, Picked] | None:
        """The grid, the room that is left, and what may begin by limits and shares; nothing is locked. None: nothing is due."""
        ways = due_links()
        if not ways:
            return None
        grid, room = Grid(copy_places(), closed_destinations(), link_facts()), self._room()
        return grid, room, self._pick(ways, grid, room, hindered_too)

    def submit_again(self, transfers: Sequence[int]) -> int:
        """Hand over attempts that have a key: how many came back. A backend that fails is asked again later."""
        by_backend: dict[str, list[OrderFacts]] = defaultdict(list)
        for facts in order_facts(transfers) if transfers else []:
            by_backend[facts.backend].append(facts)
        rates = link_rates() if by_backend else {}

        def submit(name: str) -> int:
            return self._submit(self._known[name], by_backend[name], rates)

        names = [name for name in by_backend if name in self._known]
        return sum(one_by_one(names, submit, lambda name, error: self._run.leave(f"the backend {name}", error)))

    def note_submitted(self, attempts: Sequence[tuple[int, UUID]]) -> None:
        """A backend has these."""
        if attempts:
            moves = [TransferMove(id_, key=key) for id_, key in attempts]
            move_transfers(moves, "submitted", self._run.who, sources=["submitting"], claim_s=self._config["POLL"]).run()

    def _submit(self, backend: Backend, orders: Sequence[OrderFacts], rates: Mapping[Way, float]) -> int:
        lost = {
            o.key: ("source_missing", f"the copy at {o.source} is not there any more") for o in orders if o.source_path is None
        }
        wanted = [_order(o, rates) for o in orders if o.key not in lost]
        refused = backend.submit(wanted)
        reasons = {**lost, **{key: (refusal.reason, refusal.message) for key, refusal in refused.items()}}
        self.note_submitted([(o.id, o.key) for o in orders if o.key not in reasons])
        return Ends(self._run, self._config).fail(list(by_key(list(reasons)).values()), reasons) if reasons else 0

    def _room(self) -> Room:
        config = self._config
        limits = link_limits(config["LINK_ACTIVE"])
        room = Room(config["LINK_ACTIVE"], config["STORAGE_ACTIVE"], config["EXPRESS_SLOTS"], limits)
        room.count(active())
        return room

    def _pick(self, ways: Sequence[Way], grid: Grid, room: Room, hindered_too: bool) -> Picked:
        """The heads of the links that have room, express ones first. Hindered are those that may hide others behind them."""
        sites = sites_with_destination(list(grid.closed))
        wanted: dict[tuple[Way, bool], int] = {}
        for way in ways:
            usable = way not in grid.links.blocked and way.destination in sites
            for express in (True, False):
                n = min(room.left(way, express), MOST) if usable else HINDERED if hindered_too else 0
                if n:
                    wanted[way, express] = n
        picked = pick(heads(wanted), room, share_weights(), MOST) if wanted else Picked((), ())
        stuck = Counter((one.way, one.express) for one in picked.hindered)
        hiding = [one for one in picked.hindered if stuck[one.way, one.express] >= wanted[one.way, one.express]]
        return Picked(picked.begin, hiding)

    def _plan(self, turns: Sequence[TurnCome], grid: Grid, room: Room) -> list[tuple[TurnCome, Plan]]:
        copies = copies_of({turn.due.file_id for turn in turns}, grid.places)
        return [(turn, plan(turn.due, copies.get(turn.due.file_id, ()), grid, room)) for turn in turns]

    def _begin(self, plans: Sequence[tuple[TurnCome, Plan]]) -> list[int]:
        """Give attempts their keys: the transfers that are being submitted now."""
        by_backend: dict[str, list[TransferMove]] = defaultdict(list)
        names: dict[str, str] = {}
        for turn, decided in plans:
            if turn.vo not in names:
                names[turn.vo] = self._backend(turn.vo)
            id_ = turn.due.waiting.id
            if decided.source is not None and names[turn.vo]:
                move = TransferMove(
                    id_, f"from {decided.source.name}", source=decided.source.name, site=decided.source.site,
                    new_key=key_of(id_, turn.attempt + 1),
                )  # fmt: skip
                by_backend[names[turn.vo]].append(move)
        begun: list[int] = []
        for name, moves in by_backend.items():
            call = move_transfers(
                moves, "submitting", self._run.who, sources=["queued"], backend=name, claim_s=self._config["CLAIM"]
            )
            begun += [id_ for (id_,) in call.run()]
        return begun

    def _backend(self, vo: str) -> str:
        try:
            return backend_of(vo).name
        except NoBackend as none:
            self._run.leave(f"transfers of {vo}", none)
            return ""

    def _rest(self, hindered: Sequence[Waiting], plans: Sequence[Plan]) -> None:
        full = lock_due(hindered) if hindered else []
        why = "as many transfers as are allowed go to or come from its storage endpoints"
        rests = [Rest(turn.due.waiting.id, "link_full", why) for turn in full]
        rest(rests, min(FULL_S, self._config["REST"]))
        rest([Rest(p.due.waiting.id, p.reason, p.why) for p in plans], self._config["REST"])

    def _end(self, plans: Sequence[Plan]) -> int:
        """End those that need no attempt: how many."""
        who = self._run.who
        unwished = [p.due.waiting.id for p in plans if p.verdict == "unwished"]
        moved = len(cancel_without_wish(unwished, who)) if unwished else 0

        def leave(move: TransferMove, error: Exception) -> None:
            self._run.leave(f"transfer {move.id}", error)

        def give_up(batch: Sequence[TransferMove]) -> list[int]:
            return end_unmet(batch, "failed", who, sources=["queued"])

        for verdict, work in (("seen", lambda batch: finish_seen(batch, who)), ("no_source", give_up)):
            moves = [TransferMove(p.due.waiting.id, p.why, reason=p.reason) for p in plans if p.verdict == verdict]
            moved += sum(map(len, in_halves(moves, work, leave, group=lambda move: move.id)))
        return moved


def _order(facts: OrderFacts, rates: Mapping[Way, float]) -> CopyOrder:
    return CopyOrder(
        key=facts.key,
        source=facts.source,
        source_path=facts.source_path or "",
        destination=facts.destination,
        destination_path=facts.destination_path,
        bytes=facts.bytes,
        checksum=facts.checksum,
        mb_per_s=rates.get(Way(facts.source_site, facts.destination_site)),
        urgency=min(max(facts.priority, -EXPRESS_URGENCY), EXPRESS_URGENCY) + (EXPRESS_URGENCY if facts.express else 0),
        activity=facts.activity,
        tape=facts.tape,
    )
