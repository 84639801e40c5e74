"""HTTP to one server: bearer token, JSON, tries with pauses, refusals as exceptions.

The token goes to this server alone: a redirect to any other one is not followed.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import IO, Any, Callable
from urllib.parse import quote, urlencode, urljoin, urlsplit

from broker_site.client.errors import NOT_ALLOWED, NOT_FOUND, Refused, Unreachable, Unusable
from broker_site.client.patience import BUSY, asked_pause, own_pause

TIMEOUT_S = 60.0
PATIENCE_S = 90.0
"""How long a call is tried again that the server asks to repeat; a limit of its is over after a minute."""
SILENCE_S = 5.0
"""How long a call is tried again to which nobody answers."""
API = "/api/v1/"
MOST_REDIRECTS = 3
HINTS = {
    NOT_ALLOWED: {401: "sign in: broker login URL --token", 403: "ask an operator of the VO for the role"},
    NOT_FOUND: {404: "what belongs to a VO in which you have no role is not shown either"},
}


@dataclass(frozen=True)
class Answer:
    """What came back, whole. `headers` by small names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The document. Raises Unreachable for what is none: then no GridBroker answers there."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise Unreachable(
                "This is no answer of GridBroker", f"it is {self.headers.get('content-type', 'of no type')}, not JSON", URL_HINT
            ) from None


URL_HINT = "look at the address: broker login --check"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """None: the answer stays the redirect."""


class Connection:
    """One server and the token for it. May be used by several threads.

    `patience_s`: how long to try again where the server asks for it; `silence_s`: where nobody answers. `told` gets a sentence
    before each pause that is long enough to wonder.
    """

    def __init__(self, url: str, token: str, patience_s: float = PATIENCE_S, silence_s: float = SILENCE_S) -> None:
        self.url = checked_url(url)
        self._token = _checked_token(token)
        self.patience_s, self.silence_s = patience_s, silence_s
        self.told: Callable[[str], None] = lambda sentence: None
        context = ssl.create_default_context()
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))
        self._dice = random.Random()  # noqa: S311 - spreads clients over time, guards nothing

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """The document at a path below /api/v1/, or at one that begins with a slash."""
        return self.ask("GET", path, query=query).json()

    def post(self, path: str, body: Any = None, key: str = "") -> Any:
        """What the server answers to a document; `key` is the Idempotency-Key."""
        return self.ask("POST", path, body={} if body is None else body, headers={"Idempotency-Key": key} if key else {}).json()

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to one call, a good one. Raises Refused, Unreachable.

        A call is made again where the server asks for that (429, 503 with Retry-After), or where nobody answers and it does no
        harm: it reads, or has an Idempotency-Key, or the connection was refused.
        """
        request = self._request(method, path, query, body, headers or {})
        answer = self._tried(request)
        for _ in range(MOST_REDIRECTS):
            where = self._own(answer)
            if where is None or method != "GET":
                break
            answer = self._tried(self._request(method, where, None, None, headers or {}))
        return self._good(answer, path)

    def _tried(self, request: urllib.request.Request) -> Answer:
        """The answer, good or not, after as many tries as it takes or patience lasts."""
        repeatable = request.get_method() == "GET" or request.has_header("Idempotency-key")
        began, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                answer = self._once(request)
            except OSError as problem:
                unsent = isinstance(_cause(problem), ConnectionRefusedError)
                pause = own_pause(tries, self._dice)
                if not (repeatable or unsent) or time.monotonic() + pause > began + self.silence_s:
                    raise self._unreachable(problem) from None
                self._rest(pause, "the server does not answer")
                continue
            asked = asked_pause(answer.headers.get("retry-after"), datetime.now(timezone.utc))
            if answer.status not in BUSY or asked is None:
                return answer
            pause = max(asked, own_pause(tries, self._dice))
            if time.monotonic() + pause > began + self.patience_s:
                return answer
            self._rest(pause, f"the server is busy ({answer.status})")

    def address(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        """The whole URL of a path, below /api/v1/ unless it begins with a slash."""
        where = path if path.startswith("/") else API + path
        told = {name: value for name, value in (query or {}).items() if value is not None}
        return self.url + where + (f"{'&' if '?' in where else '?'}{urlencode(told)}" if told else "")

    def _request(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any, headers: Mapping[str, str]
    ) -> urllib.request.Request:
        if not _plain(path):
            raise Unusable("Not an address", f"{path!r} holds a blank or a character that no address has")
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.address(path, query), data, method=method)  # noqa: S310 - the scheme was checked
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "gridbroker-client")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            if not _plain(value):
                raise Unusable("Not usable in a request", f"{name}: letters, digits and signs without blanks, not {value!r}")
            request.add_header(name, value)
        return request

    def _once(self, request: urllib.request.Request) -> Answer:
        """Any answer at all; OSError where there is none."""
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                return _read(answer.status, answer.headers, answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return _read(refusal.code, refusal.headers, refusal)
        except http.client.HTTPException as problem:  # a connection that ends in the middle, or no HTTP at all
            raise OSError(f"{type(problem).__name__}: {problem}") from None

    def _own(self, answer: Answer) -> str | None:
        """The path to which this same server sends us; None: it does not, or elsewhere."""
        if not 300 <= answer.status < 400:
            return None
        where = urljoin(self.url + "/", answer.headers.get("location", ""))
        return where[len(self.url) :] if where.startswith(self.url + "/") else None

    def _good(self, answer: Answer, path: str) -> Answer:
        if answer.status < 300:
            return answer
        if answer.status < 400:
            where = answer.headers.get("location", "nowhere")
            raise Unreachable(f"{self.url} sends us elsewhere", f"to {where}; the token is not sent there", URL_HINT)
        if "json" not in answer.headers.get("content-type", ""):
            raise Refused(answer.status, {"detail": f"{path} of {self.url} gives a page instead of a problem document"}, URL_HINT)
        problem = answer.json()
        refused = Refused(answer.status, problem if isinstance(problem, dict) else {})
        refused.hint = HINTS.get(refused.exit_code, {}).get(answer.status, "")
        raise refused

    def _unreachable(self, problem: OSError) -> Unreachable:
        cause = _cause(problem)
        return Unreachable(f"{self.url} does not answer", str(getattr(cause, "strerror", None) or cause), URL_HINT)

    def _rest(self, pause: float, why: str) -> None:
        if pause >= 1:
            self.told(f"{why}, next try in {pause:.0f} s")
        time.sleep(pause)


def checked_url(text: str) -> str:
    """The address of a server without a slash at its end. Raises Unusable for what is no http or https address."""
    hint = "expected is the address of the pages, like https://broker.example.org"
    try:
        parts = urlsplit(text.strip())
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not _plain(text.strip()) or parts.username or parts.password or parts.query or parts.fragment:
        raise Unusable("Not the address of a server", repr(text), hint)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def segment(name: object) -> str:
    """A name as one part of a path."""
    text = quote(str(name), safe="")
    if text in ("", ".", ".."):
        raise Unusable("Not a name", repr(name))
    return text


def _checked_token(token: str) -> str:
    if not _plain(token):
        raise Unusable("Not a token", "a token has no blanks and no signs but - . _ ~ + / =", "copy it once more, whole")
    return token


def _plain(text: str) -> bool:
    return all("!" <= character <= "~" for character in text)


def _cause(problem: OSError) -> BaseException:
    reason = getattr(problem, "reason", None)
    return reason if isinstance(reason, BaseException) else problem


def _read(status: int, headers: Any, body: IO[bytes]) -> Answer:
    return Answer(status, {name.lower(): str(value) for name, value in headers.items()}, body.read())
