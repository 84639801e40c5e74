"""Our adapter answers as Django's bare handler does under granian: every route, method, header and byte."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.routes import routes
from tests.builders import grid, parameters, submitted
from tests.web.serving import Server, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]

CHANGING = re.compile(
    rb'[0-9a-f]{16}["<]|value="[A-Za-z0-9]{64}"|\d{4}-\d\d-\d\d[T ][0-9:.]+Z?|\d\d:\d\d:\d\d|gridbroker_agent_age.*'
    rb"|\d+.{0,10}s ago|127\.0\.0\.1:\d+|registered \d[\d.]*.{0,6}s\b"
)
"""Trace ids, CSRF tokens, times, how long the task is registered, ports."""
Answer = tuple[int, dict[str, str], bytes]
HOP = {"date", "server", "x-trace-id", "set-cookie", "connection", "transfer-encoding", "expires"}
ADMIN = r"admin/(\w+/)?$|admin/(workqueues/task|access/user)/"
"""The admin's pages of every table go the same way: those of two are enough."""
ARGUMENTS = {"format": "csv", "name": "ALPHA", "app_label": "workqueues", "url": "nowhere", "object_id": "1"}


@pytest.fixture(scope="module")
def bare(server: Server, tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Server]:
    """Django's handler and granian, nothing between."""
    log = tmp_path_factory.mktemp("bare") / "wsgi.log"
    with serving(log, "--blocking-threads", "2", application="wsgi", REDIS_URL=redis_url) as it:
        yield it


def paths(task_id: int) -> list[str]:
    """An address for each route, with things that exist where we can name them."""
    found = set()
    for route in routes():
        if "admin/" in route.address and not re.search(ADMIN, route.address):
            continue
        address = re.sub(r"\^|\\Z|\$|\?(?!P)", "", route.address).replace("\\.", ".")
        address = re.sub(r"\(P<(\w+)>[^)]*\)|\(\?P<(\w+)>[^)]*\)", lambda m: f"<{m[1] or m[2]}>", address)
        address = re.sub(r"<(?:\w+:)?(\w+)>", lambda m: ARGUMENTS.get(m[1], str(task_id)), address)
        found.add(address.replace("(.*)", "nowhere"))
    return sorted(found)


def shown(answer: Answer) -> Answer:
    status, headers, body = answer
    kept = {name: value for name, value in headers.items() if name not in HOP and not _counts_bytes(name, body)}
    return status, kept, CHANGING.sub(b"*", body)


def _counts_bytes(name: str, body: bytes) -> bool:
    """The length of an answer whose times or tokens may differ in length."""
    return name == "content-length" and bool(CHANGING.search(body))


def _differences(ours: Answer, theirs: Answer) -> Iterator[tuple[object, object]]:
    """Pairs of what differs. A long answer has a length with us where it is short enough to be
    sent when it is whole.
    """
    if ours[0] != theirs[0]:
        yield ours[0], theirs[0]
    for name in ours[1].keys() | theirs[1].keys():
        if ours[1].get(name) != theirs[1].get(name) and (name != "content-length" or name in theirs[1]):
            yield f"{name}: {ours[1].get(name)}", theirs[1].get(name)
    if ours[2] != theirs[2]:
        at = next((i for i, (a, b) in enumerate(zip(ours[2], theirs[2], strict=False)) if a != b), 0)
        yield ours[2][at - 20 : at + 60], theirs[2][at - 20 : at + 60]


def test_every_route_answers_as_without_the_adapter(server: Server, bare: Server) -> None:
    grid("ALPHA")
    task = submitted(parameters())
    boss = ensure_user("boss", superuser=True, roles=[("demo", "operator"), ("demo", "submitter")])
    boss.is_staff = True
    boss.save()
    token = {"Authorization": f"Bearer {issue_user_token(boss, vo='demo').text}"}
    browser = Client()
    browser.force_login(boss)
    session = {"Cookie": f"sessionid={browser.cookies['sessionid'].value}"}
    asked = [*paths(task.id), "/static/monitoring/site.css", "/nowhere", "/tasks/%FF%00/", "/tasks/?name=%C3%A9%00", "/tasks//1"]
    differing: list[str] = []
    n = 0
    for number, path in enumerate(asked):
        if path in ("/readyz", "/logout/"):  # says of itself when it looked; ends the session
            continue
        for method, headers in (("GET", session), ("HEAD", token) if number % 2 else ("POST", {})):
            body = b'{"a": 1}' if method == "POST" else None
            sent = {**headers, "Content-Type": "application/json", "Accept-Language": "en"} if body else headers
            ours, theirs = (shown(one.ask(method, path, body, sent)) for one in (server, bare))
            if method == "HEAD":  # how long the body would be: GET compares it, where no times stand in it
                theirs[1].pop("content-length", None)
            n += 1
            differing += [f"{method} {path}: {a!r} instead of {b!r}" for a, b in _differences(ours, theirs)]
    assert n > 150
    assert not differing, "\n".join(differing[:20])
