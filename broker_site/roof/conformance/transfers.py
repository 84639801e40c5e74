"""The conformance suite of transfer backends, ours and those of other packages: functions that raise AssertionError.

A backend keeps the promises of `brokerage.transfers.port`: the same key is the same copy, an end is told until it is forgotten,
what is not known is missing, nothing is overwritten, a cancelled copy leaves nothing, what is gone counts as removed. CHECKS has
a function for each. The tests of a backend give a `Trial`: the backend, two storage endpoints, and how to look at them.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from uuid import UUID, uuid4

from brokerage.rules.transfers.reasons import REASONS
from brokerage.transfers.port import Backend, CopyOrder, CopyReport, StoredCopy

CONTENT = b"what a file holds " * 1000


@dataclass(frozen=True, slots=True)
class Trial:
    """A backend with what its checks need. `put` stores a file, `read` gives its content, None where there is none.

    `step` lets the backend work for a moment, or time go by; a copy has to end within `seconds` of such steps.
    """

    backend: Backend
    source: str
    destination: str
    put: Callable[[StoredCopy, bytes], None]
    read: Callable[[StoredCopy], bytes | None]
    step: Callable[[], None]
    seconds: float = 30.0

    def order(self, content: bytes = CONTENT, *, stored: bool = True, name: str = "") -> CopyOrder:
        """A copy that may be ordered, of a file that is stored at the source unless it is not to be."""
        path = f"suite/{name or uuid4().hex}"
        if stored:
            self.put(StoredCopy(self.source, path), content)
        checksum = f"{zlib.adler32(content):08x}"
        return CopyOrder(uuid4(), self.source, path, self.destination, path, len(content), checksum)

    def copied(self, order: CopyOrder) -> bytes | None:
        """What stands at the destination of an order."""
        return self.read(StoredCopy(order.destination, order.destination_path))

    def end_of(self, keys: Collection[UUID]) -> Mapping[UUID, CopyReport]:
        """The ends of these copies. AssertionError when one does not end in time."""
        due = time.monotonic() + self.seconds
        while True:
            found = self.backend.find(keys)
            missing = set(keys) - set(found)
            _hold(not missing, f"{self.backend.name} does not know copies that it took and that nobody made it forget")
            if all(report.state != "under way" for report in found.values()):
                return found
            _hold(time.monotonic() < due, f"{self.backend.name} did not end a copy within {self.seconds:g} s")
            self.step()


def declared(trial: Trial) -> None:
    """It has a name of letters, digits and `-`, and a docstring."""
    backend = trial.backend
    _hold(backend.name.replace("-", "").isalnum() and len(backend.name) <= 16, f"{backend.name!r} is no name of a backend")
    _hold((type(backend).__doc__ or "").strip(), f"{backend.name} has no docstring")


def copies_whole_files(trial: Trial) -> None:
    """A copy that is done stands at its destination, with its content: small, large, empty, and with hostile names."""
    contents = [b"", b"x", CONTENT, CONTENT * 200]
    orders = [trial.order(content) for content in contents]
    orders += [trial.order(name=f"{uuid4().hex[:6]}{name}") for name in (" a b", "'\"\\$(x);", "é", "%2e%2e", "\n")]
    _hold(not trial.backend.submit(orders), f"{trial.backend.name} refuses orders without reason")
    ends = trial.end_of([order.key for order in orders])
    for order, content in zip(orders, [*contents, *[CONTENT] * 5], strict=True):
        report = ends[order.key]
        _hold(report.state == "done", f"a copy of {order.source_path!r} ended {report.state}: {report.reason} {report.message}")
        _hold(trial.copied(order) == content, f"{order.destination_path!r} is done and has not its content")


def takes_a_key_once(trial: Trial) -> None:
    """The same key is the same copy, while it is made and after it ended."""
    order = trial.order()
    for _ in range(3):
        trial.backend.submit([order])
    _hold(trial.end_of([order.key])[order.key].state == "done", "an order that was repeated is not done")
    trial.backend.submit([order])
    _hold(trial.backend.find([order.key])[order.key].state == "done", "an order that was repeated after its end began anew")


def tells_ends_until_they_are_forgotten(trial: Trial) -> None:
    """An end is found, and told again and again, until it is forgotten; what was never ordered is missing."""
    order, unknown = trial.order(), uuid4()
    trial.backend.submit([order])
    trial.end_of([order.key])
    _hold(unknown not in trial.backend.find([unknown]), "a copy that nobody ordered is known")
    for _ in range(2):
        _hold(order.key in trial.backend.find([order.key]), "an end is not found again")
        told = {report.key for report in trial.backend.ended(100_000)}
        _hold(order.key in told, "an end that nobody made it forget is not told")
    trial.backend.forget([order.key])
    _hold(order.key not in trial.backend.find([order.key]), "an end is known that was to be forgotten")
    trial.backend.forget([order.key, unknown])


def overwrites_nothing(trial: Trial) -> None:
    """The same content under the name is done, another one stays as it is and fails the copy."""
    same, other = trial.order(), trial.order()
    trial.put(StoredCopy(same.destination, same.destination_path), CONTENT)
    trial.put(StoredCopy(other.destination, other.destination_path), b"another file")
    trial.backend.submit([same, other])
    ends = trial.end_of([same.key, other.key])
    _hold(ends[same.key].state == "done", "a file that stands there with its content is not done")
    _hold(ends[other.key].state == "failed", "a copy is done though another file stands under its name")
    _hold(trial.copied(other) == b"another file", "a file was overwritten")


def tells_what_is_wrong_with_a_source(trial: Trial) -> None:
    """A source that is not there, or has another content, fails the copy with its reason; nothing stands at the destination."""
    missing, other = trial.order(stored=False), trial.order()
    trial.put(StoredCopy(other.source, other.source_path), CONTENT[:-1] + b"X")
    trial.backend.submit([missing, other])
    ends = trial.end_of([missing.key, other.key])
    for order, reasons in ((missing, {"source_missing"}), (other, {"source_corrupt", "checksum"})):
        report = ends[order.key]
        _hold(report.state == "failed", f"a copy of a source that is wrong ended {report.state}")
        _hold(report.reason in REASONS, f"{report.reason!r} is no reason of transfers")
        _hold(report.reason in reasons, f"the reason is {report.reason}, not {' or '.join(sorted(reasons))}")
        _hold(report.message.strip(), f"{report.reason} has no words")
        _hold(trial.copied(order) is None, "something stands under the name of a copy that failed")


def gives_up_what_is_cancelled(trial: Trial) -> None:
    """A copy that is cancelled ends soon: as a failure that leaves nothing, or whole if it was done before."""
    orders = [trial.order(CONTENT * 100) for _ in range(5)]
    trial.backend.submit(orders)
    trial.backend.cancel([*(order.key for order in orders), uuid4()])
    ends = trial.end_of([order.key for order in orders])
    for order in orders:
        whole = trial.copied(order) == CONTENT * 100
        _hold(
            whole == (ends[order.key].state == "done"),
            f"a cancelled copy is {ends[order.key].state}, which is not what stands there",
        )
        _hold(whole or trial.copied(order) is None, "a cancelled copy left a part under the real name")


def removes_copies(trial: Trial) -> None:
    """What is removed is gone, and what is not there counts as removed."""
    there, not_there = (
        StoredCopy(trial.destination, f"suite/{uuid4().hex}"),
        StoredCopy(trial.destination, f"suite/{uuid4().hex}"),
    )
    trial.put(there, CONTENT)
    for _ in range(2):
        left = trial.backend.delete([there, not_there])
        _hold(not left, f"copies are told to be still there: {'; '.join(left.values())}")
        _hold(trial.read(there) is None, "a copy that was removed stands there")


CHECKS: Mapping[str, Callable[[Trial], None]] = {
    check.__name__: check
    for check in (
        declared,
        copies_whole_files,
        takes_a_key_once,
        tells_ends_until_they_are_forgotten,
        overwrites_nothing,
        tells_what_is_wrong_with_a_source,
        gives_up_what_is_cancelled,
        removes_copies,
    )
}
"""Every check by its name."""


def _hold(holds: object, why_not: str) -> None:
    """An `assert` that also holds where Python leaves those out."""
    if not holds:
        raise AssertionError(why_not)
