"""The RSGI application: reads a request whole, has Django answer it in a thread of its lane, and sends the answer whole.

A thread is with a request only while Django works on it: a half-sent body waits in the event loop, and what a slow client
has not read yet lies with granian; a large answer is made no faster than it is read. `/healthz` is answered in the loop itself.
"""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Protocol

from django.conf import settings
from django.db import Error, close_old_connections
from django.http import HttpResponse, StreamingHttpResponse
from granian.rsgi import ProtocolClosed

from broker_site.foundation.access.headers import with_headers
from broker_site.foundation.access.problems import Refused, answer_to
from broker_site.foundation.access.trace import HEADER, traced
from broker_site.roof.web.body import SMALL, Bodies, Chunks
from broker_site.roof.web.environ import Scope, environ_of
from broker_site.roof.web.held_asks import LARGEST, Full, HeldAsks, most_held
from broker_site.roof.web.joint_lane import JointLane, Unfinished
from broker_site.roof.web.lane import Lane, Overloaded
from broker_site.roof.web.lanes import Lanes, lanes
from broker_site.roof.web.long_answer import FileAnswer, Header, Left, LongAnswer, Stalled
from broker_site.roof.web.pilot_verbs import PilotVerbs, Unanswered
from brokerage.api.waiting_asks import AGAIN, WaitingAsk, waiting_ask
from brokerage.ledger.last_asks import LAST_ASKS

STEP_S, STEP_BYTES = 0.25, 1_000_000
"""A long answer is made in steps of about this size; after each one its thread serves others."""
IN_MEMORY = 1_000_000
"""Bytes of a long answer that is sent when it is whole; a longer one is sent as it is made."""
BROKEN_OFF = b"\r\nbroken off: this list is not whole\r\n"
LOOK_S = 0.5
MOST_WAITS = 120
"""How often an answer that has begun waits for a thread."""
SWITCH_S = 0.001
"""How long one thread may reckon while another wants to: a heartbeat beside a submission waits for it after each statement."""
CALM_S = 60.0
"""Seconds between two lines in the log about one and the same trouble."""

FULL = Refused(
    503, "Too many asks wait", "Ask again without waiting, or later.", headers={"Retry-After": "2", "Connection": "close"}
)
"""The connection is closed: those that others keep open are few then."""
TOO_MANY = Refused(429, "Too many requests at once", "Try again in 2 s.", headers={"Retry-After": "2"})

Handler = Callable[[dict[str, Any], Callable[..., Any]], Any]

logger = logging.getLogger(__name__)


class Answer(Chunks, FileAnswer, Protocol):
    """Granian's end of a request."""

    def response_bytes(self, status: int, headers: list[Header], body: bytes) -> None: ...

    def client_disconnect(self) -> Awaitable[None]: ...


@dataclass(slots=True)
class DjangoAnswer:
    """An answer of Django: its head, and its body, whole or (`long`) still to be made."""

    status: int
    headers: list[Header]
    body: bytes = b""
    long: StreamingHttpResponse | None = None
    ask: WaitingAsk | None = None
    """What it may be held back for."""

    def after_wait(self) -> DjangoAnswer:
        """The same for who has waited: he may ask again at once."""
        return replace(
            self, ask=None, headers=[*(h for h in self.headers if h[0].lower() != "retry-after"), ("Retry-After", "0")]
        )

    def step(self, spool: IO[bytes]) -> bool:
        """Make some more of a long answer; whether there is more to come.

        As at the beginning of a request, a connection of this thread that broke meanwhile is made anew: a client may read slowly.
        """
        close_old_connections()
        until, size = time.monotonic() + STEP_S, 0
        for part in self.long or ():
            spool.write(part)
            size += len(part)
            if size >= STEP_BYTES or time.monotonic() >= until:
                return True
        self.close()
        return False

    def close(self) -> None:
        """The request is over; Django lets go of what it held for it, once."""
        if self.long is not None and not self.long.closed:
            self.long.close()


@dataclass(slots=True)
class PendingAnswer(Unfinished):
    """An answer that is known once what the request wishes is done, with the wishes of others."""

    unanswered: Unanswered
    answer: Answer
    small: bool


class Application:
    """Serves Django's WSGI handler."""

    def __init__(self, handler: Handler, *, body_s: float | None = None, routes: Lanes | None = None) -> None:
        self.handler, self.verbs = handler, PilotVerbs()
        self.bodies = Bodies(settings.BODY_SECONDS if body_s is None else body_s)
        self.lanes = routes or lanes(
            settings.PEOPLE_THREADS, settings.PILOT_THREADS, settings.ENV.statement_timeout_ms / 1000, self._end
        )
        self.held = HeldAsks(most_held(settings.WEB_CONNECTIONS))
        self._told: dict[str, float] = {}
        self._watch: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Granian's call before the first request."""
        sys.setswitchinterval(SWITCH_S)
        gc.collect()
        gc.freeze()  # what is loaded stays: to look through all of it again would hold up a page by 0.1 s now and then
        LAST_ASKS.by_server = True
        self._watch = loop.create_task(self._cut())
        self.held.listen(loop)
        loop.call_soon(_close_before_the_end, self.held, loop)  # granian's own handlers stand once the loop runs

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Granian's call after the last one."""
        self.held.close()
        if self._watch is not None:
            self._watch.cancel()
        for lane in self.lanes.all():
            lane.close()

    async def __rsgi__(self, scope: Scope, answer: Answer) -> None:
        """Answer one request."""
        if scope.path == "/healthz" and scope.method in ("GET", "HEAD"):
            _send(answer, lambda: HttpResponse("ok\n", content_type="text/plain"))
            return
        lane = self.lanes.of(scope.method, scope.path)
        try:
            body = await self.bodies.read(scope, answer)
            since = asyncio.get_running_loop().time()
            try:
                unsent = await lane.run(self._work(lane, answer, environ_of(scope, body), small=len(body) <= SMALL))
            finally:
                self.bodies.release(body)
            if unsent is not None and unsent.ask is not None and _size(scope, body) <= LARGEST:
                unsent = await self._hold(scope, answer, lane, body, unsent, since)
        except (ProtocolClosed, ConnectionError):
            return  # the client has left before its request was whole, or answered
        except Refused as refused:
            _send(answer, refused.response)
        except Overloaded:
            self._say(lane.name, f"{lane.inside} requests of {lane.name} at once, more are refused (429)")
            _send(answer, TOO_MANY.response)
        else:
            if unsent is not None and unsent.long is not None:
                await self._send_long(scope.client, answer, lane, unsent)
            elif unsent is not None:
                answer.response_bytes(unsent.status, unsent.headers, unsent.body)

    async def _hold(
        self, scope: Scope, answer: Answer, lane: Lane, body: bytes, made: DjangoAnswer, since: float
    ) -> DjangoAnswer | None:
        """Hold an ask in vain, without a thread, and ask Django anew when jobs come, until there is one or the time is over.

        Raises ConnectionError when the client has left.
        """
        loop = asyncio.get_running_loop()
        until = since + (made.ask.seconds if made.ask else 0.0)
        tries: int | None = 0
        while made.ask is not None:
            self.held.in_vain(made.ask.queue_id, tries or 0)
            try:
                tries = await self.held.hold(made.ask, since, until - loop.time(), answer.client_disconnect())
            except ConnectionError:
                with suppress(Overloaded, Error):
                    await lane.run(made.ask.gone)
                raise
            except Full:
                self._say("held", "more asks of pilots wait than may, others are refused (503)")
                _send(answer, FULL.response)
                return None
            if tries is None:
                return made.after_wait()
            since = loop.time()
            environ = {**environ_of(scope, body), AGAIN: True}
            unsent = await lane.run(self._work(lane, answer, environ, small=True))
            if unsent is None:
                return None
            made = unsent
        return made

    def _work(self, lane: Lane, answer: Answer, environ: dict[str, Any], *, small: bool) -> Callable[[], Any]:
        """What a thread of the lane has to do for a request; at last it gives what `_sent` gives."""
        return partial(self._begin if isinstance(lane, JointLane) else self._answer, answer, environ, small)

    def _answer(self, answer: Answer, environ: dict[str, Any], small: bool) -> DjangoAnswer | None:
        return _sent(self._ask_django(environ), answer, small)

    def _begin(self, answer: Answer, environ: dict[str, Any], small: bool) -> DjangoAnswer | PendingAnswer | None:
        """Answer a request to a pilots' address as far as that can be done by itself."""
        found = self.verbs.begin(environ)
        if isinstance(found, Unanswered):
            return PendingAnswer(found, answer, small)
        return self._answer(answer, environ, small) if found is None else _sent(_whole(found), answer, small)

    def _end(self, begun: Sequence[PendingAnswer]) -> Iterator[tuple[int, DjangoAnswer | None]]:
        """Answer each of these requests as soon as what it wishes is done."""
        for place, response in self.verbs.end([each.unanswered for each in begun]):
            yield place, _sent(_whole(response), begun[place].answer, begun[place].small)

    def _ask_django(self, environ: dict[str, Any]) -> DjangoAnswer:
        """Django's answer, whole unless it is one that is made while it is sent."""
        head: list[Any] = []
        response = self.handler(environ, lambda status, headers: head.extend((status, headers)))
        made = DjangoAnswer(int(head[0].partition(" ")[0]), head[1], ask=waiting_ask(response))
        head_only = environ["REQUEST_METHOD"] == "HEAD"
        if isinstance(response, StreamingHttpResponse) and not head_only:
            made.long = response
            return made
        try:
            made.body = b"" if response.streaming else b"".join(response)
        finally:
            response.close()
        return made

    async def _send_long(self, client: str, answer: Answer, lane: Lane, made: DjangoAnswer) -> None:
        """Make a long answer step by step, so that others get the thread in between.

        One of at most IN_MEMORY bytes is sent when it is whole, and told as the fault it is where it cannot be finished. Of a
        longer one each step is sent as it is made; where it breaks off, its last line says so: half a list would look like a
        whole one. Django lets go of what it holds for it when the client has all of it, or is gone.
        """
        headers = [h for h in made.headers if h[0].lower() != "content-length"]
        made_so_far, sent, more, whole = io.BytesIO(), None, True, False
        try:
            while more:
                more = await self._next_step(lane, partial(made.step, made_so_far), patient=sent is not None)
                if sent is None and more and made_so_far.tell() > IN_MEMORY:
                    sent = await LongAnswer.begin(answer, made.status, headers, client, settings.UNREAD_SECONDS)
                if sent is not None:
                    await sent.send(made_so_far.getvalue())
                    made_so_far = io.BytesIO()
            whole = True
        except (ProtocolClosed, Left, Stalled):
            whole = True  # as far as anybody is there who wants it
        except Exception as error:  # noqa: BLE001 - whatever a generator of rows throws, in place of Django's handler
            fault = TOO_MANY if isinstance(error, Overloaded) else error
            if sent is not None:
                answer_to(fault)  # which writes it down
            else:
                _send(answer, lambda: answer_to(fault))
        else:
            if sent is None:
                body = made_so_far.getvalue()
                answer.response_bytes(made.status, [*headers, ("Content-Length", str(len(body)))], body)
        finally:
            made_so_far.close()
            try:
                if sent is not None:
                    await sent.end(b"" if whole else BROKEN_OFF)
            finally:
                made.close()

    async def _next_step(self, lane: Lane, step: Callable[[], bool], *, patient: bool) -> bool:
        """Whether there is more to come; `patient`: waits while the lane is full, since the answer has begun."""
        for _ in range(MOST_WAITS if patient else 0):
            try:
                return bool(await lane.run(step))
            except Overloaded:
                await asyncio.sleep(LOOK_S)
        return bool(await lane.run(step))

    async def _cut(self) -> None:
        """As long as the process lives: free threads that wait for a database which does not answer."""
        while True:
            await asyncio.sleep(LOOK_S)
            for lane in self.lanes.all():
                lane.give_nothing()
                if n := lane.cut_overdue():
                    words = f"{n} database connections of {lane.name} cut: a request took longer than {lane.patience_s:g} s"
                    self._say(f"cut {lane.name}", words)
            if LAST_ASKS.is_due():
                self._writer = asyncio.create_task(self._write_asks())

    async def _write_asks(self) -> None:
        """Write what the last asks got, where no pilot waits for it."""
        with suppress(Overloaded, Error):
            await self.lanes.submissions.run(_write_last_asks)

    def _say(self, cause: str, words: str) -> None:
        """A line in the log, once a minute for each cause."""
        now = time.monotonic()
        if now >= self._told.get(cause, 0.0):
            self._told[cause] = now + CALM_S
            logger.warning(words)


def _write_last_asks() -> None:
    close_old_connections()
    LAST_ASKS.write()


def _sent(made: DjangoAnswer, answer: Answer, small: bool) -> DjangoAnswer | None:
    """Send an answer from the thread that made it; or give it, when it is a long one or the request was (not `small`), whose
    bytes are held until the loop knows that it is over.
    """
    if made.long is not None or not small or made.ask is not None:
        return made
    answer.response_bytes(made.status, made.headers, made.body)
    return None


def _size(scope: Scope, body: bytes) -> int:
    """Bytes of a request, as far as it may make them many."""
    return len(body) + len(scope.path) + len(scope.query_string) + sum(len(n) + len(value) for n, value in scope.headers.items())


def _whole(response: HttpResponse) -> DjangoAnswer:
    return DjangoAnswer(response.status_code, list(response.items()), response.content, ask=waiting_ask(response))


def _send(answer: Answer, make: Callable[[], HttpResponse]) -> None:
    """An answer that Django's handler has not seen, with the headers that every answer has."""
    with traced() as trace_id:
        response = with_headers(make())
        response[HEADER] = trace_id
    headers = [*response.items(), ("Content-Length", str(len(response.content)))]
    answer.response_bytes(response.status_code, headers, response.content)


def _close_before_the_end(held: HeldAsks, loop: asyncio.AbstractEventLoop) -> None:
    """Answer the asks that are held as soon as the process is told to end: granian waits for open requests before it ends."""
    for number in (signal.SIGTERM, signal.SIGINT):
        handlers: dict[int, asyncio.Handle] = getattr(loop, "_signal_handlers", {})
        before = handlers.get(number)

        def both(before: asyncio.Handle | None = before) -> None:
            held.close()
            if before is not None:
                before._run()

        if before is not None:
            loop.add_signal_handler(number, both)
