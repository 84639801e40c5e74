"""Speaking to the parent broker: one message as JSON, its answer as declared, within one deadline and one size (row X5).

Only the standard library: certificates are verified, no redirection is followed, so that the token goes to the parent alone, and
no proxy of the environment is used. Nothing is tried again here: the next cycle does.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from broker_site.foundation.outside_data import OutsideDataError, read
from brokerage.feeds.fetch import PORTS, TimedSocket
from workqueues.rules.elements.messages import PROTOCOL, FetchWork, Pull, PullAnswer, Reply, Report, ReportAnswer, WorkAnswer

LARGEST_ANSWER = 64_000_000
"""Bytes."""
LARGEST_MESSAGE = 800_000
"""Bytes: what a broker takes of a request's body, with some room."""
DEEPEST = 100
"""Levels of lists and objects in an answer."""
_CHUNK = 65536
_OK = 200
_HINTS = {
    401: "the parent does not know our token, or has revoked it",
    403: "our token has no right to pull work there",
    404: "no broker with a tree answers at this address",
    413: "our message was too long for it",
}

R = TypeVar("R", bound=Reply)


class ParentUnavailable(Exception):
    """The parent gave no answer that can be used; the text says why, in plain words."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Where the parent is, our token there, and the seconds within which an answer must be there whole."""

    url: str
    token: str
    timeout_s: float

    def pull(self, message: Pull) -> PullAnswer:
        """Ask for elements. Raises ParentUnavailable, as the others do."""
        return self._say("pull", message, PullAnswer)

    def work(self, message: FetchWork) -> WorkAnswer:
        """Ask what is to be done for elements that were pulled."""
        return self._say("fetch", message, WorkAnswer)

    def report(self, message: Report) -> ReportAnswer:
        """Tell how elements stand."""
        return self._say("report", message, ReportAnswer)

    def _say(self, verb: str, message: Pull | FetchWork | Report, answer: type[R]) -> R:
        document = _document(self._post(f"/api/v1/tree/{verb}/", encoded(message)))
        spoken = document.get("protocol") if isinstance(document, dict) else None
        if spoken != PROTOCOL:
            raise ParentUnavailable(
                f"the parent speaks version {str(spoken)[:20]} of the messages, this broker version {PROTOCOL}"
            )
        try:
            return read(answer, document)
        except OutsideDataError as fault:
            raise ParentUnavailable(f"the answer to {verb} cannot be used: {fault}"[:500]) from None

    def _post(self, path: str, body: bytes) -> bytes:
        watched = None
        try:
            watched = self._connected()
            response = self._asked(watched, path, body)
            said = _whole(response, LARGEST_ANSWER if response.status == _OK else _CHUNK)
            if watched.expired:
                raise TimeoutError
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, TimeoutError) or (watched is not None and watched.expired):
                raise ParentUnavailable(f"no whole answer within {self.timeout_s:g} s") from None
            raise ParentUnavailable(f"it does not answer: {getattr(error, 'strerror', None) or error}"[:300]) from None
        finally:
            if watched is not None:
                watched.close()
        if response.status != _OK:
            raise ParentUnavailable(_refusal(response.status, said))
        return said

    def _connected(self) -> TimedSocket:
        parts = urlsplit(self.url)
        watched = TimedSocket(parts, time.monotonic() + self.timeout_s)
        if parts.scheme == "https":
            try:
                watched.secure(str(parts.hostname))
            except BaseException:
                watched.close()
                raise
        return watched

    def _asked(self, watched: TimedSocket, path: str, body: bytes) -> http.client.HTTPResponse:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port or PORTS[parts.scheme])
        connection.sock = watched.socket
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Connection": "close",
        }
        connection.request("POST", f"{parts.path.rstrip('/')}{path}", body, headers)
        return connection.getresponse()


@cache
def _writer(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def encoded(message: Any) -> bytes:
    """A message, or a part of one, as JSON."""
    return _writer(message.__class__).dump_json(message)


def _whole(response: http.client.HTTPResponse, most: int) -> bytes:
    chunks, size = [], 0
    while chunk := response.read(_CHUNK):
        size += len(chunk)
        if size > most and response.status == _OK:
            raise ValueError(f"more than {most:,} bytes")
        chunks.append(chunk)
        if size > most:
            break
    if response.status == _OK and response.length:
        raise ValueError(f"the answer ended {response.length} bytes too early")
    return b"".join(chunks)


def _document(said: bytes) -> Any:
    """What an answer says. Raises ParentUnavailable for what is no strict JSON, or what no database keeps."""
    try:
        document = _DECODER.decode(said.decode())
    except (ValueError, RecursionError):
        raise ParentUnavailable("the answer is no JSON: no broker answers at this address") from None
    if fault := _not_kept(document, texts=b"\\u" in said):
        raise ParentUnavailable(f"the answer cannot be used: {fault}")
    return document


def _not_kept(document: Any, *, texts: bool) -> str:
    """What in a document cannot be kept; empty: nothing. `texts`: look at texts too, which escapes alone can spoil."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        inside = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
        if inside and depth >= DEEPEST:
            return f"it is nested deeper than {DEEPEST} levels"
        if texts and isinstance(value, str) and _UNSTORABLE.search(value):
            return "a text holds a NUL character or half of a surrogate pair"
        waiting += [(one, depth + 1) for one in inside if isinstance(one, (dict, list, str))]
    return ""


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _refusal(status: int, said: bytes) -> str:
    """What an answer that is a refusal says: the sentence of its problem document, else what its status means."""
    with suppress(ValueError, AttributeError, RecursionError):
        document = json.loads(said)
        if detail := document.get("detail") or document.get("title"):
            return _UNSTORABLE.sub("?", f"refused ({status}): {detail}"[:500])
    if 300 <= status < 400:
        return f"it sends us elsewhere ({status}), where our token does not go: mend GRIDBROKER_PARENT"
    return f"refused ({status}): {_HINTS.get(status, 'it gives no reason')}"
