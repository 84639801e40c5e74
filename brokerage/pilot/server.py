"""Speaking with the server: one kept-alive connection, JSON both ways, retries with full jitter.

Every verb of the wire may be repeated (ask ids, epochs and final reports make it harmless), so each request is sent again until
it is answered.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from brokerage.pilot.clocks import Wake, now

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
LARGEST_ANSWER = 8 * 10**6
CONNECT_S = 2.0
SAY_EVERY_S = 30.0


class NoAnswer(Exception):
    """No whole answer came: nobody can tell whether the request was done."""


@dataclass(frozen=True)
class Answer:
    """Status, JSON object of the body (empty when there is none) and Retry-After in seconds, exact where the server says it.

    `nothing`: why an ask got nothing, in a word, where the server says it.
    """

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    retry_after: float | None = None
    nothing: str = ""


class Server:
    """The server seen from one thread, which sleeps on `wake` while it waits."""

    def __init__(self, url: str, wake: Wake, say: Callable[[str], None] | None = None) -> None:
        parts = urlsplit(url)
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._prefix = parts.hostname or "", parts.port, parts.path.rstrip("/")
        self.wake = wake
        self._connection: http.client.HTTPConnection | None = None
        self._say = say
        self._silent_since: float | None = None
        self._said_at = 0.0

    def ask(
        self,
        path: str,
        body: object,
        token: str,
        *,
        deadline: float | None = None,
        attempt_s: float = 10.0,
        stop_grace_s: float = 0.0,
    ) -> Answer | None:
        """POST until an answer that is not 5xx, 408 or 429 comes; None when `deadline` passes or the pilot is to stop first.

        deadline: on the clock of `clocks.now`, None = for ever. attempt_s: patience with one attempt.
        stop_grace_s: how long after the request to stop it still tries.
        """
        data = json.dumps(body).encode()
        pause = FIRST_PAUSE_S
        while (left := self._left(deadline, stop_grace_s)) > 0:
            try:
                answer = self._exchange(path, data, token, min(attempt_s, left), stop_grace_s)
            except NoAnswer as problem:
                wanted = None
                self._note(str(problem))
            else:
                wanted = answer.retry_after
                self._note(f"status {answer.status}" if answer.status >= 500 else None)
                if answer.status < 500 and answer.status not in (408, 429):
                    return answer
            self._pause(random.uniform(0, pause) if wanted is None else wanted, deadline, stop_grace_s)  # noqa: S311 - jitter, no secret
            pause = min(2 * pause, LONGEST_PAUSE_S)
        return None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note(self, problem: str | None) -> None:
        """Say when the server stops answering, every half minute of it, and when it is back."""
        time = now()
        if problem is None:
            if self._silent_since is not None and self._said_at >= self._silent_since and self._say:
                self._say(f"the server answers again after {time - self._silent_since:.1f} s")
            self._silent_since = None
            return
        if self._silent_since is None:
            self._silent_since = time
        if self._say and (self._said_at < self._silent_since or time > self._said_at + SAY_EVERY_S):
            self._say(f"no answer from the server, trying again: {problem}")
            self._said_at = time

    def _left(self, deadline: float | None, stop_grace_s: float) -> float:
        ends = [] if deadline is None else [deadline]
        if self.wake.stopped_at is not None:
            ends.append(self.wake.stopped_at + stop_grace_s)
        return min(ends) - now() if ends else float("inf")

    def _pause(self, seconds: float, deadline: float | None, stop_grace_s: float) -> None:
        end = now() + seconds
        while (left := min(end - now(), self._left(deadline, stop_grace_s))) > 0:
            self.wake.wait(left)

    def _exchange(self, path: str, data: bytes, token: str, seconds: float, stop_grace_s: float) -> Answer:
        """One attempt; NoAnswer after `seconds`. A kept connection that the server had closed is opened again at once."""
        kept = self._connection is not None
        try:
            return self._attempt(path, data, token, now() + seconds, stop_grace_s)
        except (ConnectionError, http.client.RemoteDisconnected) as problem:
            self.close()
            if not kept:
                raise NoAnswer(f"{type(problem).__name__}: {problem}") from problem
        except (OSError, http.client.HTTPException, ValueError) as problem:
            self.close()
            raise NoAnswer(f"{type(problem).__name__}: {problem}") from problem
        return self._exchange(path, data, token, seconds, stop_grace_s)

    def _attempt(self, path: str, data: bytes, token: str, end: float, stop_grace_s: float) -> Answer:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": f"Bearer {token}"}
        connection = self._connect(end - now())
        connection.request("POST", self._prefix + path, body=data, headers=headers)
        if connection.sock is not None:
            self._await(connection.sock, end, stop_grace_s)
        response = connection.getresponse()
        content = response.read(LARGEST_ANSWER + 1)
        if response.length:  # a server that is killed while it answers; a bounded read does not tell
            raise http.client.IncompleteRead(content, response.length)
        if len(content) > LARGEST_ANSWER:
            raise ValueError("answer too large")
        if response.will_close:
            self.close()
        exact = _seconds(response.headers.get("Retry-After-Ms"))
        retry_after = _seconds(response.headers.get("Retry-After")) if exact is None else exact / 1000
        return Answer(response.status, _object(response, content), retry_after, response.headers.get("X-Nothing", "")[:40])

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if self._connection is None:
            connection = self._kind(self._host, self._port, timeout=max(0.05, min(CONNECT_S, seconds)))
            connection.connect()
            self._connection = connection
        return self._connection

    def _await(self, sock: socket.socket, end: float, stop_grace_s: float) -> None:
        """Wait for the first byte; a request to stop shortens the patience."""
        while (left := self._left(end, stop_grace_s)) > 0:
            if self.wake.wait(left, sock.fileno()):
                return
        raise TimeoutError("no answer in time")


def _object(response: http.client.HTTPResponse, content: bytes) -> dict[str, Any]:
    """The JSON object of an answer; an error page of something in between counts as empty, a damaged success as no answer."""
    if response.status == 204 or (not content and response.status >= 300):
        return {}
    try:
        value = json.loads(content)
    except ValueError:
        if response.status < 300:
            raise
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(text: str | None) -> float | None:
    """The number of a header; dates and nonsense count as absent, more than an hour as an hour."""
    with contextlib.suppress(TypeError, ValueError):
        seconds = float(text)  # type: ignore[arg-type]
        if seconds >= 0:
            return min(seconds, 3600.0)
    return None
