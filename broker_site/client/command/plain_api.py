"""`api`: any call, as it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from broker_site.client.command.grammar import Verb, option
from broker_site.client.command.session import Session
from broker_site.client.connection import API
from broker_site.client.errors import OK, Unusable

METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


def call(session: Session) -> int:
    """Print the body of the answer: on a terminal so that nothing in it can steer that."""
    options = session.options
    if options.method.upper() not in METHODS:
        raise Unusable("Not a method", repr(options.method), f"there are: {', '.join(METHODS)}")
    if "://" in options.path.partition("?")[0]:
        raise Unusable("Not a path", repr(options.path), "expected is what stands behind the address of the server, like /tasks/")
    path = options.path if options.path.startswith((API, "/api/")) else API + options.path.lstrip("/")
    headers = {"Idempotency-Key": options.key} if options.key else {}
    answer = session.client.connection.ask(options.method.upper(), path, body=_body(session), headers=headers)
    if sys.stdout.isatty():
        try:
            text = json.dumps(json.loads(answer.body), indent=1)
        except ValueError:
            text = answer.body.decode("utf-8", "replace")
        for line in text.splitlines():
            session.printer.document({}, [line])
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(answer.body if answer.body.endswith(b"\n") or not answer.body else answer.body + b"\n")
    return OK


def _body(session: Session) -> object:
    text = session.options.data
    if text is None:
        return None
    if text == "-":
        return session.stdin.read().encode()
    if text.startswith("@"):
        try:
            return Path(text[1:]).read_bytes()
        except OSError as problem:
            raise Unusable(f"{text[1:]} cannot be read", str(problem.strerror or problem)) from None
    return text.encode()


VERBS: Sequence[Verb] = (
    Verb(
        ("api",),
        "make any call of the REST interface and print the answer",
        call,
        (
            option("method", metavar="METHOD", help=f"one of {', '.join(METHODS)}"),
            option("path", metavar="PATH", help="path below /api/v1/, with filters behind ?"),
            option("-d", "--data", metavar="JSON", help="body; @FILE takes a file, - standard input"),
            option("--key", metavar="KEY", help="Idempotency-Key"),
        ),
    ),
)
