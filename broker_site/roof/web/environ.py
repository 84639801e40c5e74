"""A request as granian's RSGI gives it, made into the environ that Django's handler takes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, Protocol


class Headers(Protocol):
    """Names in small letters; a name may stand several times in `items`."""

    def get(self, key: str, default: Any = None) -> Any: ...

    def items(self) -> Iterable[tuple[str, str]]: ...


class Scope(Protocol):
    """What RSGI knows of a request before its body."""

    http_version: str
    server: str
    client: str
    scheme: str
    method: str
    path: str
    query_string: str

    @property
    def headers(self) -> Headers: ...


_ALWAYS: Mapping[str, Any] = {
    "GATEWAY_INTERFACE": "CGI/1.1",
    "SERVER_SOFTWARE": "Granian",
    "SCRIPT_NAME": "",
    "wsgi.errors": sys.stderr,
    "wsgi.multiprocess": False,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}


def environ_of(scope: Scope, body: bytes) -> dict[str, Any]:
    """The environ of a request with its whole body; nothing of the process' own environment is in it.

    A header whose name has an underscore is left out: it would stand under the name of one with a hyphen that the TLS proxy
    sets and vouches for.
    """
    name, _, port = scope.server.rpartition(":")
    environ = {
        **_ALWAYS,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "SERVER_NAME": name.strip("[]"),
        "SERVER_PORT": port,
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": _bytes_as_text(scope.path),
        "QUERY_STRING": _bytes_as_text(scope.query_string),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(body),
        "HTTP_HOST": "",
    }
    seen: set[str] = set()
    for header, value in scope.headers.items():
        if "_" in header:
            continue
        key = header.upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        text = _bytes_as_text(value)
        environ[key] = f"{environ[key]}{';' if key == 'HTTP_COOKIE' else ','}{text}" if key in seen else text
        seen.add(key)
    if body:
        environ["CONTENT_LENGTH"] = str(len(body))  # a body in chunks comes without
    return environ


def _bytes_as_text(text: str) -> str:
    """WSGI's texts: each character is one byte."""
    return text if text.isascii() else text.encode().decode("latin-1")
