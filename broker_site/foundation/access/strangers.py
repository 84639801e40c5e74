"""Callers without a good credential: how often an address may come, and how many audit rows that may leave.

Counted in the memory of each web process: it holds without Redis, and a good credential never waits for a bad one from the same
address. Not here: limits of known callers (`throttles`).
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

from broker_site.foundation.access.problems import Refused

BURST, PER_S = 300, 5.0
"""So many failures of one address at once, and so many a second in the long run."""
ROWS, WINDOW_S = 20, 60.0
"""So many failures of one address in this time have an audit row each; the further ones share one."""
MOST_ADDRESSES = 10_000
OTHERS = "others"
"""Stands for all addresses beyond MOST_ADDRESSES."""


def client_address(request: HttpRequest) -> str:
    """Where the request comes from: what the TLS proxy says where it vouches for the request; of IPv6 the network of 64 bits."""
    text = request.META.get("REMOTE_ADDR", "")
    if settings.SECURE_PROXY_SSL_HEADER and request.is_secure():
        text = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or text
    try:
        address = ip_address(text)
    except ValueError:
        return text[:45]
    return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else text


@dataclass(slots=True)
class _Address:
    """What is known of one address: failures that it still may have, and the failures of the present window."""

    left: float
    at: float
    window: float
    in_window: int = 0


@dataclass(slots=True)
class Strangers:
    """Failures by address."""

    _known: dict[str, _Address] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next_look: float = 0.0

    def failed(self, address: str) -> None:
        """A call of this address had no good credential."""
        with self._lock:
            known = self._refilled(address)
            known.left = max(0.0, known.left - 1)

    def refuse_spent(self, address: str) -> None:
        """Refused(429) while the address has used up its failures: nothing is looked up for it."""
        with self._lock:
            if not self._known or self._refilled(address).left >= 1:
                return
        detail = "Too many calls without a good credential came from this address."
        raise Refused(429, "Too many requests", detail, headers={"Retry-After": str(max(1, round(1 / PER_S)))})

    def has_row(self, address: str) -> bool:
        """Whether this failure gets an audit row of its own."""
        with self._lock:
            known, now = self._refilled(address), time.monotonic()
            if not known.in_window:
                known.window = now
            known.in_window += 1
            return known.in_window <= ROWS

    def sums(self) -> list[tuple[str, int]]:
        """Addresses whose window is over, with the failures that have no row yet; each is told once."""
        now = time.monotonic()
        if now < self._next_look:
            return []
        with self._lock:
            self._next_look = now + WINDOW_S / 10
            over = [(address, known) for address, known in self._known.items() if now - known.window >= WINDOW_S]
            told = [(address, known.in_window - ROWS) for address, known in over if known.in_window > ROWS]
            for address, known in over:
                known.in_window = 0
                if self._refilled(address).left >= BURST:
                    del self._known[address]
            return told

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._known.clear()
            self._next_look = 0.0

    def _refilled(self, address: str) -> _Address:
        now = time.monotonic()
        if address not in self._known and len(self._known) >= MOST_ADDRESSES:
            address = OTHERS
        known = self._known.setdefault(address, _Address(BURST, now, now))
        known.left = min(BURST, known.left + (now - known.at) * PER_S)
        known.at = now
        return known


STRANGERS = Strangers()
"""Those of this process."""
